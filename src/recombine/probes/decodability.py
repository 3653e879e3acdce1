"""How well a linear map reads the constituents off the encoding and each hidden layer, with two controls."""

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
"""The strengths among which one is chosen on validation combinations."""


@dataclasses.dataclass(frozen=True)
class TraceTask:
    """The activations of one example of one task, and the task vector."""

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        task, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, trace = network.trace(code, batch.inputs)
        return {"vector": task.vector, "encoding": code} | {site: values[0] for site, values in trace.items()}


class Part(NamedTuple):
    """Some combinations with their tasks: `draws` to fit on and as many others to score on."""

    rows: Int[np.ndarray, "n slots"]
    fit: dict[str, np.ndarray]
    score: dict[str, np.ndarray]

    def halves(self) -> tuple[Part, Part]:
        """The even and the odd combinations (they are in random order)."""
        return self.take(np.arange(len(self.rows)) % 2 == 0), self.take(np.arange(len(self.rows)) % 2 == 1)

    def take(self, chosen: np.ndarray) -> Part:
        repeats = len(self.fit["vector"]) // len(self.rows)
        tasks = np.repeat(chosen, repeats)
        return Part(
            self.rows[chosen],
            {name: values[tasks] for name, values in self.fit.items()},
            {name: values[tasks] for name, values in self.score.items()},
        )


class Decodability(Measurement):
    """R2 of ridge maps from activations to the task vector. All splits are over combinations.

    `intrinsic`: fitted on half of the held-out combinations (test side), scored on the other half, both ways
    round. It does not depend on how many combinations the *network* was trained on.
    `transfer`: fitted on trained combinations, scored on held-out ones.
    `in_distribution`: fitted on half of the trained combinations, scored on the other half (as published).
    """

    kind: Literal["decodability"] = "decodability"
    version: ClassVar[int] = 2
    combinations: PositiveInt = 512
    """The most combinations of each region."""
    draws: PositiveInt = 4
    """Tasks of each combination to fit on, and as many to score on."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        records: list[dict[str, Any]] = []
        for name, which in (("trained", network), ("untrained", setting.network())):
            parts = self._parts(setting, which)
            sites = [site for site in parts["trained"].fit if site not in ("vector", "control")]
            if name == "untrained":
                sites.remove("encoding")  # No network stands before the encoding.
            for site in sites:
                records += [{"site": site, "network": name, **record} for record in probe_site(parts, site)]
        deepest = records[-1]["site"]
        summary = {}
        for record in records:
            if record["site"] == deepest and record["strength"] == "chosen":
                suffix = "" if record["network"] == "trained" else "_untrained"
                summary[f"{record['form']}{suffix}"] = record["r2"]
                if record["form"] == "intrinsic":
                    summary[f"selectivity{suffix}"] = record["selectivity"]
        columns = {name: [record[name] for record in records] for name in records[0]}
        return Measured(summary, columns)

    def _parts(self, setting: Setting, network: Network) -> dict[str, Part]:
        regions, number = setting.regions, self.combinations
        rows = {
            "trained": regions.require("trained", number),
            "validation": regions.require("held_out", number, "validation"),
            "held_out": regions.require("held_out", number, "test"),
        }
        return {name: self._part(setting, network, one, name) for name, one in rows.items()}

    def _part(
        self, setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], region: str
    ) -> Part:
        tasks = np.repeat(rows, 2 * self.draws, axis=0)
        values = over_tasks(TraceTask(), setting, network, tasks, Stream.PROBE, region)
        values["control"] = control_targets(rows, values["vector"], setting.config.seeds.support)
        to_fit = np.tile(np.arange(2 * self.draws) < self.draws, len(rows))
        return Part(
            rows,
            {name: array[to_fit] for name, array in values.items()},
            {name: array[~to_fit] for name, array in values.items()},
        )


def probe_site(parts: dict[str, Part], site: str) -> list[dict[str, Any]]:
    """Every form of decodability at one site."""
    held_out, trained = parts["held_out"].halves(), parts["trained"].halves()
    splits = {
        "intrinsic": [(held_out[0], held_out[1]), (held_out[1], held_out[0])],
        "transfer": [(parts["trained"], parts["held_out"])],
        "in_distribution": [(trained[0], trained[1]), (trained[1], trained[0])],
    }
    records = []
    for form, pairs in splits.items():
        folds = [_fold(fit, score, parts["validation"], site) for fit, score in pairs if len(fit.rows) > 1]
        if not folds:
            continue
        for strength in ("1", "chosen"):
            r2, control, log_strength = np.mean([fold[strength] for fold in folds], axis=0)
            records.append(
                {
                    "form": form,
                    "strength": strength,
                    "value": float(10**log_strength),
                    "r2": float(r2),
                    "control": float(control),
                    "selectivity": float(r2 - control),
                }
            )
    return records


def _fold(fit: Part, score: Part, validation: Part, site: str) -> dict[str, tuple[float, float, float]]:
    """R2, the control's R2 and the strength's logarithm: at strength 1 and at the one chosen on validation combinations."""
    width = fit.fit["vector"].shape[1]
    ridge = RidgePath(fit.fit[site], np.concatenate([fit.fit["vector"], fit.fit["control"]], axis=1))

    def quality(part: Part, strength: float) -> float:
        return mean_r2(part.score["vector"], ridge.predict(part.score[site], strength)[:, :width])

    def control(strength: float) -> float:
        # Other tasks of the *same* combinations: nowhere else could a code that is random by combination be known.
        return mean_r2(fit.score["control"], ridge.predict(fit.score[site], strength)[:, width:])

    best = max(STRENGTHS, key=lambda strength: quality(validation, strength))
    chosen = {"1": 1.0, "chosen": best}
    return {
        name: (quality(score, strength), control(strength), np.log10(strength))
        for name, strength in chosen.items()
    }


def control_targets(
    rows: Int[np.ndarray, "n slots"], vectors: Float[np.ndarray, "task width"], seed: int
) -> Float[np.ndarray, "task width"]:
    """The task vectors with their coordinates permuted, by a permutation of each combination's own.

    So each constituent has a random but fixed code in each combination: a probe can know it only by knowing
    the combination as a whole, not its parts.
    """
    repeats = len(vectors) // len(rows)
    permuted = np.empty_like(vectors)
    for index, row in enumerate(rows):
        order = np.random.default_rng([seed, *row.tolist()]).permutation(vectors.shape[1])
        block = slice(index * repeats, (index + 1) * repeats)
        permuted[block] = vectors[block][:, order]
    return permuted
