"""Which architecture needs fewer combinations for the same held-out score?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.base import Model
from recombine.models.hypernetwork import Hypernetwork
from recombine.models.mlp import MLP
from recombine.models.transformer import Transformer
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.stats.threshold import Reached, reached
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

OTHERS = ("transformer", "hypernetwork")
"""What the plain network is compared with, by the names of the study's fields."""

NETWORKS = ("mlp", *OTHERS)

SAID = {name: name for name in NETWORKS} | {"mlp": "MLP"}
"""Their names in sentences."""


_claim = claims_of("architectures")


CLAIMS = (
    *(
        _claim(
            f"{name}-fits",
            f"The {SAID[name]} fits its training tasks with the most combinations (r2_in).",
            "above",
            0.8,
            role="precondition",
        )
        for name in NETWORKS
    ),
    *(
        _claim(
            f"{name}-needs-fewer",
            f"The {name} reaches the threshold of held-out R2 with fewer combinations than the MLP (doublings of their "
            "number; where one of them lies beyond the numbers tried, the least that the difference can be).",
            "greater",
            0.25,
            primary=name == "transformer",
            needs=("mlp-fits", f"{name}-fits"),
        )
        for name in OTHERS
    ),
    *(
        _claim(
            f"{name}-better-with-fewest",
            f"With the fewest combinations held-out R2 of the {name} is higher than that of the MLP.",
            "greater",
            0.05,
            needs=("mlp-fits", f"{name}-fits"),
        )
        for name in OTHERS
    ),
    *(
        _claim(
            f"control-is-learned-by-{name}",
            f"The {SAID[name]} can learn the control: r2_in with the fewest combinations.",
            "above",
            0.3,
            role="precondition",
        )
        for name in NETWORKS
    ),
    *(
        _claim(
            f"control-stays-at-zero-{name}",
            f"On independent random functions, learned for the fewest combinations, predictions of the {SAID[name]} for held-out "
            "ones have nothing to do with the truth (correlation within tasks).",
            "equivalent",
            0.05,
            role="control",
            needs=(f"control-is-learned-by-{name}",),
        )
        for name in NETWORKS
    ),
)
"""Stated before any run, and versioned with this file."""


class Architectures(Study):
    """Held-out R2 of a plain network, a transformer and a hypernetwork against the number of training combinations.

    Within a replicate all have the same teacher, combinations, held-out test, recipe and number of steps. They differ in
    size: the question is what data they need, not which is best at a given cost.
    """

    kind: Literal["architectures"] = "architectures"
    question: ClassVar[str] = (
        "Does a transformer, or a network with the teacher's own form, need fewer combinations than a plain network?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "recipe": {"kind": "fast", "steps": 60},
            },
            "mlp": {"kind": "mlp", "width": 32, "depth": 2},
            "transformer": {"kind": "transformer", "width": 16, "layers": 1, "heads": 2},
            "hypernetwork": {"kind": "hypernetwork", "hidden": 16},
            "numbers": (12, 20),
            "reserve": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"recipe": "paper", "every": 100},
            "mlp": {"kind": "mlp", "width": 1024, "depth": 4},
            "transformer": {"kind": "transformer", "width": 256, "layers": 4, "heads": 4, "context": 16},
            "hypernetwork": {"kind": "hypernetwork", "hidden": 128},
            "numbers": (40, 80, 160, 320, 522),
            "reserve": 174,
            "threshold": 0.95,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "network", "number")
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "correlation_held_out")

    base: RunConfig = RunConfig()
    """What all runs share, the recipe included; model, family and support are set by the sweep."""
    mlp: field("models", Model) = MLP(width=128, depth=3)  # type: ignore[valid-type]
    """The plain network that the others are compared with."""
    transformer: field("models", Model) = Transformer(width=64, layers=2, heads=4)  # type: ignore[valid-type]
    hypernetwork: field("models", Model) = Hypernetwork()  # type: ignore[valid-type]
    numbers: tuple[PositiveInt, ...] = (40, 80, 160)
    """Numbers of training combinations, fewest first."""
    reserve: NonNegativeInt = 376
    """Combinations of the common test."""
    threshold: float = Field(default=0.8, lt=1)
    """The held-out R2 that must be reached."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which every architecture must fail."""

    @model_validator(mode="after")
    def _ascend(self) -> Self:
        ascend(self, "numbers")
        if self.control.kind == self.base.family.kind:
            raise ValueError(
                f"control={self.control.kind}: the control must be another family than base.family"
            )
        return self

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for family, numbers in ((self.base.family, self.numbers), (self.control, self.numbers[:1])):
            for network in NETWORKS:
                for number in numbers:
                    changes = {
                        "family": family,
                        "model": getattr(self, network),
                        "support": Random(number=number, reserve=self.reserve),
                    }
                    labels = {"family": family.kind, "network": network, "number": number}
                    found += [
                        (self.run(self.base, seed, **changes), labels | {"replicate": seed})
                        for seed in self.seeds
                    ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores()]

    def needed(self, tables: Tables, network: str) -> list[Reached | None]:
        """The number of combinations at which a network reaches the threshold, by replicate; None if a run failed."""
        scores = np.stack(
            [
                at(
                    tables.runs,
                    "r2_held_out",
                    self.seeds,
                    family=self.base.family.kind,
                    network=network,
                    number=number,
                )
                for number in self.numbers
            ],
            axis=1,
        )
        return [
            reached(self.numbers, curve, self.threshold) if np.isfinite(curve).all() else None
            for curve in scores
        ]

    def effects(self, tables: Tables) -> list[Effect]:
        def score(name: str, family: Family, network: str, number: int) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, family=family.kind, network=network, number=number)

        main, fewest, most = self.base.family, self.numbers[0], self.numbers[-1]
        needed = {network: self.needed(tables, network) for network in NETWORKS}
        values = {}
        for network in NETWORKS:
            values |= {
                f"{network}-fits": score("r2_in", main, network, most),
                f"control-is-learned-by-{network}": score("r2_in", self.control, network, fewest),
                f"control-stays-at-zero-{network}": score(
                    "correlation_held_out", self.control, network, fewest
                ),
            }
        plain = score("r2_held_out", main, "mlp", fewest)
        for network in OTHERS:
            pairs = zip(needed["mlp"], needed[network], strict=True)
            values |= {
                f"{network}-needs-fewer": np.array([doublings(*pair) for pair in pairs]),
                f"{network}-better-with-fewest": score("r2_held_out", main, network, fewest) - plain,
            }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.architectures_figures import figures

        return figures(self, tables)


def doublings(plain: Reached | None, other: Reached | None) -> float:
    """How many times the plain network needs twice the combinations that the other needs; negative if it needs fewer.

    Where one of them was not found within the numbers tried, the end beyond which it lies stands for it: the difference is
    then at least as large as said, whichever sign it has. Where both lie beyond the same end nothing is known of it:
    not a number.
    """
    if plain is None or other is None or (plain.censored != "no" and plain.censored == other.censored):
        return math.nan
    return math.log2(plain.size / other.size)
