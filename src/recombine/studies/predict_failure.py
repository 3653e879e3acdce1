"""Which held-out combinations will a network fail on, and what tells so best?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.base import Model
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.readout import Readout
from recombine.probes.scores import Scores
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.predict_failure_race import CONTROL, DECIDE, FIT, Raced, cases, raced
from recombine.studies.reduce import at
from recombine.supports.gaps import Gaps
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure


_claim = claims_of("predict-failure")


NEEDS = ("fits", "some-fail-and-some-do-not")

CLAIMS = (
    _claim(
        "fits",
        "The networks fit their training tasks (lowest r2_in of a replicate).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "some-fail-and-some-do-not",
        "Held-out combinations of both sorts are there to be told apart (share of the rarer sort).",
        "above",
        0.1,
        role="precondition",
    ),
    _claim(
        "coverage-predicts",
        "What is known before training (pairs met, frequency of parts, distance, certificate of the support) predicts on "
        "which held-out combinations of unseen runs a network will fail, better than the base rate (log-loss, nats).",
        "greater",
        0.02,
        primary=True,
        needs=NEEDS,
    ),
    _claim(
        "coverage-tells-combinations-apart",
        "What is known of the combination adds to what is known of the support as a whole (log-loss).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "decodability-predicts",
        "How badly a probe reads the combination off the deepest layer predicts failure better than the base rate (log-loss).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "decodability-adds",
        "Decodability adds to what is known before training (log-loss).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "coverage-adds",
        "What is known before training adds to decodability (log-loss).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "calibrated",
        "The chances that all predictors together give come true as often as they say (expected calibration error).",
        "below",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "control-permuted",
        "Where outcomes are exchanged among the combinations of a run, what is known of a combination adds nothing to "
        "what is known of the support (log-loss, all predictors less the certificate).",
        "equivalent",
        0.02,
        role="control",
        needs=NEEDS,
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: r2_in with the fewest combinations.",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-always-fails",
        "On independent random functions every held-out combination fails, covered or not (share that fails).",
        "above",
        0.95,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class PredictFailure(Study):
    """A race of predictors: fitted on some replicates, judged on others (other teachers, supports and networks).

    The unit is a held-out combination in a run, and it fails if its score (pooled over its tasks) is below a threshold.
    Supports are random ones of several sizes and ones with gaps, so that there are failures of many sorts.
    """

    kind: Literal["predict-failure"] = "predict-failure"
    question: ClassVar[str] = (
        "Can one say beforehand which combinations a network will fail on, and does a look inside tell more?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 10, "max_active": 3},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "model": {"kind": "mlp", "width": 64, "depth": 2},
            "numbers": (30, 110),
            "reserve": 60,
            "gap_numbers": (50,),
            "pairs": 4,
            "gap_reserve": 60,
            "threshold": 0.2,
            "fit_replicates": 2,
            "replicates": 2,
        },
        "demo": {"replicates": 4, "fit_replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "space": {"kind": "subset", "modules": 16, "max_active": 4},
                "recipe": "paper",
                "every": 100,
            },
            "model": {"kind": "mlp", "width": 1024, "depth": 4},
            "numbers": (64, 256, 1024),
            "reserve": 1000,
            "gap_numbers": (64, 256, 1024),
            "gap_reserve": 500,
        },
    }

    base: RunConfig = RunConfig()
    """What all runs share; model and support are set by the sweep."""
    model: field("models", Model) = MLP(width=128, depth=3)  # type: ignore[valid-type]
    numbers: tuple[PositiveInt, ...] = (40, 80, 160, 320)
    """Numbers of combinations of the random supports."""
    reserve: PositiveInt = 376
    """Combinations of their common test."""
    gap_numbers: tuple[PositiveInt, ...] = (64, 128, 256)
    """Numbers of combinations of the supports with gaps."""
    parts: NonNegativeInt = 1
    """Constituents that these never show."""
    pairs: NonNegativeInt = 12
    """Pairs of the others that never meet in these."""
    gap_reserve: PositiveInt = 200
    """Combinations of their common test."""
    threshold: float = Field(default=0.7, lt=1)
    """A combination fails if its score is below this."""
    fit_replicates: PositiveInt = 6
    """Further replicates, with the seeds after those that decide: predictors are fitted on these alone."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which everything must fail."""

    @model_validator(mode="after")
    def _supports(self) -> Self:
        ascend(self, "numbers", "gap_numbers", least=1)
        return self

    @property
    def fit_seeds(self) -> range:
        """The seeds of the replicates that predictors are fitted on."""
        return range(self.seeds.stop, self.seeds.stop + self.fit_replicates)

    @property
    def supports(self) -> list[tuple[Random | Gaps, dict[str, Any]]]:
        """The supports of a replicate, with their labels."""
        found: list[Random | Gaps] = [Random(number=one, reserve=self.reserve) for one in self.numbers]
        found += [
            Gaps(number=one, parts=self.parts, pairs=self.pairs, reserve=self.gap_reserve)
            for one in self.gap_numbers
        ]
        return [(support, {"support": support.kind, "number": support.number}) for support in found]

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        ends = dict.fromkeys((self.numbers[0], self.numbers[-1]))
        few_and_many = [
            one for one in self.supports if one[1]["support"] == "random" and one[1]["number"] in ends
        ]
        main = self.base.family
        found = []
        for role, family, supports, seeds in (
            (DECIDE, main, self.supports, self.seeds),
            (FIT, main, self.supports, self.fit_seeds),
            (CONTROL, self.control, few_and_many, self.seeds),
        ):
            for support, names in supports:
                changes = {"family": family, "model": self.model, "support": support}
                labels = {"family": family.kind, "role": role} | names
                found += [
                    (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in seeds
                ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(), Readout()]

    def race(self, tables: Tables, permuted: bool = False) -> Raced:
        """The predictors, fitted and judged; with `permuted` on outcomes exchanged within each run."""
        table = cases(tables, self.threshold)
        return raced(table[table["role"] != CONTROL], len(self.supports), list(self.seeds), permuted)

    def effects(self, tables: Tables) -> list[Effect]:
        seeds = list(self.seeds)
        found, exchanged = self.race(tables), self.race(tables, permuted=True)
        table = cases(tables, self.threshold)
        deciding = tables.runs[tables.runs["role"] == DECIDE]
        fits = [at(deciding, "r2_in", seeds, **names) for _, names in self.supports]
        control = tables.runs[tables.runs["role"] == CONTROL]
        gain = found.gain
        values = {
            "fits": np.min(fits, axis=0),
            "some-fail-and-some-do-not": np.minimum(found.share, 1 - found.share),
            "coverage-predicts": gain["coverage"],
            "coverage-tells-combinations-apart": gain["coverage"] - gain["certificate"],
            "decodability-predicts": gain["decodability"],
            "decodability-adds": gain["both"] - gain["coverage"],
            "coverage-adds": gain["both"] - gain["decodability"],
            "calibrated": found.calibration["both"],
            "control-permuted": exchanged.gain["both"] - exchanged.gain["certificate"],
            "control-is-learned": at(control, "r2_in", seeds, number=self.numbers[0]),
            "control-always-fails": self._failures(table[table["role"] == CONTROL]),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def _failures(self, control: pd.DataFrame) -> Float[np.ndarray, " replicate"]:
        """The share of the control's held-out combinations that fail, mean of its runs, by replicate."""
        ends = {self.numbers[0], self.numbers[-1]}
        shares = control.groupby(["number", "replicate"])["fails"].mean().reset_index()
        by_run = [at(shares, "fails", self.seeds, number=number) for number in sorted(ends)]
        return np.mean(by_run, axis=0)

    def overview(self, tables: Tables) -> pd.DataFrame:
        """A row for each predictor: how well it did on unseen runs, means over replicates."""
        return self.race(tables).overview()

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.predict_failure_figures import figures

        return figures(self, tables)
