"""Does a plain network recombine what it knows once it has seen enough combinations?"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, control
from recombine.errors import BadInput
from recombine.families import Family, Lookup
from recombine.probes import Decodability, Scores
from recombine.spaces import Space
from recombine.spaces.base import in_words
from recombine.studies.shapes import PAPER_RUN, SMOKE_SPACE, control_fails, fits, other_family, skill
from recombine.supports import Random
from recombine.training.config import RunConfig

FEWEST_HELD_OUT = 16
"""Shares that leave fewer combinations than this to test on are dropped: a probe is fitted on half of them."""

RESERVE_LIMIT = 2048
"""The most combinations that are set aside for the common test."""

LAPTOP: dict[str, Any] = {
    "base": {"model": {"kind": "mlp", "width": 128, "depth": 3}, "recipe": {"kind": "fast", "steps": 500}},
    "numbers": (40, 80, 160, 320),
}


class DataScaling(Study):
    """Does a plain network solve unseen combinations once it has been trained on enough others?

    Held-out R2 against the number of training combinations. The control `lookup`, where every combination is an
    independent random function, must fail.
    """

    kind: Literal["data-scaling"] = "data-scaling"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": SMOKE_SPACE,
                "model": {"kind": "mlp", "width": 64, "depth": 2},
                "recipe": {"kind": "fast", "steps": 100},
            },
            "numbers": (20, 120),
            "replicates": 2,
        },
        "demo": LAPTOP | {"replicates": 6},  # The fewest with which equal effects decide anything.
        "laptop": LAPTOP | {"first_seed": 4000},
        "paper": {
            "base": PAPER_RUN,
            "spaces": tuple(
                {"kind": "subset", "modules": modules, "max_active": active}
                for modules in (8, 16, 24, 32)
                for active in (2, 3, 4, 5, 6, 7)
            ),
            "held_out": (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.125),
            "replicates": 6,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("score_in", "score_held_out", "intrinsic", "selectivity")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set space and support."""
    spaces: tuple[field("spaces", Space), ...] | None = None  # type: ignore[valid-type]
    """Several spaces instead of the one in `base`; effects are then means over them."""
    numbers: tuple[PositiveInt, ...] | None = None
    """Numbers of training combinations."""
    held_out: tuple[Annotated[float, Field(gt=0, lt=1)], ...] | None = None
    """Held-out shares, instead of numbers."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same sweep must fail."""

    def check(self) -> None:
        if (self.numbers is None) == (self.held_out is None):
            raise ValueError("give either numbers or held_out, not both and not neither")
        if len(set(self.numbers or self.held_out or ())) < 2:
            raise ValueError("at least two different sizes of support are needed to compare them")
        other_family(self)

    def sizes(self, space: Space) -> list[int]:
        """The numbers of training combinations in a space, fewest first. Shares that leave too few are dropped."""
        if self.numbers is not None:
            return sorted(set(self.numbers))
        # By way of text, so that 0.1 means a tenth; fractions, as the size of a space need not fit a float.
        numbers = {space.size - round(Fraction(str(share)) * space.size) for share in self.held_out or ()}
        enough = sorted(
            number
            for number in numbers
            if number * space.slots >= 2 * space.width and space.size - number >= FEWEST_HELD_OUT
        )
        if len(enough) < 2:
            raise BadInput(
                f"Fewer than two of the held-out shares {self.held_out} leave enough of the "
                f"{in_words(space.size)} combinations to train on.",
                fix="hold out less",
            )
        return enough

    def arms(self) -> dict[str, Arm]:
        cases = []
        for space in self.spaces or (self.base.space,):
            sizes = self.sizes(space)
            # One common test for all sizes: what the largest support leaves, up to a limit.
            reserve = max(0, min(RESERVE_LIMIT, space.size - sizes[-1]))
            cases += [{"space": space, "support": Random(reserve=reserve), "number": number} for number in sizes]
        main = Arm(self.base, cases=cases)
        return {"main": main, "lookup": main.replace(family=self.control)}

    def measurements(self) -> list[Any]:
        return [Scores(), Decodability()]

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        at_equal_loss = main.table(at_matched_loss)["score_held_out"]

        def rise(arm: Arm) -> Column:
            return skill(arm["r2_held_out"]).rise("number").mean()

        yield fits(
            main["r2_in"].lowest("number").mean(),
            "The network fits its training tasks at every number of combinations (lowest r2_in).",
        )
        yield claim(
            "rises",
            rise(main).greater(),
            "Held-out R2 rises with the number of training combinations (most minus fewest).",
            primary=True,
            needs=("fits", "control-gains-nothing"),
            version=2,
        )
        yield claim(
            "rises-at-matched-loss",
            skill(at_equal_loss).rise("number").mean().greater(),
            "It also rises where training stops at the same loss (validation streams).",
            needs="fits",
            version=2,
        )
        yield claim(
            "few-are-memorised",
            (main["r2_in"] - main["r2_held_out"]).first("number").mean().greater(0.2),
            "With the fewest combinations the network fits its tasks and does far worse on held-out ones (r2_in - r2_held_out; "
            "where r2_in is .9, a margin of .2 is an error that is three times as large).",
            needs="fits",
            version=2,
        )
        yield from control_fails(
            lookup["r2_in"].first("number").mean(),
            lookup["correlation_held_out"].first("number").mean(),
            "The network can learn the control: r2_in with the fewest combinations.",
            "On independent random functions, learned for the fewest combinations, predictions for held-out ones do not "
            "correlate with the truth (correlation within tasks).",
            gain=rise(lookup),
            version=2,
        )
        yield claim(
            "decodability-rises",
            main["intrinsic"].rise("number").mean().greater(0.05),
            "Intrinsic linear decodability of the constituents in the deepest layer rises (most minus fewest).",
            needs=("fits", "control-decodability-does-not-rise"),
            version=2,
        )
        yield control(
            "control-decodability-does-not-rise",
            lookup["intrinsic"].rise("number").mean().below(0.05),
            "On the control, which cannot be recombined, it does not rise (most minus fewest).",
        )
        yield control(
            "decodability-is-learned",
            (main["intrinsic"] - main["intrinsic_untrained"]).last("number").mean().greater(0.05),
            "With the most combinations it exceeds that of the untrained network (training suffices for that, without "
            "composition).",
        )
        yield claim(
            "selectivity-exceeds-control",
            (main["selectivity"].last("number").mean() - lookup["selectivity"].last("number").mean()).greater(0.05),
            "With the most combinations selectivity exceeds that of networks trained on the control.",
            needs="fits",
        )

    def figures(self, main: Arm, lookup: Arm) -> Figures:
        from recombine.figures.layers import decodability_by_layer
        from recombine.figures.study import combination_map, lines, training_curves

        # Sizes compare within a space only: with several spaces, the figures show the first.
        space = (self.spaces or (self.base.space,))[0]
        where = f" ({space.title})" if self.spaces else ""

        def here(frame: pd.DataFrame) -> pd.DataFrame:
            return frame[frame["space"] == space.title]

        yield lines(
            *(arm.with_frame(here(arm.frame)) for arm in (main, lookup)),
            x="number",
            y={"r2_in": "trained combinations", "r2_held_out": "held-out combinations"},
            name="score_by_size",
            title=f"The more combinations in training, the better on unseen ones?{where}",
            caption="R² is 1 for a perfect network and 0 for one that always predicts the mean. Where the held-out line "
            "meets the trained one, the network recombines. In the control (lookup) every combination is an "
            "independent random function, so its held-out score cannot rise.",
            floor=-0.25,
            ceiling=1.0,
            x_title="number of training combinations",
            y_title="R²",
        )
        yield decodability_by_layer(
            here(main.tables["decodability"]), title=f"How decodable are the constituents inside the network?{where}"
        )
        yield combination_map(
            here(main.tables.combinations),
            [space.label(part) for part in range(space.width)],
            title=f"Which pairs of constituents were trained, which held out, and how well did each do?{where}",
        )
        yield training_curves(here(main.tables.curves), title=f"Scores during training{where}")


def at_matched_loss(tables: Tables) -> pd.DataFrame:
    """The evaluations of complete runs at matched loss: see `matched`."""
    runs, curves = tables.runs, tables.curves
    if curves.empty or "status" not in runs:
        return curves
    return matched(curves[curves["run"].isin(runs.loc[runs["status"] == "complete", "run"])])


def matched(curves: pd.DataFrame) -> pd.DataFrame:
    """For each run the first evaluation at which its loss has fallen to the loss that all sizes reach.

    Within a replicate and space that loss is the highest of the runs' lowest losses. The choice looks at the training
    loss alone.
    """
    if curves.empty:
        return curves
    best = curves.groupby(["replicate", "space", "number"])["loss"].min()
    common = best.groupby(["replicate", "space"]).max().rename("common").reset_index()
    joined = curves.merge(common, on=["replicate", "space"])
    reached = joined[joined["loss"] <= joined["common"]].sort_values("step")
    return reached.drop_duplicates(["replicate", "space", "number"])
