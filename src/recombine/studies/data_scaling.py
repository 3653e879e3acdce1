"""Does a plain network recombine what it knows once it has seen enough combinations?"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.overrides import validate
from recombine.probes.base import Measurement
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.base import Space, in_words
from recombine.spaces.subset import SubsetSpace
from recombine.studies import data_scaling_arms as arms
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.data_scaling_arms import GOALS, PREFERENCES
from recombine.studies.reduce import Reduce, at_fewest, at_most, column, lowest, per_replicate, rise
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

Share = Annotated[float, Field(gt=0, lt=1)]

FEWEST_HELD_OUT = 16
"""Shares that leave fewer combinations than this to test on are dropped: a probe must be fitted on half of them."""

DOUBLING = tuple(12 * 2**power for power in range(14))

RESERVE_LIMIT = 2048
"""The most combinations that are set aside for the common test."""

LAPTOP: dict[str, Any] = {
    "base": {"model": {"kind": "mlp", "width": 128, "depth": 3}, "recipe": {"kind": "fast", "steps": 500}},
    "numbers": (40, 80, 160, 320),
}


_claim = claims_of("data-scaling")


CLAIMS = (
    _claim(
        "fits",
        "The network fits its training tasks at every number of combinations (lowest r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "rises",
        "Held-out R2 rises with the number of training combinations (most minus fewest).",
        "greater",
        0.05,
        primary=True,
        needs=("fits",),
    ),
    _claim(
        "rises-at-matched-loss",
        "It rises also where training is stopped at the same loss (validation streams).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "few-are-memorised",
        "With the fewest combinations the network fits its tasks and does far worse on held-out ones (r2_in - r2_held_out).",
        "greater",
        0.2,
        needs=("fits",),
        version=2,
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: r2_in with the fewest combinations.",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "On independent random functions, learned for the fewest combinations, predictions for held-out ones have nothing to do with the truth (correlation within tasks).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
        version=2,
    ),
    _claim(
        "decodability-rises",
        "Intrinsic linear decodability of the constituents in the deepest layer rises (most minus fewest).",
        "greater",
        0.05,
        needs=("fits", "control-decodability-does-not-rise"),
        version=2,
    ),
    _claim(
        "control-decodability-does-not-rise",
        "On the control, which cannot be recombined, it does not rise (most minus fewest).",
        "below",
        0.05,
        role="control",
    ),
    _claim(
        "decodability-is-learned",
        "With the most combinations it exceeds that of the untrained network (training, not composition, suffices for that).",
        "greater",
        0.05,
        role="control",
    ),
    _claim(
        "selectivity-exceeds-control",
        "With the most combinations selectivity exceeds that of networks trained on the control.",
        "greater",
        0.05,
        needs=("fits",),
    ),
)
"""Stated before any run, and versioned with this file."""


class DataScaling(Study):
    """Held-out R2 against the number of training combinations, with `lookup` as the control that must fail."""

    kind: Literal["data-scaling"] = "data-scaling"
    question: ClassVar[str] = (
        "Does a plain network solve combinations that it never saw, once it has been trained on enough others?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 10, "max_active": 3},
                "model": {"kind": "mlp", "width": 64, "depth": 2},
                "recipe": {"kind": "fast", "steps": 100},
            },
            "numbers": (20, 120),
            "replicates": 2,
        },
        "demo": LAPTOP | {"replicates": 4},
        "laptop": LAPTOP
        | {
            "preferences": PREFERENCES,
            "goals": GOALS,
            "growth_spaces": ((12, 2), (8, 3), (12, 3), (16, 3)),
        },
        "paper": {
            "base": {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "recipe": "paper", "every": 100},
            "spaces": tuple(
                {"kind": "subset", "modules": modules, "max_active": active}
                for modules in (8, 16, 24, 32)
                for active in (2, 3, 4, 5, 6, 7)
            ),
            "held_out": (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.125),
            "preferences": {
                "space": {"kind": "subset", "modules": 16, "max_active": 3},
                "support": {"kind": "random", "held_out": 0.25},
                "family": {"kind": "preferences", "features": 16},
                "model": {"kind": "mlp", "width": 1024, "depth": 2},
                "recipe": {"kind": "paper", "rate": 1e-4, "decay": 1e-3, "steps": 3_000_000},
                "every": 1000,
            },
            "preference_numbers": (40, 80, 160, 320, 522),
            "goals": {
                "family": {"kind": "goals", "grid": 11},
                "model": {"kind": "mlp", "width": 1024, "depth": 2},
                "recipe": {"kind": "paper", "rate": 1e-3, "decay": 3e-2, "steps": 1_000_000},
                "every": 1000,
            },
            "goal_numbers": (25, 50, 125, 250, 375),
            "growth_spaces": ((8, 2), (8, 3), (16, 2), (16, 3), (16, 4), (24, 3), (24, 4), (32, 3)),
            "growth_base": {
                "model": {"kind": "mlp", "width": 1024, "depth": 4},
                "recipe": "paper",
                "every": 100,
            },
            "threshold": 0.95,
            "replicates": 3,
        },
    }

    cells: ClassVar[tuple[str, ...]] = ("arm", "family", "space", "number")

    base: RunConfig = RunConfig()
    """What all runs share; space and support are set by the sweep."""
    spaces: tuple[field("spaces", Space), ...] | None = None  # type: ignore[valid-type]
    """Several spaces instead of the one in `base`; a replicate's effect is then the mean over them."""
    numbers: tuple[PositiveInt, ...] | None = None
    """Numbers of training combinations."""
    held_out: tuple[Share, ...] | None = None
    """Held-out shares, instead of numbers."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same sweep must fail."""
    preferences: RunConfig | None = None
    """The grid world on which the same is asked; none leaves that arm out."""
    preference_numbers: tuple[PositiveInt, ...] = (15, 60)
    """Numbers of training combinations there."""
    goals: RunConfig | None = None
    """The grid world of goals, likewise."""
    goal_numbers: tuple[PositiveInt, ...] = (40, 375)
    """Numbers of training combinations there."""
    grid_replicates: PositiveInt = 8
    """Replicates in both grid worlds: a run takes longer."""
    growth_spaces: tuple[tuple[PositiveInt, PositiveInt], ...] = ()
    """Modules and most active ones of the spaces that tell how the number needed grows; none leaves that arm out."""
    growth_base: RunConfig = RunConfig(model=MLP(width=128, depth=3), recipe=Fast(steps=500))
    """What the runs of that arm share. (2 x 128 and 200 steps did not fit the larger spaces, which looked like a need of data;
    after that look its precondition was added and fresh seeds decide.)"""
    threshold: float = Field(default=0.8, gt=0, lt=1)
    """The held-out R2 whose number of combinations is sought."""

    @property
    def grid_seeds(self) -> list[int]:
        """The seeds of the grid worlds' replicates."""
        return list(range(self.first_seed, self.first_seed + self.grid_replicates))

    @property
    def growth_seeds(self) -> list[int]:
        """The seeds of the growth arm: others than those of the first look at it."""
        return [seed + 1000 for seed in self.seeds]

    @property
    def growth(self) -> dict[SubsetSpace, list[int]]:
        """The spaces of the growth arm, each with numbers of combinations that double, up to three quarters of it."""
        spaces = [SubsetSpace(modules=modules, max_active=active) for modules, active in self.growth_spaces]
        return {
            space: [n for n in DOUBLING if space.width <= n <= 0.75 * space.size][-4:] for space in spaces
        }

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if (self.numbers is None) == (self.held_out is None):
            raise ValueError("give either numbers or held_out, not both and not neither")
        if len(set(self.numbers or self.held_out or ())) < 2:
            raise ValueError("at least two different sizes of support are needed to compare them")
        if self.control.kind == self.base.family.kind:
            raise ValueError(
                f"control={self.control.kind}: the control must be another family than base.family"
            )
        return self

    def sizes(self, space: Space) -> list[int]:
        """The numbers of training combinations in a space, fewest first. Shares that leave too few are dropped."""
        if self.numbers is not None:
            return sorted(set(self.numbers))
        # By way of text, so that 0.1 means a tenth; fractions, as the size of a space need not fit a float.
        found = {space.size - round(Fraction(str(share)) * space.size) for share in self.held_out or ()}
        enough = sorted(
            number
            for number in found
            if number * space.slots >= 2 * space.width and space.size - number >= FEWEST_HELD_OUT
        )
        if len(enough) < 2:
            raise BadInput(
                f"Fewer than two of the held-out shares {self.held_out} leave enough of the "
                f"{in_words(space.size)} combinations to train on.",
                fix="hold out less",
            )
        return enough

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for family in (self.base.family, self.control):
            for space in self.spaces or (self.base.space,):
                sizes = self.sizes(space)
                # One common held-out test for all sizes: what the largest support leaves, up to a limit.
                reserve = max(0, min(RESERVE_LIMIT, space.size - sizes[-1]))
                for number in sizes:
                    for seed in self.seeds:
                        changes = {
                            "family": family,
                            "space": space,
                            "support": Random(number=number, reserve=reserve),
                            "seeds": Seeds.replicate(seed),
                        }
                        config = validate(RunConfig, dict(self.base) | changes)
                        labels = {
                            "arm": "main",
                            "replicate": seed,
                            "number": number,
                            "family": family.kind,
                            "space": space.title,
                        }
                        found.append((config, labels))
        return found + arms.world_runs(self) + arms.space_runs(self)

    def measurements(self) -> list[Measurement]:
        return [Scores(), Decodability()]

    def effects(self, tables: Tables) -> list[Effect]:
        runs = tables.runs[tables.runs["arm"] == "main"]
        main = runs[runs["family"] == self.base.family.kind]
        control = runs[runs["family"] == self.control.kind]
        complete = main.loc[column(main, "status") == "complete", "run"]
        matched = at_matched_loss(tables.curves[tables.curves["run"].isin(complete)])
        sizes = {space.title: self.sizes(space) for space in self.spaces or (self.base.space,)}

        gap = column(main, "r2_in") - column(main, "r2_held_out")
        learned = column(main, "intrinsic") - column(main, "intrinsic_untrained")
        # For each claim: a table, a column of it, and how the sizes of support make one number of it.
        basis: dict[str, tuple[pd.DataFrame, str, Reduce]] = {
            "fits": (main, "r2_in", lowest),
            "rises": (main, "r2_held_out", rise),
            "rises-at-matched-loss": (matched, "score_held_out", rise),
            "few-are-memorised": (main.assign(gap=gap), "gap", at_fewest),
            "control-is-learned": (control, "r2_in", at_fewest),
            "control-stays-at-zero": (control, "correlation_held_out", at_fewest),
            "decodability-rises": (main, "intrinsic", rise),
            "control-decodability-does-not-rise": (control, "intrinsic", rise),
            "decodability-is-learned": (main.assign(learned=learned), "learned", at_most),
        }
        seeds = list(self.seeds)
        values = {name: per_replicate(*parts, sizes, seeds) for name, parts in basis.items()}
        selectivity = [
            per_replicate(frame, "selectivity", at_most, sizes, seeds) for frame in (main, control)
        ]
        values["selectivity-exceeds-control"] = selectivity[0] - selectivity[1]
        return [Effect(claim, values[claim.name]) for claim in CLAIMS] + arms.effects(self, tables)

    def overview(self, tables: Tables) -> pd.DataFrame:
        """Means over replicates, by family, space and number of combinations."""
        columns = ["score_in", "score_held_out", "intrinsic", "selectivity"]
        runs = tables.runs.reindex(columns=[*tables.runs.columns.union(columns)])
        several = self.spaces or self.growth_spaces or arms.worlds(self)
        by = ["arm", "family", "space", "number"] if several else ["family", "number"]
        grouped = runs.groupby(by, sort=False)
        frame = grouped[columns].mean()
        frame.insert(0, "n", grouped["score_in"].count())
        return frame.reset_index()

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.data_scaling_figures import figures

        return figures(self, tables)


def at_matched_loss(curves: pd.DataFrame) -> pd.DataFrame:
    """For each run the first evaluation at which its loss has fallen to the loss that all sizes reach.

    Within a replicate and space that loss is the highest of the runs' lowest: the best that the slowest of
    them did. The choice looks at the training loss alone.
    """
    if curves.empty:
        return curves
    best = curves.groupby(["replicate", "space", "number"])["loss"].min()
    common = best.groupby(["replicate", "space"]).max().rename("common").reset_index()
    joined = curves.merge(common, on=["replicate", "space"])
    reached = joined[joined["loss"] <= joined["common"]].sort_values("step")
    return reached.drop_duplicates(["replicate", "space", "number"])
