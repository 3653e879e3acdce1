"""Can one predict on which combinations a network will fail, and do its activations tell more?"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, StudyClaim, Tables, claim, control, precondition
from recombine.design.column import Column, statistic
from recombine.families import Family, Lookup
from recombine.models import MLP, Model
from recombine.probes import Measurement, Readout, Scores
from recombine.stats import ReplicateRace, brier, calibration_table, race_by_replicate
from recombine.studies.shapes import PAPER_RUN, SMOKE_SPACE, ascending, fits
from recombine.supports import Gaps, Random
from recombine.training.config import RunConfig

CERTIFICATE = ("log_size", "pairs_covered", "triples_covered", "smallest_eigenvalue")
PAIRS = ("pairs_met", "pairs_unmet", "log_rarest_pair")
FREQUENCY = ("log_rarest_part", "unseen")
COVERAGE = ("parts", *PAIRS, *FREQUENCY, "distance", *CERTIFICATE)
PREDICTORS: dict[str, tuple[str, ...]] = {
    "distance": ("distance",),
    "frequency": FREQUENCY,
    "pairs": PAIRS,
    "certificate": CERTIFICATE,
    "coverage": COVERAGE,
    "decodability": ("log_error",),
    "both": (*COVERAGE, "log_error"),
}
"""The columns of each predictor. All but the last two are known before training."""
NAMES = {
    "distance": "distance to training",
    "frequency": "frequency of its parts",
    "pairs": "pairs that met",
    "certificate": "certificate of the support",
    "coverage": "all that is known before training",
    "decodability": "decodability, after training",
    "both": "all together",
}
COUNTS = ("size", "rarest_pair", "rarest_part")
"""Columns that enter as log(1 + count): from 0 to 1 is a larger step than from 100 to 101."""
NEEDS = ("fits", "some-fail-and-some-do-not")


class PredictFailure(Study):
    """Can one predict on which combinations a network will fail, and do its activations tell more?

    Predictors are fitted on some replicates and scored on others, with other teachers, supports and networks. The unit is a
    held-out combination in a run. It fails if its score (pooled over its tasks) is below a threshold. Supports are random, of
    several sizes, or have gaps, so there are failures of many kinds.
    """

    kind: Literal["predict-failure"] = "predict-failure"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"space": SMOKE_SPACE, "recipe": {"kind": "fast", "steps": 50}},
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
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 4}, "recipe": "paper", "eval_every": 100},
            "model": PAPER_RUN["model"],
            "numbers": (64, 256, 1024),
            "reserve": 1000,
            "gap_numbers": (64, 256, 1024),
            "gap_reserve": 500,
        },
    }
    shown = "r2_in", "r2_held_out"

    base: RunConfig = RunConfig()
    """What all runs share; the arms set model and support."""
    model: field("models", Model) = MLP(width=128, depth=3)  # type: ignore[valid-type]
    """The network."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160, 320)
    """Numbers of combinations of the random supports."""
    reserve: PositiveInt = 376
    """Combinations of their common test."""
    gap_numbers: tuple[PositiveInt, ...] = (64, 128, 256)
    """Numbers of combinations of the supports with gaps."""
    parts: NonNegativeInt = 1
    """Constituents that the supports with gaps never show."""
    pairs: NonNegativeInt = 12
    """Pairs of other constituents that never meet in the supports with gaps."""
    gap_reserve: PositiveInt = 200
    """Combinations of their common test."""
    threshold: float = Field(default=0.7, lt=1)
    """A combination fails if its score is below this."""
    fit_replicates: PositiveInt = 6
    """Further replicates, with the seeds after those that decide. Predictors are fitted on these only."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which every held-out combination must fail."""

    def check(self) -> None:
        ascending(self, "numbers", "gap_numbers", least=1)

    def arms(self) -> dict[str, Arm]:
        gaps: dict[str, Any] = {"parts": self.parts, "pairs": self.pairs, "reserve": self.gap_reserve}
        random = [{"support": Random(number=n, reserve=self.reserve), "number": n} for n in self.numbers]
        decide = Arm(
            self.base,
            model=self.model,
            cases=[*random, *({"support": Gaps(number=n, **gaps), "number": n} for n in self.gap_numbers)],
        )
        ends = random if len(random) == 1 else [random[0], random[-1]]
        return {
            "decide": decide,
            "fit": decide.replace(seeds=range(self.seeds.stop, self.seeds.stop + self.fit_replicates)),
            "lookup": decide.replace(family=self.control, cases=ends),
        }

    def measurements(self) -> list[Measurement]:
        return [Scores(), Readout()]

    def claims(self, decide: Arm, fit: Arm, lookup: Arm) -> Claims:
        def gain(predictor: str, permuted: bool = False) -> Column:
            return statistic(lambda *arms: self.race(*arms, permuted=permuted).gain[predictor], decide, fit)

        def state(name: str, gained: Column, text: str, **more: Any) -> StudyClaim:
            return claim(name, gained.greater(0.02), text, needs=NEEDS, **more)

        text = "The networks fit their training tasks (lowest r2_in of a replicate)."
        yield fits(decide["r2_in"].lowest(), text)
        rarer = statistic(lambda *arms: np.minimum(self.race(*arms).share, 1 - self.race(*arms).share), decide, fit)
        text = "Some held-out combinations fail and some do not (share of the rarer outcome)."
        yield precondition("some-fail-and-some-do-not", rarer.above(0.1), text)
        text = (
            "What is known before training (pairs met, frequency of parts, distance, certificate of the support) predicts on "
            "which held-out combinations of unseen runs a network will fail, better than the base rate (log-loss, nats)."
        )
        yield state("coverage-predicts", gain("coverage"), text, primary=True)
        text = "What is known of the combination adds to what is known of the support as a whole (log-loss)."
        yield state("coverage-tells-combinations-apart", gain("coverage") - gain("certificate"), text)
        text = (
            "The error of a probe that reads the combination off the deepest layer predicts failure better than the base rate "
            "(log-loss)."
        )
        yield state("decodability-predicts", gain("decodability"), text)
        text = "Decodability adds to what is known before training (log-loss)."
        yield state("decodability-adds", gain("both") - gain("coverage"), text)
        text = "What is known before training adds to decodability (log-loss)."
        yield state("coverage-adds", gain("both") - gain("decodability"), text)
        error = statistic(lambda *arms: self.race(*arms).calibration["both"], decide, fit)
        text = "The probabilities that all predictors together give are calibrated (expected calibration error)."
        yield claim("calibrated", error.below(0.05), text, needs=NEEDS)
        text = (
            "Where outcomes are permuted among the combinations of a run, what is known of a combination adds nothing to what "
            "is known of the support (log-loss, all predictors minus the certificate)."
        )
        left = gain("both", permuted=True) - gain("certificate", permuted=True)
        yield control("control-permuted", left.equivalent(0.02), text, needs=NEEDS)
        text = "The network can learn the control: r2_in with the fewest combinations."
        learned = lookup["r2_in"].at(number=self.numbers[0])
        yield precondition("control-is-learned", learned.above(0.3), text)
        text = "On independent random functions every held-out combination fails, covered or not (share that fails)."
        failing = lookup.table(self.overview_columns)["fails"].mean()
        yield control("control-always-fails", failing.above(0.95), text, needs="control-is-learned")

    def race(self, decide: Tables, fit: Tables, permuted: bool = False) -> ReplicateRace:
        """The predictors, fitted and scored; with `permuted` on outcomes permuted within each run."""
        return _race(decide, fit, self.threshold, len(self.numbers) + len(self.gap_numbers), permuted)

    def overview_columns(self, tables: Tables) -> pd.DataFrame:
        """The share of each run's held-out combinations that fail."""
        return cases(tables, self.threshold).groupby("run", as_index=False)[["fails"]].mean()

    def figures(self, decide: Arm, fit: Arm) -> Figures:
        from recombine.figures import calibration
        from recombine.figures.study import Figure, dots, lines

        race = self.race(decide.tables, fit.tables)
        chances, gains = race.chances, race.gain.reindex(list(self.seeds)).rename_axis("replicate").reset_index()
        yield dots(
            gains.melt("replicate", list(PREDICTORS), "predictor", "gain"),
            category="predictor",
            measures={"gain": "gain"},
            labels=NAMES,
            name="gains",
            title="What predicts failures best?",
            caption=f"How much better than the base rate each predictor says whether a held-out combination fails (R² below "
            f"{self.threshold:g}), in runs with other teachers, supports and networks than those that it was fitted on. 0 is no "
            "better than the share of failures; further right is better. Brier score: mean squared error of the probabilities.",
            notes={name: f"Brier {brier(chances[name], chances['fails']):.3f}" for name in PREDICTORS if len(chances)},
            x_title="gain in log-loss over the base rate (nats)",
        )
        shown = {name: NAMES[name] for name in ("coverage", "decodability", "both")}
        bins = [
            (name, *row)
            for name in shown
            for row in (calibration_table(1 - chances[name], 1 - chances["fails"]) if len(chances) else ())
        ]
        info = calibration.calibration_info(
            pd.DataFrame(bins, columns=list(calibration.COLUMNS)),
            labels=shown,
            x_title="predicted chance of success",
            y_title="share that succeeded",
            caption_lead="Held-out combinations of all deciding replicates, by the predicted chance of success. Those of one run "
            "are not independent, so the bars are too short.",
        )
        title = "Are the predicted chances right?"
        yield Figure("calibration", title, info.caption, calibration.draw_calibration(info))
        table = cases(decide.tables, self.threshold)
        table = table[table["parts"] > 1].astype({"pairs_met": float, "fails": float}).round({"pairs_met": 2})
        yield lines(
            table.groupby(["support", "number", "pairs_met", "replicate"])["fails"].mean().reset_index(),
            x="pairs_met",
            y="fails",
            series="number",
            facet="support",
            labels={number: f"{number} combinations" for number in sorted({*self.numbers, *self.gap_numbers})},
            facet_labels={"random": "random support", "gaps": "support with gaps"},
            name="failures_by_pairs",
            title="Do combinations fail whose pairs never met?",
            caption="The share of held-out combinations (of two parts or more) that fail, by the share of their pairs that met in "
            "training. A falling line means that coverage of pairs matters at that number of combinations. Where lines are apart, "
            "something else matters, too.",
            log=False,
            ordered=True,
            floor=0.0,
            ceiling=1.0,
            x_title="share of its pairs that met in training",
            y_title="share that fails",
        )


