"""Does it matter which combinations are collected, when their number is the same?"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, control, statistic
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.probes import CertificateOfSupport, Scores
from recombine.recipes import Fast
from recombine.spaces import ProductSpace
from recombine.stats.threshold import reached
from recombine.studies.paired_supports import WHERE, on_common_combinations
from recombine.studies.shapes import PAPER_RUN, PREFERENCES, SMOKE_PREFERENCES, ascending, fits, other_family, skill
from recombine.supports import Optimal, Planned, Random, Varied
from recombine.training.config import RunConfig

FACTORS: dict[str, Any] = {"kind": "product", "factors": {"a": 5, "b": 5, "c": 5, "d": 5}}
SMOKE = {"model": {"kind": "mlp", "width": 32, "depth": 2}, "recipe": {"kind": "fast", "steps": 60}}

NAMES = {
    "planned": "planned for pairs",
    "planned-triples": "planned for triples",
    "d-optimal": "D-optimal",
    "e-optimal": "E-optimal",
    "usage": "equal usage",
    "random": "random",
    "pair-poor": "balanced, pair-poor",
}
STRATEGIES = {
    "walk": "covering walk",
    "stair": "stair",
    "L": "L: one factor at a time",
    "diagonal": "diagonal",
    "random": "random",
}


class CoveragePlanning(Study):
    """Does a network recombine better from combinations that were planned than from as many that were not?

    Planned supports against rivals of equal cost, all scored on one reserve that none of them may train on.
    """

    kind: Literal["coverage-planning"] = "coverage-planning"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": SMOKE | {"space": {"kind": "subset", "modules": 8, "max_active": 3}},
            "numbers": (8, 12, 16),
            "reserve": 40,
            "product": SMOKE | {"space": {"kind": "product", "factors": {"a": 3, "b": 3, "c": 3, "d": 3}}},
            "product_numbers": (9, 18),
            "product_reserve": 30,
            "changes": (16,),
            "preferences": SMOKE_PREFERENCES,
            "preference_numbers": (8,),
            "preference_reserve": 12,
            "replicates": 2,
            "preferences_replicates": 2,
        },
        "demo": {"replicates": 4, "preferences_replicates": 3},
        "laptop": {"replicates": 36, "first_seed": 4000},
        "paper": {"base": PAPER_RUN, "product": PAPER_RUN | {"space": FACTORS}},
    }
    shown: ClassVar[tuple[str, ...]] = ("size", "pairs_met", "score_held_out", *WHERE)

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3), recipe=Fast(steps=500))
    """What the runs on subsets of modules share."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160)
    """Numbers of training combinations: few, middle, many."""
    reserve: NonNegativeInt = 376
    """Combinations that no support trains on: one common held-out test."""
    product: RunConfig = RunConfig(
        space=ProductSpace.model_validate(FACTORS), model=MLP(width=128, depth=3), recipe=Fast(steps=500)
    )
    """What the runs on a product of factors share: each combination has a value for each factor."""
    product_numbers: tuple[PositiveInt, ...] = (30, 60)
    """Numbers of training combinations there."""
    product_reserve: NonNegativeInt = 300
    """Combinations of the common test there."""
    changes: tuple[PositiveInt, ...] = (24, 48)
    """Budgets in changes of factors; the first combination costs one change per factor."""
    preferences: RunConfig = PREFERENCES.replace(
        modules=8, number=60, features=8, coefficients="discrete", steps=1000, eval_every=50
    )
    """What the runs on preferences share. They are trained briefly: what matters here is which combinations help first."""
    preference_numbers: tuple[PositiveInt, ...] = (12,)
    """Numbers of training combinations there."""
    preference_reserve: NonNegativeInt = 40
    """Combinations of the common test there."""
    preferences_replicates: PositiveInt = 8
    """Replicates there: a run takes longer."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which no choice of combinations can help."""

    def check(self) -> None:
        other_family(self)
        ascending(self, "numbers", least=3)
        ascending(self, "product_numbers")

    def arms(self) -> dict[str, Arm]:
        def two(reserve: int, **settings: Any) -> dict[str, Any]:
            random = Random(reserve=reserve, require_connected=False, **settings)
            return {"random": random, "planned": Planned(reserve=reserve)}

        # All supports have combinations of the largest size only.
        pair, reserve = two(self.reserve, sizes="exactly"), self.reserve
        kinds = {
            **pair,
            "planned-triples": Planned(reserve=reserve, strength=3),
            "usage": Optimal(reserve=reserve, criterion="usage"),
            "d-optimal": Optimal(reserve=reserve, criterion="d"),
            "e-optimal": Optimal(reserve=reserve, criterion="e"),
            "pair-poor": Optimal(reserve=reserve, criterion="pair-poor"),
        }
        modules = Arm(self.base, support=kinds, number=self.numbers)
        return {
            "modules": modules,
            "lookup": modules.replace(family=self.control, support=pair, number=self.numbers[:1]),
            "product": Arm(self.product, support=two(self.product_reserve), number=self.product_numbers),
            "changes": Arm(self.product, support=dict.fromkeys(STRATEGIES, self.affordable), changes=self.changes),
            "preferences": Arm(
                self.preferences,
                support=two(self.preference_reserve, sizes="exactly"),
                number=self.preference_numbers,
                seeds=self.seeds_for(self.preferences_replicates),
            ),
        }

    def affordable(self, cell: Any) -> Varied:
        """A strategy with the combinations that a budget of changes pays for."""
        kind = Varied(strategy=cell.support, reserve=self.product_reserve)
        return kind.replace(number=kind.affordable(self.product.space, cell.seed, cell.changes))

    def measurements(self) -> list[Any]:
        return [Scores(), CertificateOfSupport()]

    def claims(self, modules: Arm, lookup: Arm, product: Arm, changes: Arm, preferences: Arm) -> Claims:
        few, middle, many = self.numbers[0], self.numbers[len(self.numbers) // 2], self.numbers[-1]

        def ahead(first: str, second: str, arm: Arm = modules, column: str = "score_held_out", **cell: int) -> Column:
            """A column with one support minus that with another, by default with few combinations of modules."""
            scores = arm[column].at(**(cell or {"number": few}))
            return scores.at(support=first) - scores.at(support=second)

        def better(first: str, second: str, arm: Arm = modules, **cell: int) -> Column:
            """Held-out R2 with one support minus that with another, on every scale of the score."""
            scores = skill(arm["score_held_out"].at(**(cell or {"number": few})))
            return scores.at(support=first) - scores.at(support=second)

        own, rival = (
            skill(statistic(self.covered_by_both, modules, support=support)) for support in ("planned", "random")
        )

        yield fits(
            modules["score_in"].lowest(),
            "The network fits its training tasks with every support on subsets of modules (lowest r2_in).",
        )
        yield claim(
            "planned-needs-fewer",
            statistic(self.doublings_saved, modules, middle=middle).greater(round(math.log2(1.25), 3)),
            "A plan reaches the held-out R2 of random combinations with fewer combinations (doublings saved; random "
            "combinations of the same size, at the middle number).",
            primary=True,
            needs="fits",
        )
        for name, (test, text) in {
            "planned-beats-random": (
                better("planned", "random").greater(),
                "With few combinations, held-out R2 is higher when they are planned than when they are drawn at random.",
            ),
            "more-than-balance": (
                better("planned", "usage").greater(),
                "With few combinations, held-out R2 is higher with a plan than with combinations chosen for equal usage of the "
                "constituents.",
            ),
            "pairs-and-not-balance": (
                better("planned", "pair-poor").greater(),
                "With few combinations, held-out R2 is higher with a plan than with balanced combinations that repeat pairs.",
            ),
            "like-d-optimal": (
                better("planned", "d-optimal").equivalent(),
                "Held-out R2 is the same with a plan as with combinations that raise the determinant of E[zz'] most.",
            ),
            "better-than-e-optimal": (
                better("planned", "e-optimal").greater(),
                "Held-out R2 is higher with a plan than with combinations that raise the smallest eigenvalue of E[zz'] most.",
            ),
            "triples-are-not-needed": (
                better("planned-triples", "planned", number=middle).equivalent(),
                "Planning for triples instead of pairs gives the same held-out R2 (middle number).",
            ),
            "breadth-costs-depth": (
                (own - rival).less(),
                "On combinations whose pairs had all met with either support, R2 is lower with a plan than with random "
                "combinations: each pair is seen less often (few combinations).",
            ),
            "no-gain-with-many": (
                better("planned", "random", number=many).equivalent(),
                "With many combinations, planned and random ones give the same held-out R2.",
            ),
        }.items():
            yield claim(name, test, text, needs="fits", version=2)
        yield claim(
            "product-planned-beats-random",
            better("planned", "random", product, number=self.product_numbers[0]).greater(),
            "Where every factor has a value: with few combinations, held-out R2 is higher when they are planned.",
            version=2,
        )
        stair = "the stair gives a higher held-out R2 than"
        for first, second, text in (
            ("stair", "random", f"Where changes of factors are the cost, {stair} random combinations."),
            ("stair", "L", f"At equal changes, {stair} changing one factor at a time from a base."),
            ("walk", "stair", "At equal changes, a covering walk gives a higher held-out R2 than the stair."),
        ):
            lead = better(first, second, changes, changes=self.changes[-1])
            yield claim(f"{first}-beats-{second.lower()}-by-changes", lead.greater(), text, version=2)
        yield claim(
            "preferences-planned-beats-random",
            ahead("planned", "random", preferences, number=self.preference_numbers[0]).greater(0.05),
            "On preferences: with few combinations, the accuracy on held-out ones is higher when they are planned.",
        )
        yield control(
            "control-gains-nothing",
            ahead("planned", "random", lookup, "correlation_held_out").equivalent(0.05),
            "On independent random functions planning changes nothing (correlation within held-out tasks, planned minus random).",
        )

    def doublings_saved(self, tables: Tables, middle: int) -> pd.Series:
        """Doublings of the number of combinations that a plan saves at the score of the middle number of random ones.

        Where even the fewest planned combinations are better, the true saving is at least the one given.
        """
        runs = tables.runs.reindex(columns=["replicate", "support", "number", "score_held_out"])
        scores = runs.pivot(index="replicate", columns=["support", "number"], values="score_held_out")
        saved = {}
        for replicate, row in scores.astype(float).iterrows():
            curve, wanted = row["planned"].reindex(list(self.numbers)).to_numpy(), row["random"][middle]
            if np.isfinite([*curve, wanted]).all():
                saved[replicate] = math.log2(middle / reached(self.numbers, curve, wanted).size)
        return scores.index.to_series().map(saved)

    def covered_by_both(self, tables: Tables, support: str) -> pd.Series:
        """R2 with few combinations, on those held-out ones whose pairs had all met with the planned and with the random ones."""
        frame = tables.combinations
        if "region" not in frame:
            return pd.Series(dtype=float)
        frame = frame[(frame["number"] == self.numbers[0]) & (frame["stratum"] == "all_pairs_met")]
        own, other = (
            frame[frame["support"] == kind] for kind in (support, "random" if support == "planned" else "planned")
        )
        return on_common_combinations(own, other, self.base.family)

    def figures(self, modules: Arm, changes: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        style: dict[str, Any] = {"series": "support", "floor": -0.25, "ceiling": 1.0, "y_title": "held-out R²"}
        yield lines(
            modules,
            x="number",
            y="score_held_out",
            name="score_by_number",
            title="How many combinations does planning save?",
            caption="R² on combinations that no support may train on, the same for all supports. Every support has combinations of "
            "the largest size only, so the curves differ only in which combinations were chosen.",
            labels=NAMES,
            x_title="training combinations",
            **style,
        )
        yield dots(
            modules.frame[modules.frame["number"] == self.numbers[0]],
            category="support",
            measures={column: words for column, words in WHERE.items() if column != "score_in"},
            name="score_by_stratum",
            title="Where is the gain?",
            caption=f"{self.numbers[0]} training combinations. Held-out combinations by what training showed of their constituents: a plan "
            "leaves fewer pairs that never met, and shows each pair less often.",
            labels=NAMES,
            floor=-0.5,
            ceiling=1.0,
            x_title="R²",
        )
        yield lines(
            changes,
            x="changes",
            y="score_held_out",
            name="score_by_changes",
            title="Which strategy is worth its changes?",
            caption="Where changing a factor is work (rebuilding a scene), strategies are compared by the number of changes and not "
            "of combinations. The first combination costs all factors, each further one the factors that differ.",
            labels=STRATEGIES,
            x_title="changes of factors",
            **style,
        )
