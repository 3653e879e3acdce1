"""The score of a new linear readout of the deepest layer, fitted on some held-out combinations and tested on others."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.models.base import Network
from recombine.probes.activations import SIDES, held_out_sides
from recombine.probes.base import Measured, Measurement
from recombine.probes.ridge import STRENGTHS, RidgePath
from recombine.probes.tasks import over_tasks
from recombine.training import RunConfig, Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

MIN_COMBINATIONS = 16
"""The smallest number of held-out combinations (test side) to fit a readout on."""


@dataclasses.dataclass(frozen=True)
class DeepestTask:
    """The deepest activations of one example of one task, and the example."""

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, trace = network.trace(code, batch.inputs)
        example = {"site": list(trace.values())[-1][0], "targets": batch.targets[0], "mask": batch.mask[0]}
        return example if batch.labels is None else example | {"labels": batch.labels[0]}


class Refit(Measurement):
    """The family's metrics (`refit_...`) with the readout replaced by a ridge regression; also for the untrained network.

    The regression goes from the deepest site to the targets. It is fitted on half of the held-out combinations (test side)
    and scored on the other half, in both directions; its strength is chosen on the validation side. Where it is right
    and the network is wrong, the representation has the answer and only the readout fails.
    """

    kind: Literal["refit"] = "refit"
    combinations: PositiveInt = 512
    """The largest number of held-out combinations of each side."""
    draws: PositiveInt = 4
    """The number of tasks of each combination."""

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        metrics = config.family.metric_names(config.space)
        if metrics is None:
            return None
        return frozenset(f"refit_{metric}{network}" for metric in metrics for network in ("", "_untrained"))

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if config.family.targets != "numbers":
            raise BadInput(
                f"refit needs numbers as targets; the targets of {config.family.kind!r} are {config.family.targets}.",
                fix="use a family of numbers, such as hyperteacher or sprites",
            )
        sides = held_out_sides(setting, self.combinations, MIN_COMBINATIONS, "a readout")
        tasks = {side: np.repeat(rows, self.draws, axis=0) for side, rows in zip(SIDES, sides, strict=True)}
        summary: dict[str, float] = {}
        for suffix, model in (("", network), ("_untrained", setting.network())):
            test, validation = (
                over_tasks(DeepestTask(), setting, model, some, Stream.PROBE, f"refit {side}")
                for side, some in tasks.items()
            )
            metrics = refitted(config.family, test, validation, self.draws)
            summary |= {f"refit_{name}{suffix}": value for name, value in metrics.items()}
        return Measured(summary, {"metric": list(summary), "value": list(summary.values())})


def refitted(
    family: Family, test: dict[str, np.ndarray], validation: dict[str, np.ndarray], draws: int
) -> dict[str, float]:
    """The metrics of readouts that are fitted on one half of the combinations and scored on the other.

    Combinations are in random order, each with `draws` tasks in consecutive rows.
    """
    half = np.arange(len(test["site"])) // draws % 2
    predictions = np.empty(test["targets"].shape)
    for side in (0, 1):
        scored = half == side
        ridge = RidgePath(test["site"][~scored], test["targets"][~scored])

        def error(strength: float, ridge: RidgePath = ridge) -> float:
            return float(np.sum((ridge.predict(validation["site"], strength) - validation["targets"]) ** 2))

        predictions[scored] = ridge.predict(test["site"][scored], min(STRENGTHS, key=error))
    # All are scored as examples of one task, because a single example has no variance.
    examples = {name: jnp.asarray(values) for name, values in test.items() if name != "site"}
    batch = Batch(inputs=jnp.zeros((len(predictions), family.input_size)), **examples)
    scores = family.score(batch, jnp.asarray(predictions, jnp.float32))
    return family.metrics({name: np.asarray(value)[None] for name, value in scores.items()})
