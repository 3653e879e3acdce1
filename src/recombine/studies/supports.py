"""Which kinds of training support hurt, and which do not?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.families.lookup_preferences import LookupPreferences
from recombine.families.preferences import Preferences
from recombine.models.mlp import MLP
from recombine.objectives.classification import Classification
from recombine.probes.base import Measurement
from recombine.probes.certificate import CertificateOfSupport
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.subset import SubsetSpace
from recombine.stats.verdicts import Claim, Direction
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.reduce import at
from recombine.studies.supports_pairs import lost, size_of, without_the_part_apart
from recombine.supports.balanced import Balanced
from recombine.supports.base import SupportKind
from recombine.supports.by_size import BySize
from recombine.supports.disconnected import Disconnected
from recombine.supports.gaps import Gaps
from recombine.supports.popular import Popular
from recombine.supports.random import Random
from recombine.supports.unpopular import Unpopular
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

CONTROL = "control"
"""The name of the random support on which a control is trained."""

COMPARED = {
    "balanced": "random",
    "popular": "random",
    "missing-part": "random",
    "halves": "random-as-halves",
    "unpopular": "random-as-unpopular",
    "published": "missing-part",
}
"""What each kind of support is held against."""

COMPARED_PREFERENCES = {"popular": "random", "missing-part": "random", "halves": "random"}


_claim = claims_of("supports")


def _on_preferences(name: str, statement: str, direction: Direction) -> Claim:
    needs = "preferences-fit", "preferences-recombine"
    return _claim(f"preferences-{name}", f"On preferences: {statement}", direction, 0.05, needs=needs)


CLAIMS = (
    _claim(
        "fits",
        "With every kind of support that is compared the network fits its training tasks (r2_in, the lowest of them).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "disconnected-hurts",
        "Held-out R2 is lower when the parts form two halves that never meet in training than with a connected random "
        "support of as many combinations (the same combinations of both halves, trained in neither).",
        "greater",
        0.05,
        primary=True,
        needs=("fits",),
    ),
    _claim(
        "missing-part-hurts",
        "R2 on combinations with a part that training left out is lower than with a random support that had the part, "
        "although that support has fewer combinations (the same held-out combinations).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "popular-does-not-hurt",
        "Held-out R2 is the same when every training combination holds one of a few popular parts as with a random support "
        "of as many combinations (the same held-out combinations).",
        "equivalent",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "balance-does-not-matter",
        "Held-out R2 is the same when all parts are used equally often as with a random support of as many combinations "
        "(the same held-out combinations).",
        "equivalent",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "unpopular-hurts",
        "Held-out R2 is lower when the parts outside a core occur in one training combination each than with a random "
        "support of as many combinations (the same held-out combinations).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "published-is-nearly-missing",
        "A part that training shows only by itself, as the published disconnected support has it, is recombined as badly as "
        "one that it never shows (R2 on the same combinations with this part).",
        "equivalent",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: r2_in on independent random functions.",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "On independent random functions predictions for held-out combinations have nothing to do with the truth "
        "(correlation within tasks).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
    _claim(
        "preferences-fit",
        "On preferences the network fits its training tasks with every kind of support (accuracy of whole episodes, the "
        "lowest of them).",
        "above",
        0.5,
        role="precondition",
    ),
    _claim(
        "preferences-recombine",
        "With the same random support held-out accuracy is higher on preferences than on independent preferences for each "
        "combination, where nothing can be recombined.",
        "greater",
        0.05,
        role="control",
        needs=("preferences-fit",),
    ),
    _on_preferences(
        "disconnected-hurts",
        "held-out accuracy is lower when the parts form two halves that never meet than with as many random combinations.",
        "greater",
    ),
    _on_preferences(
        "missing-part-hurts",
        "accuracy on combinations with a part that training left out is lower than with a random support that had it.",
        "greater",
    ),
    _on_preferences(
        "popular-does-not-hurt",
        "held-out accuracy is the same when every training combination holds a popular part as with as many random ones.",
        "equivalent",
    ),
)
"""Stated before any run, and versioned with this file."""


class Supports(Study):
    """Held-out scores of networks trained on supports of every kind, beside what each support's certificate says.

    Two kinds are compared within a replicate: one teacher, and only combinations that both hold out.
    """

    kind: Literal["supports"] = "supports"
    question: ClassVar[str] = "Which kinds of training support does a network recombine from?"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "number": 40,
            "reserve": 40,
            "popular": 3,
            "gaps": {"kind": "gaps", "number": 25, "pairs": 3, "reserve": 30},
            "control_number": 15,
            "preferences": {
                "family": {"kind": "preferences", "features": 6},
                "space": {"kind": "subset", "modules": 6, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 1},
                "recipe": {"kind": "fast", "steps": 50, "tasks": 32},
            },
            "independent_preferences": {"kind": "lookup-preferences", "features": 6},
            "replicates": 2,
            "preferences_replicates": 2,
        },
        "demo": {"replicates": 4, "preferences_replicates": 3},
        "laptop": {},
        "paper": {
            "base": {
                "model": {"kind": "mlp", "width": 1024, "depth": 4},
                "recipe": "paper",
                "every": 100,
            },
            "preferences": {
                "family": "preferences",
                "model": {"kind": "mlp", "width": 1024, "depth": 2},
                "recipe": {"kind": "paper", "rate": 1e-4, "decay": 1e-3, "steps": 3_000_000},
                "every": 1000,
            },
            "independent_preferences": "lookup-preferences",
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "support")
    shown: ClassVar[tuple[str, ...]] = (
        "size",
        "complete",
        "connected",
        "groups",
        "pairs_met",
        "usage_min",
        "score_in",
        "score_held_out",
        "score_all_pairs_met",
        "score_some_pairs_unmet",
        "score_part_unseen",
    )

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3))
    """What all runs of the first arm share; support and family are set by the sweep."""
    number: PositiveInt = 320
    """Combinations of the random, balanced and popular supports."""
    reserve: NonNegativeInt = 376
    """Combinations that random supports of all lengths hold out. Other kinds hold out all that they do not train on."""
    popular: PositiveInt = 4
    """How many parts are popular."""
    factor: PositiveFloat = 2.0
    """Combinations for each part of the support whose length is linear in the number of parts."""
    gaps: Gaps = Gaps(number=256, reserve=200)
    """A support with an unseen part and unmet pairs; it is shown, and no claim is about it."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which held-out combinations must fail."""
    control_number: PositiveInt = 40
    """Combinations of the control: few, so that it can be learned at all."""
    preferences: RunConfig = RunConfig(
        family=Preferences(features=8, objects=2),
        objective=Classification(),
        space=SubsetSpace(modules=8, max_active=3),
        model=MLP(width=256, depth=2),
        recipe=Fast(steps=1000),
        every=50,
    )
    """What all runs of the second arm share. Its random and popular supports are as long as its two halves."""
    preferences_popular: PositiveInt = 2
    """How many parts are popular in the second arm."""
    preferences_replicates: PositiveInt = 8
    independent_preferences: field("families", Family) = LookupPreferences(features=8, objects=2)  # type: ignore[valid-type]
    """The control of the second arm."""

    @model_validator(mode="after")
    def _families_differ(self) -> Self:
        kinds = [
            family.kind
            for family in (
                self.base.family,
                self.control,
                self.preferences.family,
                self.independent_preferences,
            )
        ]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"the two arms and their controls must be four different families, got {kinds}")
        return self

    @property
    def preferences_seeds(self) -> range:
        """The seeds of the second arm's replicates."""
        return range(self.first_seed, self.first_seed + self.preferences_replicates)

    def kinds(self, seed: int) -> dict[str, SupportKind]:
        """The supports of the first arm in one replicate, by the name of their row."""
        space, halves, unpopular = self.base.space, Disconnected(), Unpopular()
        return {
            "random": Random(number=self.number, reserve=self.reserve),
            "balanced": Balanced(number=self.number),
            "popular": Popular(parts=self.popular, number=self.number),
            "missing-part": without_the_part_apart(space, seed),
            "published": Disconnected(groups="published"),
            "random-as-halves": Random(number=size_of(halves, space), reserve=self.reserve),
            "halves": halves,
            "random-as-unpopular": Random(number=size_of(unpopular, space), reserve=self.reserve),
            "unpopular": unpopular,
            "gaps": self.gaps,
            "by-size": BySize(rule="linear", factor=self.factor, reserve=self.reserve),
        }

    def preference_kinds(self, seed: int) -> dict[str, SupportKind]:
        """The supports of the second arm in one replicate."""
        space, halves = self.preferences.space, Disconnected()
        number = size_of(halves, space)
        return {
            "random": Random(number=number),
            "popular": Popular(parts=self.preferences_popular, number=number),
            "missing-part": without_the_part_apart(space, seed),
            "halves": halves,
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        arms = (
            (self.base, self.seeds, self.kinds, self.control),
            (self.preferences, self.preferences_seeds, self.preference_kinds, self.independent_preferences),
        )
        for base, seeds, kinds, control in arms:
            for seed in seeds:
                for name, support in kinds(seed).items():
                    labels = {"family": base.family.kind, "support": name, "replicate": seed}
                    found.append((self.run(base, seed, support=support), labels))
                support = kinds(seed)["random"]
                if control is self.control:
                    support = Random(number=self.control_number, reserve=self.reserve)
                labels = {"family": control.kind, "support": CONTROL, "replicate": seed}
                found.append((self.run(base, seed, family=control, support=support), labels))
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(), CertificateOfSupport()]

    def effects(self, tables: Tables) -> list[Effect]:
        def score(name: str, family: Family, support: str) -> Float[np.ndarray, " replicate"]:
            seeds = self.seeds if family in (self.base.family, self.control) else self.preferences_seeds
            return at(tables.runs, name, seeds, family=family.kind, support=support)

        def lowest(family: Family, compared: dict[str, str]) -> Float[np.ndarray, " replicate"]:
            kinds = dict.fromkeys([*compared, *compared.values()])
            return np.min([score("score_in", family, kind) for kind in kinds], axis=0)

        main, other = self.base.family, self.preferences.family
        gone = {kind: lost(tables, main, self.seeds, kind, against) for kind, against in COMPARED.items()}
        gone_on_preferences = {
            kind: lost(tables, other, self.preferences_seeds, kind, against)
            for kind, against in COMPARED_PREFERENCES.items()
        }
        values = {
            "fits": lowest(main, COMPARED),
            "disconnected-hurts": gone["halves"],
            "missing-part-hurts": gone["missing-part"],
            "popular-does-not-hurt": gone["popular"],
            "balance-does-not-matter": gone["balanced"],
            "unpopular-hurts": gone["unpopular"],
            "published-is-nearly-missing": gone["published"],
            "control-is-learned": score("score_in", self.control, CONTROL),
            "control-stays-at-zero": score("correlation_held_out", self.control, CONTROL),
            "preferences-fit": lowest(other, COMPARED_PREFERENCES),
            "preferences-recombine": score("score_held_out", other, "random")
            - score("score_held_out", self.independent_preferences, CONTROL),
            "preferences-disconnected-hurts": gone_on_preferences["halves"],
            "preferences-missing-part-hurts": gone_on_preferences["missing-part"],
            "preferences-popular-does-not-hurt": gone_on_preferences["popular"],
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.supports_figures import figures

        return figures(self, tables)
