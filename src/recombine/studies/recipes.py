"""Do the recipes `fast` and `paper` answer alike?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.recipes.base import Recipe
from recombine.recipes.fast import Fast
from recombine.recipes.paper import Paper
from recombine.stats.verdicts import Claim
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.reduce import at, column
from recombine.studies.supports_pairs import lost, size_of, without_the_part_apart
from recombine.supports.balanced import Balanced
from recombine.supports.base import SupportKind
from recombine.supports.disconnected import Disconnected
from recombine.supports.popular import Popular
from recombine.supports.random import Random
from recombine.supports.unpopular import Unpopular
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

FEW = "random-few"
COMPARED = {
    "disconnected-hurts": ("halves", "random-as-halves"),
    "missing-part-hurts": ("missing-part", "random"),
    "unpopular-hurts": ("unpopular", "random-as-unpopular"),
    "popular-does-not-hurt": ("popular", "random"),
    "balance-does-not-matter": ("balanced", "random"),
}
"""The claims of `supports` that are asked again: a kind of support and what it is held against."""

_claim = claims_of("recipes")


def _again(recipe: str) -> list[Claim]:
    """What `data-scaling` and `supports` claim of the hyperteacher, with their directions and margins."""
    return [
        _claim(
            f"{recipe}-fits",
            f"With {recipe} the network fits its training tasks (r2_in, the lowest of all supports).",
            "above",
            0.8,
            role="precondition",
        ),
        _claim(
            f"{recipe}-rises",
            f"With {recipe} held-out R2 is higher with many training combinations than with few.",
            "greater",
            0.05,
            needs=(f"{recipe}-fits",),
        ),
        *(
            _claim(
                f"{recipe}-{name}",
                f"With {recipe}: R2 lost with the support {kind} against {other}, on combinations that both hold out.",
                "greater" if name.endswith("-hurts") else "equivalent",
                0.05 if name.endswith("-hurts") else 0.02,
                needs=(f"{recipe}-fits",),
            )
            for name, (kind, other) in COMPARED.items()
        ),
    ]


CLAIMS = (
    _claim(
        "equivalent-at-matched-loss",
        "At equal training loss the two recipes have the same held-out R2 (fast less paper, many random combinations).",
        "equivalent",
        0.02,
        primary=True,
    ),
    _claim(
        "equivalent-at-matched-loss-with-few",
        "The same with few training combinations, where recombining is hard.",
        "equivalent",
        0.02,
    ),
    *_again("fast"),
    *_again("paper"),
)
"""Stated before any run, and versioned with this file."""


class Recipes(Study):
    """The supports of `data-scaling` and `supports` on the hyperteacher, trained with either recipe."""

    kind: Literal["recipes"] = "recipes"
    question: ClassVar[str] = "Do a recipe of minutes and the published one answer the same questions alike?"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
            },
            "fast": {"kind": "fast", "steps": 60},
            "paper": {"kind": "paper", "steps": 200, "rate": 1e-3},
            "paper_every": 25,
            "number": 40,
            "few": 15,
            "reserve": 40,
            "popular": 3,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "every": 100},
            "paper": "paper",
            "replicates": 3,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("recipe", "support")
    shown: ClassVar[tuple[str, ...]] = ("score_in", "score_held_out")

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3))
    """What all runs share."""
    fast: field("recipes", Recipe) = Fast()  # type: ignore[valid-type]
    paper: field("recipes", Recipe) = Paper(steps=4500)  # type: ignore[valid-type]
    """At this size 4,500 steps reach the loss that `fast` has after about 220 of its 500."""
    paper_every: PositiveInt = 100
    """Steps of `paper` between two looks."""
    number: PositiveInt = 320
    """Combinations of the random, balanced and popular supports."""
    few: PositiveInt = 40
    """Combinations of the small random support."""
    reserve: NonNegativeInt = 376
    """Combinations that random supports hold out."""
    popular: PositiveInt = 4
    """How many parts are popular."""

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if self.few >= self.number:
            raise ValueError(f"few={self.few} must be less than number={self.number}")
        if self.fast.kind == self.paper.kind:
            raise ValueError("the two recipes must differ in kind")
        return self

    def kinds(self, seed: int) -> dict[str, SupportKind]:
        """The supports of one replicate, by name."""
        space, halves, unpopular = self.base.space, Disconnected(), Unpopular()
        return {
            "random": Random(number=self.number, reserve=self.reserve),
            FEW: Random(number=self.few, reserve=self.reserve),
            "balanced": Balanced(number=self.number),
            "popular": Popular(parts=self.popular, number=self.number),
            "missing-part": without_the_part_apart(space, seed),
            "random-as-halves": Random(number=size_of(halves, space), reserve=self.reserve),
            "halves": halves,
            "random-as-unpopular": Random(number=size_of(unpopular, space), reserve=self.reserve),
            "unpopular": unpopular,
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        recipes = ("fast", self.fast, self.base.every), ("paper", self.paper, self.paper_every)
        for name, recipe, every in recipes:
            for seed in self.seeds:
                for support, kind in self.kinds(seed).items():
                    labels = {
                        "recipe": name,
                        "family": self.base.family.kind,
                        "support": support,
                        "replicate": seed,
                    }
                    run = self.run(self.base, seed, support=kind, recipe=recipe, every=every)
                    found.append((run, labels))
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores()]

    def effects(self, tables: Tables) -> list[Effect]:
        values = {
            "equivalent-at-matched-loss": self._at_matched_loss(tables.curves, "random"),
            "equivalent-at-matched-loss-with-few": self._at_matched_loss(tables.curves, FEW),
        }
        for recipe in ("fast", "paper"):
            own = Tables(
                runs=tables.runs[tables.runs["recipe"] == recipe],
                combinations=tables.combinations[column(tables.combinations, "recipe") == recipe],
                probes=tables.probes,
                curves=tables.curves,
            )

            def score(name: str, support: str, own: Tables = own) -> Float[np.ndarray, " replicate"]:
                return at(own.runs, name, self.seeds, support=support)

            kinds = list(self.kinds(self.first_seed))
            values[f"{recipe}-fits"] = np.min([score("score_in", kind) for kind in kinds], axis=0)
            values[f"{recipe}-rises"] = score("score_held_out", "random") - score("score_held_out", FEW)
            for name, (kind, other) in COMPARED.items():
                values[f"{recipe}-{name}"] = lost(own, self.base.family, list(self.seeds), kind, other)
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def _at_matched_loss(self, curves: pd.DataFrame, support: str) -> Float[np.ndarray, " replicate"]:
        """Held-out score of `fast` less that of `paper` at the lowest loss that both reached.

        A curve has a loss (the mean since the last look) and a score at each look. Between looks both are taken as straight
        over the logarithm of the loss, so that the denser curve does not win by its looks. The choice sees the loss alone.
        """
        found = np.full(len(self.seeds), np.nan)
        for place, seed in enumerate(self.seeds):
            here = curves[(column(curves, "support") == support) & (column(curves, "replicate") == seed)]
            by_recipe = {
                name: part.sort_values("step").assign(loss=lambda one: one["loss"].cummin())
                for name, part in here.groupby("recipe")
            }
            if len(by_recipe) < 2:
                continue
            common = max(part["loss"].min() for part in by_recipe.values())
            fast, paper = (
                float(np.interp(-np.log(common), -np.log(part["loss"]), part["score_held_out"]))
                for part in (by_recipe["fast"], by_recipe["paper"])
            )
            found[place] = fast - paper
        return found

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.recipes_figures import figures

        return figures(self, tables)
