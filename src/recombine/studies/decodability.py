"""Are the constituents in the layers of networks that recombine, and does the network use them there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.ignored_part import IgnoredPart
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.decodability import Decodability as DecodabilityProbe
from recombine.probes.erasure import Erasure
from recombine.probes.from_encoding import FromEncoding
from recombine.probes.readout import Readout
from recombine.probes.scores import Scores
from recombine.probes.swap import Swap
from recombine.stats.verdicts import Claim, Direction
from recombine.studies.base import Effect, Study, Tables, ascend
from recombine.studies.decodability_effects import effects, points
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure


def _claim(
    name: str,
    statement: str,
    direction: Direction,
    margin: float,
    needs: tuple[str, ...] = ("fits",),
    **more: Any,
) -> Claim:
    return Claim(name, "decodability", statement, direction, margin, needs=needs, **more)


def _precondition(name: str, statement: str, direction: Direction, margin: float) -> Claim:
    return _claim(name, statement, direction, margin, role="precondition", needs=())


def _control(name: str, statement: str, direction: Direction, margin: float, needs: str) -> Claim:
    return _claim(name, statement, direction, margin, role="control", needs=(needs,))


CLAIMS = (
    _precondition(
        "fits",
        "The networks fit their training tasks (main width; lowest r2_in over support sizes).",
        "above",
        0.8,
    ),
    _claim(
        "within-size",
        "Within a support size, networks whose constituents are more decodable in the deepest layer (intrinsic) do better on "
        "held-out combinations (partial rank correlation with held-out R2; teachers, first weights and widths differ).",
        "greater",
        0.1,
        primary=True,
    ),
    _claim("within-size-and-width", "The same where the width is held still too.", "greater", 0.1),
    _claim(
        "within-size-at-equal-fit",
        "The same where how well the network fits its training tasks is held still (a covariate).",
        "greater",
        0.1,
    ),
    _claim(
        "within-size-and-width-middle",
        "The same for a middle layer, where size and width are held still.",
        "greater",
        0.1,
    ),
    _claim(
        "probe-starves",
        "With more training combinations decodability rises more by a probe that is fitted on trained combinations (transfer, "
        "as published) than by one that has the same held-out ones everywhere (intrinsic): so much of the contrast is the "
        "probe's own lack of data.",
        "greater",
        0.05,
    ),
    _claim(
        "fades",
        "In networks trained on few combinations the constituents fade with depth (intrinsic, first less deepest layer).",
        "greater",
        0.05,
    ),
    _claim(
        "fades-more",
        "They fade more than in networks trained on many combinations (intrinsic).",
        "greater",
        0.05,
    ),
    _claim(
        "learned",
        "With many combinations they are more decodable than before training (intrinsic, deepest layer).",
        "greater",
        0.05,
    ),
    _claim(
        "swap",
        "Swapping a constituent along the directions that a probe finds moves the network's answer towards that of the other "
        "task, more than either floor (efficacy, best layer that counts, chosen on validation combinations; many combinations).",
        "greater",
        0.1,
    ),
    _claim("swap-deepest", "So it does in the deepest layer, against either floor.", "greater", 0.05),
    _claim(
        "swap-deepest-helps",
        "In the deepest layer the swapped answer is nearer to that of the other task than no edit at all (efficacy).",
        "above",
        0.0,
    ),
    _claim(
        "swap-share",
        "In the best layer the swap has at least half of the effect that any edit could have that does not look at the input "
        "(efficacy as a share of the ceiling of shifts).",
        "above",
        0.5,
    ),
    _precondition(
        "erasure-holds",
        "What was erased cannot be read again on other combinations (R2 of a fresh probe, middle layer).",
        "below",
        0.2,
    ),
    _claim(
        "erasure-first",
        "Erasing the constituents from the first hidden layer costs more held-out R2 than erasing random subspaces of equal rank.",
        "greater",
        0.05,
        needs=("fits", "erasure-holds"),
    ),
    _claim(
        "erasure-middle",
        "So it does in a middle layer: the network uses there what a probe reads.",
        "greater",
        0.05,
        needs=("fits", "erasure-holds"),
    ),
    _precondition(
        "theorem-says-something",
        "On trained combinations the theorem promises something: its bound, 1 - sqrt(share of wrong answers).",
        "above",
        0.2,
    ),
    _claim(
        "theorem",
        "From the codes of tasks on which a network is right the constituents are recovered at least as often as the "
        "theorem says (share of tasks less its bound; the lower of family and control, few combinations).",
        "above",
        0.0,
        needs=("theorem-says-something",),
    ),
    _precondition(
        "control-is-learned",
        "The network can learn the control: r2_in with the fewest combinations.",
        "above",
        0.3,
    ),
    _claim(
        "selectivity",
        "A probe reads parts, not whole combinations, better where they can be recombined than on independent random functions "
        "(selectivity, deepest layer, few combinations).",
        "greater",
        0.05,
        needs=("fits", "control-is-learned"),
    ),
    _control(
        "control-stays-at-zero",
        "On independent random functions nothing is recombined (correlation within held-out tasks, mean of few and many).",
        "equivalent",
        0.05,
        "control-is-learned",
    ),
    _control(
        "control-is-decodable",
        "On independent random functions the constituents are decodable all the same, more than before training (intrinsic, "
        "few combinations): decodability alone does not show that a network recombines.",
        "greater",
        0.05,
        "control-is-learned",
    ),
    _control(
        "control-swap-misses",
        "On independent random functions a swap leads to no right answer (R2 by the teacher's answers, best layer).",
        "below",
        0.0,
        "control-is-learned",
    ),
    _control(
        "control-not-recovered",
        "Where a network is wrong (held-out independent functions) the theorem's decoder finds nothing (share of tasks).",
        "below",
        0.2,
        "control-is-learned",
    ),
    _precondition(
        "ignored-is-learned", "The network fits the family with an ignored part (r2_in).", "above", 0.8
    ),
    _control(
        "ignored-part-fades",
        "A part that is told and has no effect is lost in the deepest layer: combinations that hold it are read worse than "
        "others, beyond the same difference where the part has an effect (error as a share of the spread).",
        "greater",
        0.05,
        "ignored-is-learned",
    ),
)
"""Stated before any run, and versioned with this file."""


class Decodability(Study):
    """Decodability within support sizes and layer by layer, two causal tests, and what a theorem promises.

    The number of training combinations drives both decodability and generalisation, so they are compared within sizes. A
    correlation takes all replicates at once: its one number a replicate is a pseudo-value of the jackknife.
    """

    kind: Literal["decodability"] = "decodability"
    question: ClassVar[str] = (
        "Are the constituents of a task linearly decodable in networks that recombine, and are they used?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 10, "max_active": 3},
                "recipe": {"kind": "fast", "steps": 100},
            },
            "numbers": (25, 100),
            "reserve": 60,
            "width": 48,
            "other_widths": (),
            "other_numbers": (),
            "depth": 2,
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
            "numbers": (64, 256, 1024),
            "reserve": 1000,
            "width": 1024,
            "other_widths": (256, 512),
            "other_numbers": (64, 256, 1024),
            "depth": 4,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "width", "number")
    shown: ClassVar[tuple[str, ...]] = (
        "r2_in",
        "r2_held_out",
        "intrinsic",
        "transfer",
        "selectivity",
        "efficacy_best",
    )

    base: RunConfig = RunConfig()
    """What all runs share; model and support are set by the sweep."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160, 320)
    """Training combinations."""
    reserve: PositiveInt = 376
    """Combinations of the common test."""
    width: PositiveInt = 128
    """Of the networks that are trained on every number and on the controls."""
    other_widths: tuple[PositiveInt, ...] = (58,)
    """Widths that differ within a support size."""
    other_numbers: tuple[PositiveInt, ...] = (80, 320)
    """The numbers on which networks of other widths are trained."""
    depth: int = Field(default=3, ge=2)
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which nothing can be recombined."""
    ignored: IgnoredPart = IgnoredPart()
    """The family one part of which has no effect."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "numbers")
        if not set(self.other_numbers) <= set(self.numbers):
            raise ValueError(f"other_numbers must be some of {self.numbers}, got {self.other_numbers}")
        if self.width in self.other_widths:
            raise ValueError(f"other_widths must differ from width {self.width}, got {self.other_widths}")
        return self

    @property
    def middle(self) -> str:
        """A layer in the middle, after the first."""
        return f"hidden {max(2, (self.depth + 1) // 2)}"

    @property
    def deepest(self) -> str:
        """The last hidden layer."""
        return f"hidden {self.depth}"

    @property
    def cell_list(self) -> list[tuple[Family, int, int]]:
        """Family, width and number of each cell."""
        few, many = self.numbers[0], self.numbers[-1]
        main = [(self.base.family, self.width, number) for number in self.numbers]
        other = [
            (self.base.family, width, number) for width in self.other_widths for number in self.other_numbers
        ]
        controls = [(self.control, self.width, number) for number in (few, many)]
        return [*main, *other, *controls, (self.ignored, self.width, many)]

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for family, width, number in self.cell_list:
            changes = {
                "family": family,
                "model": MLP(width=width, depth=self.depth),
                "support": Random(number=number, reserve=self.reserve),
            }
            labels = {"family": family.kind, "width": width, "number": number}
            found += [
                (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(), DecodabilityProbe(), Swap(), Erasure(), FromEncoding(), Readout()]

    def effects(self, tables: Tables) -> list[Effect]:
        values = effects(self, tables)
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def points(self, tables: Tables) -> pd.DataFrame:
        """The runs that correlations are about: a row each."""
        return points(tables.runs, tables.probes, self.base.family.kind, self.middle)

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.decodability_figures import figures

        return figures(self, tables)
