"""Does scale help where training covered the combination, and only there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.supports.gaps import Gaps
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

AXES = ("width", "steps", "number")
"""What is scaled: the width of the network, the examples it sees of each combination, the combinations."""

UNCOVERED = ("some_pairs_unmet", "part_unseen")

Cell = tuple[int, int, int]
"""Width, steps and number of combinations."""


_claim = claims_of("scale-by-coverage")


CLAIMS = (
    _claim(
        "fits",
        "At the largest scale the network fits its training tasks (r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "interaction",
        "Scale helps more on combinations whose pairs all met in training than on uncovered ones (R2; mean over what is "
        "scaled and over both uncovered strata).",
        "greater",
        0.05,
        primary=True,
        needs=("fits",),
    ),
    *(
        _claim(
            f"interaction-{axis}",
            f"The same where {words} alone is scaled.",
            "greater",
            0.05,
            needs=("fits",),
        )
        for axis, words in (
            ("width", "the width of the network"),
            ("steps", "the number of examples of each combination"),
            ("number", "the number of combinations"),
        )
    ),
    _claim(
        "interaction-unmet-pairs",
        "The same against combinations with a pair that never met (all parts seen).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "interaction-unseen-part",
        "The same against combinations with a part that was never seen.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "helps-covered",
        "Scale helps where all pairs met (R2, largest minus smallest, mean over what is scaled).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "unmet-pairs-lag",
        "At the largest scale R2 is lower where a pair never met.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "unseen-part-fails",
        "At the largest scale R2 is lower where a part was never seen.",
        "greater",
        0.2,
        needs=("fits",),
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
        "On independent random functions predictions for held-out combinations have nothing to do with the truth, at any "
        "scale (correlation within tasks, mean over scales).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class ScaleByCoverage(Study):
    """Held-out R2 against width, examples and combinations, by what training showed of each held-out combination.

    Each replicate has one part that is never seen and pairs that never meet, at every scale. A common held-out test holds
    combinations of all sorts.
    """

    kind: Literal["scale-by-coverage"] = "scale-by-coverage"
    question: ClassVar[str] = (
        "Does scale help on every combination, or only where training covered its parts and pairs?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"space": {"kind": "subset", "modules": 10, "max_active": 3}},
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
            "base": {
                "space": {"kind": "subset", "modules": 16, "max_active": 4},
                "recipe": "paper",
                "every": 100,
            },
            "widths": (128, 256, 512, 1024),
            "depth": 4,
            "steps": (10_000, 40_000, 160_000, 300_000),
            "numbers": (64, 256, 1024),
            "reserve": 500,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "width", "steps", "number")
    shown: ClassVar[tuple[str, ...]] = (
        "r2_in",
        "r2_all_pairs_met",
        "r2_some_pairs_unmet",
        "r2_part_unseen",
        "correlation_held_out",
    )

    base: RunConfig = RunConfig()
    """What all runs share; model, steps and support are set by the sweep."""
    widths: tuple[PositiveInt, ...] = (32, 64, 128)
    depth: PositiveInt = 3
    steps: tuple[PositiveInt, ...] = (125, 250, 500)
    """Fresh examples are drawn at every step: so many steps give so many examples of each combination."""
    numbers: tuple[PositiveInt, ...] = (64, 128, 256)
    parts: NonNegativeInt = 1
    """Constituents that are never seen."""
    pairs: NonNegativeInt = 12
    """Pairs of the others that never meet."""
    reserve: PositiveInt = 200
    """Combinations of the common test."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same sweep must fail."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "steps", "numbers")
        return self

    @property
    def axes(self) -> dict[str, list[Cell]]:
        """The cells along each axis, smallest first: the others are at their largest."""
        width, steps, number = self.widths[-1], self.steps[-1], self.numbers[-1]
        return {
            "width": [(one, steps, number) for one in self.widths],
            "steps": [(width, one, number) for one in self.steps],
            "number": [(width, steps, one) for one in self.numbers],
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        every = dict.fromkeys(cell for cells in self.axes.values() for cell in cells)
        ends = dict.fromkeys(cell for cells in self.axes.values() for cell in (cells[0], cells[-1]))
        found = []
        for family, cells in ((self.base.family, every), (self.control, ends)):
            for width, steps, number in cells:
                changes = {
                    "family": family,
                    "model": MLP(width=width, depth=self.depth),
                    "recipe": self.base.recipe.model_copy(update={"steps": steps}),
                    "support": Gaps(number=number, parts=self.parts, pairs=self.pairs, reserve=self.reserve),
                }
                labels = {"family": family.kind, "width": width, "steps": steps, "number": number}
                found += [
                    (self.run(self.base, seed, **changes), labels | {"replicate": seed})
                    for seed in self.seeds
                ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores()]

    def effects(self, tables: Tables) -> list[Effect]:
        def score(name: str, cell: Cell, family: str) -> Float[np.ndarray, " replicate"]:
            labels = dict(zip(AXES, cell, strict=True))
            return at(tables.runs, name, self.seeds, family=family, **labels)

        main, control = self.base.family.kind, self.control.kind
        top = self.widths[-1], self.steps[-1], self.numbers[-1]
        few = self.widths[-1], self.steps[-1], self.numbers[0]
        # By axis and stratum: what scale gains.
        gain = {
            stratum: np.array(
                [
                    score(f"r2_{stratum}", cells[-1], main) - score(f"r2_{stratum}", cells[0], main)
                    for cells in self.axes.values()
                ]
            )
            for stratum in ("all_pairs_met", *UNCOVERED)
        }
        more = {stratum: gain["all_pairs_met"] - gain[stratum] for stratum in UNCOVERED}
        by_axis = np.mean(list(more.values()), axis=0)
        at_top = {stratum: score(f"r2_{stratum}", top, main) for stratum in gain}
        ends = dict.fromkeys(cell for cells in self.axes.values() for cell in (cells[0], cells[-1]))
        values = {
            "fits": score("r2_in", top, main),
            "interaction": by_axis.mean(axis=0),
            **{f"interaction-{axis}": by_axis[index] for index, axis in enumerate(AXES)},
            "interaction-unmet-pairs": more["some_pairs_unmet"].mean(axis=0),
            "interaction-unseen-part": more["part_unseen"].mean(axis=0),
            "helps-covered": gain["all_pairs_met"].mean(axis=0),
            "unmet-pairs-lag": at_top["all_pairs_met"] - at_top["some_pairs_unmet"],
            "unseen-part-fails": at_top["all_pairs_met"] - at_top["part_unseen"],
            "control-is-learned": score("r2_in", few, control),
            "control-stays-at-zero": np.mean(
                [score("correlation_held_out", cell, control) for cell in ends], axis=0
            ),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.scale_by_coverage_figures import figures

        return figures(self, tables)
