"""Linear decodability of the constituents from the encoding and each hidden layer, with two controls."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from pydantic import PositiveInt

from recombine.models.base import Network
from recombine.probes.activations import activations, fit_probe
from recombine.probes.base import Measured, Measurement
from recombine.probes.ridge import mean_r2
from recombine.training.prepare import Setting

PER_CONSTITUENT = 2
"""The fewest combinations per constituent that a probe is fitted on. With 9 combinations of 8 constituents, R2 was negative in
networks that solve .80 of held-out tasks."""


class TracedRows(NamedTuple):
    """Combinations with the activations of their tasks: `draws` tasks to fit on and as many others to score on."""

    rows: Int[np.ndarray, "n slots"]
    fit: dict[str, np.ndarray]
    score: dict[str, np.ndarray]

    def halves(self) -> list[TracedRows]:
        """The even and the odd combinations; they are in random order."""
        halves = []
        for chosen in (np.arange(len(self.rows)) % 2 == odd for odd in (0, 1)):
            tasks = np.repeat(chosen, len(self.fit["vector"]) // len(self.rows))
            fit, score = ({name: values[tasks] for name, values in part.items()} for part in (self.fit, self.score))
            halves.append(TracedRows(self.rows[chosen], fit, score))
        return halves


class Decodability(Measurement):
    """R2 of ridge regressions from activations to the task vector. All splits are over combinations.

    `intrinsic`: fitted on half of the held-out combinations (test side) and scored on the other half, in both directions.
    It does not depend on the number of combinations that the *network* was trained on.
    `transfer`: fitted on trained combinations, scored on held-out ones.
    `in_distribution`: fitted on half of the trained combinations, scored on the other half (as published).

    A probe that is fitted on fewer combinations than `PER_CONSTITUENT` per constituent cannot read: its R2 would say more about
    the probe than about the network, so it is NaN.

    Controls: the untrained network (`_untrained`), and targets that are random by combination. `selectivity` is R2 less
    that of the random targets.
    """

    kind: Literal["decodability"] = "decodability"
    version: ClassVar[int] = 3
    combinations: PositiveInt = 512
    """The largest number of combinations of each region."""
    draws: PositiveInt = 4
    """The number of tasks of each combination to fit on, and as many to score on."""

    summary_names: ClassVar[tuple[str, ...]] = tuple(
        f"{form}{network}"
        for form in ("intrinsic", "selectivity", "transfer", "in_distribution")
        for network in ("", "_untrained")
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        records: list[dict[str, Any]] = []
        for name, model in (("trained", network), ("untrained", setting.network())):
            traced = self._traced_regions(setting, model)
            sites = [site for site in traced["trained"].fit if site not in ("vector", "control")]
            if name == "untrained":
                sites.remove("encoding")  # The encoding does not depend on the network.
            for site in sites:
                records += [{"site": site, "network": name, **record} for record in probe_site(traced, site)]
        deepest = records[-1]["site"]
        summary = {}
        for record in records:
            if record["site"] == deepest and record["strength"] == "chosen":
                suffix = "" if record["network"] == "trained" else "_untrained"
                summary[f"{record['form']}{suffix}"] = record["r2"]
                if record["form"] == "intrinsic":
                    summary[f"selectivity{suffix}"] = record["selectivity"]
        return Measured.from_records(summary, records)

    def _traced_regions(self, setting: Setting, network: Network) -> dict[str, TracedRows]:
        regions, number = setting.regions, self.combinations
        rows = {
            "trained": regions.require("trained", number),
            "validation": regions.require("held_out", number, "validation"),
            "held_out": regions.require("held_out", number, "test"),
        }
        return {name: self._traced(setting, network, some, name) for name, some in rows.items()}

    def _traced(self, setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], region: str) -> TracedRows:
        traced = activations(setting, network, rows, 2 * self.draws, region)
        traced["control"] = control_targets(rows, traced["vector"], setting.config.seeds.support)
        to_fit = np.tile(np.arange(2 * self.draws) < self.draws, len(rows))
        fit, score = ({name: values[tasks] for name, values in traced.items()} for tasks in (to_fit, ~to_fit))
        return TracedRows(rows, fit, score)


def probe_site(traced: dict[str, TracedRows], site: str) -> list[dict[str, Any]]:
    """Compute every form of decodability at one site: one record per form and choice of strength."""
    held_out, trained = traced["held_out"].halves(), traced["trained"].halves()
    splits = {
        "intrinsic": [held_out, held_out[::-1]],
        "transfer": [[traced["trained"], traced["held_out"]]],
        "in_distribution": [trained, trained[::-1]],
    }
    records = []
    for form, pairs in splits.items():
        folds = [_fold(fit, score, traced["validation"], site) for fit, score in pairs if len(fit.rows) > 1]
        if not folds:
            continue
        for strength in ("1", "chosen"):
            r2, control, log_strength = np.mean([fold[strength] for fold in folds], axis=0)
            fitted = min(len(fit.rows) for fit, _ in pairs if len(fit.rows) > 1)
            if fitted < PER_CONSTITUENT * traced["trained"].fit["vector"].shape[1]:
                r2 = control = np.nan
            numbers = {"value": 10**log_strength, "r2": r2, "control": control, "selectivity": r2 - control}
            labels = {"form": form, "strength": strength}
            records.append(labels | {name: float(number) for name, number in numbers.items()})
    return records


def _fold(
    fit: TracedRows, score: TracedRows, validation: TracedRows, site: str
) -> dict[str, tuple[float, float, float]]:
    """R2, the control's R2 and log10 of the strength: at strength 1 and at the best one on validation combinations."""
    ridge, best, width = fit_probe(fit.fit, validation.score, site, fit.fit["control"])

    def quality(strength: float) -> tuple[float, float, float]:
        r2 = mean_r2(score.score["vector"], ridge.predict(score.score[site], strength)[:, :width])
        # Other tasks of the *same* combinations: random targets of other combinations cannot be predicted.
        control = mean_r2(fit.score["control"], ridge.predict(fit.score[site], strength)[:, width:])
        return r2, control, np.log10(strength)

    return {"1": quality(1.0), "chosen": quality(best)}


def control_targets(
    rows: Int[np.ndarray, "n slots"], vectors: Float[np.ndarray, "task width"], seed: int
) -> Float[np.ndarray, "task width"]:
    """Permute the coordinates of task vectors, with a different permutation for each combination.

    Each constituent then has a random but fixed code in each combination. A probe can predict it only from the combination
    as a whole, not from its constituents. Each combination has the same number of vectors, in consecutive rows.
    """
    repeats = len(vectors) // len(rows)
    permuted = np.empty_like(vectors)
    for index, row in enumerate(rows):
        order = np.random.default_rng([seed, *row.tolist()]).permutation(vectors.shape[1])
        block = slice(index * repeats, (index + 1) * repeats)
        permuted[block] = vectors[block][:, order]
    return permuted
