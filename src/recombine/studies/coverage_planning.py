"""Does it matter which combinations are collected, when their number is the same?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.families.preferences import Preferences
from recombine.models.mlp import MLP
from recombine.objectives.classification import Classification
from recombine.probes.base import Measurement
from recombine.probes.certificate import CertificateOfSupport
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.stats.threshold import reached
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.supports.base import SupportKind
from recombine.supports.optimal import Optimal
from recombine.supports.planned import Planned
from recombine.supports.random import Random
from recombine.supports.varied import Strategy, Varied
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

STRATEGIES: tuple[Strategy, ...] = ("random", "diagonal", "L", "stair", "walk")

_claim = claims_of("coverage-planning")

CLAIMS = (
    _claim(
        "fits",
        "The network fits its training tasks with every support of the first arm (r2_in, the lowest of them).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "planned-needs-fewer",
        "A plan reaches the held-out R2 of random combinations with fewer of them (doublings saved; random of the same "
        "size of combination, at the middle number).",
        "greater",
        round(math.log2(1.25), 3),
        primary=True,
        needs=("fits",),
    ),
    _claim(
        "planned-beats-random",
        "With few combinations held-out R2 is higher when they are planned than when they are drawn.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "more-than-balance",
        "... and higher than with combinations chosen for equal usage of the parts.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "pairs-and-not-balance",
        "... and higher than with balanced combinations that repeat their pairs.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "like-d-optimal",
        "Held-out R2 is the same with a plan as with combinations that raise the determinant of E[zz'] most.",
        "equivalent",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "better-than-e-optimal",
        "Held-out R2 is higher with a plan than with combinations that raise the smallest eigenvalue of E[zz'] most.",
        "greater",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "triples-are-not-needed",
        "Planning for triples instead of pairs gives the same held-out R2 (middle number).",
        "equivalent",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "breadth-costs-depth",
        "On combinations whose pairs had all met, R2 is lower with a plan than with random combinations: each pair is seen less "
        "often (few combinations).",
        "less",
        0.0,
        needs=("fits",),
    ),
    _claim(
        "no-gain-with-many",
        "With many combinations planned and random ones give the same held-out R2.",
        "equivalent",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "product-planned-beats-random",
        "Where every factor has a value: with few combinations held-out R2 is higher when they are planned.",
        "greater",
        0.05,
    ),
    _claim(
        "stair-beats-random-by-changes",
        "Where changes of factors are paid for, the stair gives a higher held-out R2 than random combinations.",
        "greater",
        0.05,
    ),
    _claim(
        "stair-beats-l-by-changes",
        "... and than changing one factor at a time from a base.",
        "greater",
        0.02,
    ),
    _claim(
        "walk-beats-stair-by-changes", "... and a covering walk a higher one than the stair.", "greater", 0.02
    ),
    _claim(
        "preferences-planned-beats-random",
        "On preferences: with few combinations the accuracy on held-out ones is higher when they are planned.",
        "greater",
        0.05,
    ),
    _claim(
        "control-gains-nothing",
        "On independent random functions planning changes nothing (correlation within held-out tasks, planned less random).",
        "equivalent",
        0.05,
        role="control",
    ),
)
"""Stated before any run, and versioned with this file."""


class CoveragePlanning(Study):
    """Planned supports against rivals of equal cost, all scored on one reserve that none may train on."""

    kind: Literal["coverage-planning"] = "coverage-planning"
    question: ClassVar[str] = (
        "Does a network recombine better from combinations that were planned than from as many that were not?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 60},
            },
            "numbers": (8, 12, 16),
            "reserve": 40,
            "product": {
                "space": {"kind": "product", "factors": {"a": 3, "b": 3, "c": 3, "d": 3}},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 60},
            },
            "product_numbers": (9, 18),
            "product_reserve": 30,
            "changes": (16,),
            "preferences": {
                "family": {"kind": "preferences", "features": 6},
                "space": {"kind": "subset", "modules": 6, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 1},
                "recipe": {"kind": "fast", "steps": 50, "tasks": 32},
            },
            "preference_numbers": (8,),
            "preference_reserve": 12,
            "replicates": 2,
            "preferences_replicates": 2,
        },
        "demo": {"replicates": 4, "preferences_replicates": 3},
        "laptop": {},
        "paper": {
            "base": {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "recipe": "paper", "every": 100},
            "product": {
                "space": {"kind": "product", "factors": {"a": 5, "b": 5, "c": 5, "d": 5}},
                "model": {"kind": "mlp", "width": 1024, "depth": 4},
                "recipe": "paper",
                "every": 100,
            },
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("arm", "support", "budget")
    shown: ClassVar[tuple[str, ...]] = (
        "size",
        "pairs_met",
        "score_in",
        "score_held_out",
        "score_all_pairs_met",
        "score_some_pairs_unmet",
        "score_part_unseen",
    )

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3), recipe=Fast(steps=500))
    """What the runs of the first arm share."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160)
    """Numbers of training combinations: few, middle, many."""
    reserve: NonNegativeInt = 376
    """Combinations that no support trains on: one common held-out test."""
    product: RunConfig = RunConfig(
        space=ProductSpace(factors={"a": 5, "b": 5, "c": 5, "d": 5}),  # type: ignore[arg-type]
        model=MLP(width=128, depth=3),
        recipe=Fast(steps=500),
    )
    """What the runs of the second arm share: a value for each factor."""
    product_numbers: tuple[PositiveInt, ...] = (30, 60)
    product_reserve: NonNegativeInt = 300
    changes: tuple[PositiveInt, ...] = (24, 48)
    """Budgets in changes of factors; the first combination costs all of them."""
    preferences: RunConfig = RunConfig(
        family=Preferences(features=8, objects=2),
        objective=Classification(),
        space=SubsetSpace(modules=8, max_active=3),
        model=MLP(width=256, depth=2),
        recipe=Fast(steps=1000),
        every=50,
    )
    """What the runs of the third arm share."""
    preference_numbers: tuple[PositiveInt, ...] = (12,)
    preference_reserve: NonNegativeInt = 40
    preferences_replicates: PositiveInt = 8
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which no choice of combinations can help."""

    def model_post_init(self, context: Any) -> None:
        ascend(self, "numbers", least=3)
        ascend(self, "product_numbers")

    @property
    def preferences_seeds(self) -> range:
        """The seeds of the third arm's replicates."""
        return range(self.first_seed, self.first_seed + self.preferences_replicates)

    def kinds(self, number: int) -> dict[str, SupportKind]:
        """The supports of the first arm at one number of combinations, all of the largest size of combination."""
        common: dict[str, Any] = {"number": number, "reserve": self.reserve}
        return {
            "random": Random(**common, sizes="exactly", require_connected=False),
            "planned": Planned(**common),
            "planned-triples": Planned(**common, strength=3),
            "usage": Optimal(**common, criterion="usage"),
            "d-optimal": Optimal(**common, criterion="d"),
            "e-optimal": Optimal(**common, criterion="e"),
            "pair-poor": Optimal(**common, criterion="pair-poor"),
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        return [*self._main(), *self._control(), *self._product(), *self._by_changes(), *self._preferences()]

    def _labelled(
        self, arm: str, base: RunConfig, seed: int, support: str, budget: int, kind: SupportKind, **more: Any
    ) -> tuple[RunConfig, dict[str, Any]]:
        labels = {"arm": arm, "support": support, "budget": budget, "replicate": seed}
        return self.run(base, seed, support=kind, **more), labels

    def _main(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        return [
            self._labelled("modules", self.base, seed, name, number, kind)
            for number in self.numbers
            for seed in self.seeds
            for name, kind in self.kinds(number).items()
        ]

    def _control(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        few = self.numbers[0]
        return [
            self._labelled("control", self.base, seed, name, few, self.kinds(few)[name], family=self.control)
            for seed in self.seeds
            for name in ("random", "planned")
        ]

    def _product(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for number in self.product_numbers:
            common: dict[str, Any] = {"number": number, "reserve": self.product_reserve}
            kinds = {"random": Random(**common, require_connected=False), "planned": Planned(**common)}
            for seed in self.seeds:
                for name, kind in kinds.items():
                    found.append(self._labelled("product", self.product, seed, name, number, kind))
        return found

    def _by_changes(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        space, found = self.product.space, []
        for changes in self.changes:
            for seed in self.seeds:
                for name in STRATEGIES:
                    kind = Varied(strategy=name, reserve=self.product_reserve)
                    kind = kind.model_copy(update={"number": kind.affordable(space, seed, changes)})
                    found.append(self._labelled("changes", self.product, seed, name, changes, kind))
        return found

    def _preferences(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for number in self.preference_numbers:
            common: dict[str, Any] = {"number": number, "reserve": self.preference_reserve}
            random = Random(**common, sizes="exactly", require_connected=False)
            for seed in self.preferences_seeds:
                for name, kind in (("random", random), ("planned", Planned(**common))):
                    found.append(self._labelled("preferences", self.preferences, seed, name, number, kind))
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(), CertificateOfSupport()]

    def effects(self, tables: Tables) -> list[Effect]:
        few, middle, many = self.numbers[0], self.numbers[len(self.numbers) // 2], self.numbers[-1]

        def score(
            support: str, budget: int, arm: str = "modules", name: str = "score_held_out"
        ) -> Float[np.ndarray, " replicate"]:
            seeds = self.preferences_seeds if arm == "preferences" else self.seeds
            return at(tables.runs, name, seeds, arm=arm, support=support, budget=budget)

        def ahead(
            first: str, second: str, budget: int, arm: str = "modules"
        ) -> Float[np.ndarray, " replicate"]:
            return score(first, budget, arm) - score(second, budget, arm)

        fits = [
            score(name, number, name="score_in") for number in self.numbers for name in self.kinds(number)
        ]
        dear, rare = self.changes[-1], self.preference_numbers[0]
        values = {
            "fits": np.min(fits, axis=0),
            "planned-needs-fewer": self._saved(tables),
            "planned-beats-random": ahead("planned", "random", few),
            "more-than-balance": ahead("planned", "usage", few),
            "pairs-and-not-balance": ahead("planned", "pair-poor", few),
            "like-d-optimal": ahead("planned", "d-optimal", few),
            "better-than-e-optimal": ahead("planned", "e-optimal", few),
            "triples-are-not-needed": ahead("planned-triples", "planned", middle),
            "breadth-costs-depth": score("planned", few, name="score_all_pairs_met")
            - score("random", few, name="score_all_pairs_met"),
            "no-gain-with-many": ahead("planned", "random", many),
            "product-planned-beats-random": ahead("planned", "random", self.product_numbers[0], "product"),
            "stair-beats-random-by-changes": ahead("stair", "random", dear, "changes"),
            "stair-beats-l-by-changes": ahead("stair", "L", dear, "changes"),
            "walk-beats-stair-by-changes": ahead("walk", "stair", dear, "changes"),
            "preferences-planned-beats-random": ahead("planned", "random", rare, "preferences"),
            "control-gains-nothing": score("planned", few, "control", "correlation_held_out")
            - score("random", few, "control", "correlation_held_out"),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def _saved(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """Doublings of the number of combinations that a plan saves at the score of random ones in the middle.

        Where even the fewest planned combinations are better, the saving is at least what is given here; it is then counted as that.
        """
        middle = self.numbers[len(self.numbers) // 2]
        curves = np.stack(
            [
                at(tables.runs, "score_held_out", self.seeds, arm="modules", support="planned", budget=number)
                for number in self.numbers
            ],
            axis=1,
        )
        wanted = at(tables.runs, "score_held_out", self.seeds, arm="modules", support="random", budget=middle)
        return np.array(
            [
                math.log2(middle / reached(self.numbers, curve, score).size)
                if np.isfinite(curve).all() and math.isfinite(score)
                else np.nan
                for curve, score in zip(curves, wanted, strict=True)
            ]
        )

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.coverage_planning_figures import figures

        return figures(self, tables)
