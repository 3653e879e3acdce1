"""Linear decodability of the constituents from the encoding and each hidden layer, with two controls."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.ridge import RidgePath, mean_r2
from recombine.probes.tasks import over_tasks
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

STRENGTHS = tuple(10.0**power for power in range(-4, 5))
"""The ridge strengths to choose from on validation combinations."""


@dataclasses.dataclass(frozen=True)
class TraceTask:
    """The activations of one example of one task, and the task vector."""

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        task, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, trace = network.trace(code, batch.inputs)
        return {"vector": task.vector, "encoding": code} | {site: values[0] for site, values in trace.items()}


class TracedRows(NamedTuple):
    """Combinations with the activations of their tasks: `draws` tasks to fit on and as many others to score on."""

    rows: Int[np.ndarray, "n slots"]
    fit: dict[str, np.ndarray]
    score: dict[str, np.ndarray]

    def halves(self) -> tuple[TracedRows, TracedRows]:
        """The even and the odd combinations; they are in random order."""
        return self.take(np.arange(len(self.rows)) % 2 == 0), self.take(np.arange(len(self.rows)) % 2 == 1)

    def take(self, chosen: np.ndarray) -> TracedRows:
        """The chosen combinations."""
        repeats = len(self.fit["vector"]) // len(self.rows)
        tasks = np.repeat(chosen, repeats)
        return TracedRows(
            self.rows[chosen],
            {name: values[tasks] for name, values in self.fit.items()},
            {name: values[tasks] for name, values in self.score.items()},
        )


class Decodability(Measurement):
    """R2 of ridge regressions from activations to the task vector. All splits are over combinations.

    `intrinsic`: fitted on half of the held-out combinations (test side) and scored on the other half, in both directions.
    It does not depend on the number of combinations that the *network* was trained on.
    `transfer`: fitted on trained combinations, scored on held-out ones.
    `in_distribution`: fitted on half of the trained combinations, scored on the other half (as published).

    Controls: the untrained network (`_untrained`), and targets that are random by combination. `selectivity` is R2 less
    that of the random targets.
    """

    kind: Literal["decodability"] = "decodability"
    version: ClassVar[int] = 2
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
        tasks = np.repeat(rows, 2 * self.draws, axis=0)
        values = over_tasks(TraceTask(), setting, network, tasks, Stream.PROBE, region)
        values["control"] = control_targets(rows, values["vector"], setting.config.seeds.support)
        to_fit = np.tile(np.arange(2 * self.draws) < self.draws, len(rows))
        return TracedRows(
            rows,
            {name: array[to_fit] for name, array in values.items()},
            {name: array[~to_fit] for name, array in values.items()},
        )


def probe_site(traced: dict[str, TracedRows], site: str) -> list[dict[str, Any]]:
    """Compute every form of decodability at one site: one record per form and choice of strength."""
    held_out, trained = traced["held_out"].halves(), traced["trained"].halves()
    splits = {
        "intrinsic": [(held_out[0], held_out[1]), (held_out[1], held_out[0])],
        "transfer": [(traced["trained"], traced["held_out"])],
        "in_distribution": [(trained[0], trained[1]), (trained[1], trained[0])],
    }
    records = []
    for form, pairs in splits.items():
        folds = [_fold(fit, score, traced["validation"], site) for fit, score in pairs if len(fit.rows) > 1]
        if not folds:
            continue
        for strength in ("1", "chosen"):
            r2, control, log_strength = np.mean([fold[strength] for fold in folds], axis=0)
            numbers = {"value": 10**log_strength, "r2": r2, "control": control, "selectivity": r2 - control}
            labels = {"form": form, "strength": strength}
            records.append(labels | {name: float(number) for name, number in numbers.items()})
    return records


def _fold(
    fit: TracedRows, score: TracedRows, validation: TracedRows, site: str
) -> dict[str, tuple[float, float, float]]:
    """R2, the control's R2 and log10 of the strength: at strength 1 and at the best one on validation combinations."""
    width = fit.fit["vector"].shape[1]
    ridge = RidgePath(fit.fit[site], np.concatenate([fit.fit["vector"], fit.fit["control"]], axis=1))

    def quality(traced: TracedRows, strength: float) -> float:
        return mean_r2(traced.score["vector"], ridge.predict(traced.score[site], strength)[:, :width])

    def control(strength: float) -> float:
        # Other tasks of the *same* combinations: random targets of other combinations cannot be predicted.
        return mean_r2(fit.score["control"], ridge.predict(fit.score[site], strength)[:, width:])

    best = max(STRENGTHS, key=lambda strength: quality(validation, strength))
    chosen = {"1": 1.0, "chosen": best}
    return {
        name: (quality(score, strength), control(strength), np.log10(strength)) for name, strength in chosen.items()
    }


def control_targets(
    rows: Int[np.ndarray, "n slots"], vectors: Float[np.ndarray, "task width"], seed: int
) -> Float[np.ndarray, "task width"]:
    """Permute the coordinates of task vectors, with a different permutation for each combination.

    Each constituent then has a random but fixed code in each combination. A probe can predict it only from the combination
    as a whole, not from its constituents.

    Args:
        rows: The combinations.
        vectors: The task vectors, the same number for each combination, in consecutive rows.
        seed: The seed of the permutations.

    Returns:
        The permuted vectors.
    """
    repeats = len(vectors) // len(rows)
    permuted = np.empty_like(vectors)
    for index, row in enumerate(rows):
        order = np.random.default_rng([seed, *row.tolist()]).permutation(vectors.shape[1])
        block = slice(index * repeats, (index + 1) * repeats)
        permuted[block] = vectors[block][:, order]
    return permuted