def cases(tables: Tables, threshold: float) -> pd.DataFrame:
    """One row per held-out combination of each run: labels, score, `fails` (0 or 1) and the predictors' columns.

    Runs that failed or were not measured have no rows.
    """
    columns = ["run", "support", "number", "replicate", "combination", "score", "fails", *PREDICTORS["both"]]
    known, scores = tables["readout"], tables.combinations
    if known.empty or scores.empty:
        return pd.DataFrame(columns=columns)
    scores = scores.loc[scores["region"] == "held_out", ["run", "combination", "score"]]
    table = known.merge(scores, on=["run", "combination"])
    table = table.assign(
        fails=(table["score"] < threshold).astype(float),
        log_error=np.log(table["error"].clip(lower=1e-9)),
        **{f"log_{name}": np.log1p(table[name].astype(float)) for name in COUNTS},
    )
    # A score that is not finite means that outputs overflowed: the run counts as failed.
    finite = np.isfinite(table[["score", *PREDICTORS["both"]]].to_numpy(float)).all(axis=1)
    failed = table["run"][np.flatnonzero(~finite)]
    return table.loc[~table["run"].isin(failed), columns].reset_index(drop=True)


@functools.lru_cache(maxsize=2)  # Most claims are about the same race.
def _race(decide: Tables, fit: Tables, threshold: float, runs: int, permuted: bool) -> ReplicateRace:
    fitted, scored = cases(fit, threshold), cases(decide, threshold)
    return race_by_replicate(fitted, scored, PREDICTORS, runs=runs, permuted=permuted)
