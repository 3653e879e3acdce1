"""Does scale help where training covered the combination, and only there?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.design import Arm, Column, Study, StudyClaim, average, claim
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.studies.shapes import SMOKE_SPACE, ascending, control_fails, fits
from recombine.supports import Gaps
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

AXES = {
    "width": "the width of the network",
    "steps": "the number of examples of each combination",
    "number": "the number of combinations",
}
"""What is scaled, in words."""

STRATA = {
    "r2_all_pairs_met": "all pairs met in training",
    "r2_some_pairs_unmet": "a pair never met",
    "r2_part_unseen": "a constituent never seen",
}
CONTROL = "control: independent functions"


class ScaleByCoverage(Study):
    """Does scale help on every combination, or only where training covered its constituents and pairs?

    Held-out R2 against width, examples and combinations, by what training showed of each held-out combination. Each
    replicate has one constituent that is never seen and pairs that never meet, at every scale. A common held-out test
    has combinations of all sorts.
    """

    kind: Literal["scale-by-coverage"] = "scale-by-coverage"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"space": SMOKE_SPACE},
            "widths": (16, 64),
            "depth": 2,
            "steps": (50, 100),
            "numbers": (25, 50),
            "pairs": 4,
            "reserve": 60,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 4}, "recipe": "paper", "eval_every": 100},
            "widths": (128, 256, 512, 1024),
            "depth": 4,
            "steps": (10_000, 40_000, 160_000, 300_000),
            "numbers": (64, 256, 1024),
            "reserve": 500,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", *STRATA, "correlation_held_out")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set model, steps and support."""
    widths: tuple[PositiveInt, ...] = (32, 64, 128)
    """Widths of the network."""
    depth: PositiveInt = 3
    """Hidden layers of the network."""
    steps: tuple[PositiveInt, ...] = (125, 250, 500)
    """Training steps. Every step draws fresh examples, so more steps mean more examples of each combination."""
    numbers: tuple[PositiveInt, ...] = (64, 128, 256)
    """Numbers of training combinations."""
    parts: NonNegativeInt = 1
    """Constituents that are never seen."""
    pairs: NonNegativeInt = 12
    """Pairs of the other constituents that never meet."""
    reserve: PositiveInt = 200
    """Combinations of the common test."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same sweep must fail."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        ascending(self, "widths", "steps", "numbers")
        return self

    @property
    def levels(self) -> dict[str, tuple[int, ...]]:
        """The levels of each axis, smallest first. One axis is scaled at a time, with the others at their largest."""
        return {"width": self.widths, "steps": self.steps, "number": self.numbers}

    def arms(self) -> dict[str, Arm]:
        largest = {axis: levels[-1] for axis, levels in self.levels.items()}
        smaller = [largest | {axis: level} for axis, levels in self.levels.items() for level in levels[:-1]]
        ends = [largest | {axis: levels[0]} for axis, levels in self.levels.items()]
        main = Arm(
            self.base,
            cases=[*smaller, largest],
            model=MLP(depth=self.depth),
            support=Gaps(number=self.numbers[-1], parts=self.parts, pairs=self.pairs, reserve=self.reserve),
        )
        return {"main": main, "lookup": main.replace(family=self.control, cases=[*ends, largest])}

    def along(self, axis: str) -> dict[str, int]:
        """The labels of the cells along one axis: the other axes are at their largest."""
        return {other: levels[-1] for other, levels in self.levels.items() if other != axis}

    def claims(self, main: Arm, lookup: Arm) -> Iterator[StudyClaim]:
        def gain(stratum: str, axis: str) -> Column:
            """What scale along one axis gains in one stratum."""
            return main[stratum].at(**self.along(axis)).rise(axis)

        def more(strata: tuple[str, ...], *axes: str) -> Column:
            """How much more scale gains where all pairs met than in other strata."""
            return average(
                *(gain("r2_all_pairs_met", axis) - gain(stratum, axis) for axis in axes for stratum in strata)
            )

        largest = {axis: levels[-1] for axis, levels in self.levels.items()}
        unmet, unseen = "r2_some_pairs_unmet", "r2_part_unseen"
        yield fits(main["r2_in"].at(**largest), "At the largest scale the network fits its training tasks (r2_in).")
        yield claim(
            "interaction",
            more((unmet, unseen), *AXES).greater(0.05),
            "Scale helps more on combinations whose pairs all met in training than on uncovered ones (R2; mean over what is "
            "scaled and over both uncovered strata).",
            primary=True,
            needs="fits",
        )
        for axis, words in AXES.items():
            yield claim(
                f"interaction-{axis}",
                more((unmet, unseen), axis).greater(0.05),
                f"The same where {words} alone is scaled.",
                needs="fits",
            )
        yield claim(
            "interaction-unmet-pairs",
            more((unmet,), *AXES).greater(0.05),
            "The same against combinations with a pair that never met (all constituents seen).",
            needs="fits",
        )
        yield claim(
            "interaction-unseen-part",
            more((unseen,), *AXES).greater(0.05),
            "The same against combinations with a constituent that was never seen.",
            needs="fits",
        )
        yield claim(
            "helps-covered",
            average(*(gain("r2_all_pairs_met", axis) for axis in AXES)).greater(0.05),
            "Scale helps where all pairs met (R2, largest minus smallest, mean over what is scaled).",
            needs="fits",
        )
        yield claim(
            "unmet-pairs-lag",
            (main["r2_all_pairs_met"] - main[unmet]).at(**largest).greater(0.05),
            "At the largest scale R2 is lower where a pair never met.",
            needs="fits",
        )
        yield claim(
            "unseen-part-fails",
            (main["r2_all_pairs_met"] - main[unseen]).at(**largest).greater(0.2),
            "At the largest scale R2 is lower where a constituent was never seen.",
            needs="fits",
        )
        yield from control_fails(
            lookup["r2_in"].at(number=self.numbers[0]),
            lookup["correlation_held_out"].mean(),
            "The network can learn the control: r2_in with the fewest combinations.",
            "On independent random functions, predictions for held-out combinations do not correlate with the truth at any "
            "scale (correlation within tasks, mean over scales).",
        )

    def figures(self, main: Arm, lookup: Arm) -> Iterator[Figure]:
        from recombine.figures.study import lines

        yield lines(
            self.by_scale(main.frame, lookup.frame),
            x="times",
            y="r2",
            series="stratum",
            facet="axis",
            name="scale_by_coverage",
            title="What does scale buy, and where?",
            caption="R² on held-out combinations, by what training showed of them. Width goes from "
            f"{self.widths[0]} to {self.widths[-1]}, steps from {self.steps[0]} to {self.steps[-1]} (every step brings fresh "
            f"examples), combinations from {self.numbers[0]} to {self.numbers[-1]}. What is not scaled is at its largest. In "
            "the control every combination is an independent function, so nothing can be recombined.",
            labels=[*STRATA.values(), CONTROL],
            facet_labels={"width": "wider network", "steps": "more examples", "number": "more combinations"},
            controls=[CONTROL],
            floor=-0.25,
            ceiling=1.0,
            x_title="scale, as a multiple of the smallest",
            y_title="held-out R²",
        )

    def by_scale(self, main: pd.DataFrame, lookup: pd.DataFrame) -> pd.DataFrame:
        """One row per run, axis and stratum: `times` is the scale as a multiple of the smallest on its axis."""
        import pandas as pd

        rows = []
        for axis, levels in self.levels.items():
            for runs, columns in ((main, STRATA), (lookup, {"r2_held_out": CONTROL})):
                for other, level in self.along(axis).items():
                    runs = runs[runs[other] == level]
                for column, stratum in columns.items():
                    scores = runs.reindex(columns=["replicate", column]).rename(columns={column: "r2"})
                    rows.append(scores.assign(axis=axis, times=runs[axis] / levels[0], stratum=stratum))
        return pd.concat(rows, ignore_index=True)
