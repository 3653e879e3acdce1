"""The scores of a network on trained and held-out combinations, also by coverage stratum."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.families.base import Family
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import at_once, over_tasks
from recombine.supports.regions import STRATA, stratum
from recombine.training import RunConfig, Setting
from recombine.training.program import draw_examples, score_tasks
from recombine.training.streams import Stream

MAP_LIMIT = 4096
"""In spaces up to this size, the validation side and the rest are scored too, for the map."""


@dataclasses.dataclass(frozen=True)
class ScoreTask:
    """The family's score of one task. Hashable, so that runs with equal parts share one compiled program."""

    family: Family
    objective: Objective
    samples: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_data, by_model = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, self.samples)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        scores = score_tasks(self.family, self.objective, network, codes, batches, by_model)
        return {name: values[0] for name, values in scores.items()}


class Scores(Measurement):
    """The family's metrics on fresh tasks of trained and of held-out combinations (test side).

    The summary has each metric with a suffix: `_in` for trained combinations, `_held_out`, and the name of a coverage
    stratum of held-out ones. The table has one row per task.
    """

    kind: Literal["scores"] = "scores"
    version: ClassVar[int] = 2
    combinations: PositiveInt = 512
    """The largest number of combinations in each region."""
    draws: PositiveInt = 4
    """The number of tasks (draws of coefficients) of each combination."""
    samples: PositiveInt | None = 64
    """The number of examples of each task. None: as many as the family validates with, which is one grid of a puzzle."""
    map: bool = True
    """Whether the validation side and the rest of a small space are scored too, for the map."""

    later: ClassVar[frozenset[str]] = frozenset({"map"})

    def rows(self, setting: Setting) -> dict[str, Int[np.ndarray, "n slots"]]:
        """Choose the combinations to score, by region. `validation` and `rest` are for the map only."""
        regions, number = setting.regions, self.combinations
        rows = {"trained": regions.require("trained", number), "held_out": regions.require("held_out", number, "test")}
        if self.map and setting.config.space.size <= MAP_LIMIT:
            rows["validation"] = regions.rows("held_out", number, "validation")
            rows["rest"] = regions.rows("rest", MAP_LIMIT)
        return rows

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        metrics = config.family.metric_names(config.space)
        if metrics is None:
            return None
        where = ("in", "held_out", *STRATA)
        return frozenset(f"{metric}_{name}" for metric in ("score", *metrics) for name in where)

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, batch = setting.config, at_once(setting)
        rows = {region: some for region, some in self.rows(setting).items() if len(some)}
        by_region = {region: np.repeat(some, self.draws, axis=0) for region, some in rows.items()}
        tasks = np.concatenate([*by_region.values()])
        names = np.repeat([*by_region], [len(some) for some in by_region.values()])
        compute = ScoreTask(config.family, config.objective, self.samples or config.family.validation_samples)
        parts = [
            over_tasks(compute, setting, network, some, Stream.TEST, region, batch)
            for region, some in by_region.items()
        ]
        scores = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        layer = stratum(tasks, setting.regions.moment)

        summary: dict[str, float] = {}
        chosen = {"in": names == "trained", "held_out": names == "held_out"}
        chosen |= {name: (names == "held_out") & (layer == name) for name in STRATA}
        for where, mask in chosen.items():
            if mask.any():
                metrics = config.family.metrics({name: values[mask] for name, values in scores.items()})
                summary |= {f"{metric}_{where}": value for metric, value in metrics.items()}
        columns: dict[str, list[Any]] = {
            "combination": [config.space.name(row) for row in tasks],
            "constituents": [list(config.space.constituents(row)) for row in tasks],
            "draw": np.tile(np.arange(self.draws), len(tasks) // self.draws).tolist(),
            "region": names.tolist(),
            "stratum": layer.tolist(),
        }
        return Measured(summary, columns | {name: values.tolist() for name, values in scores.items()})
