"""What a new linear readout of the deepest layer would say of held-out combinations, had it been fitted on others of them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.models.base import Network
from recombine.probes.activations import SIDES, sides
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import STRENGTHS
from recombine.probes.ridge import RidgePath
from recombine.probes.tasks import over_tasks
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

FEWEST = 16
"""Held-out combinations (test side) without which a readout would have next to nothing to be fitted on."""


@dataclasses.dataclass(frozen=True)
class DeepestTask:
    """The deepest activations of one example of one task, and the example."""

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, trace = network.trace(code, batch.inputs)
        found = {"site": list(trace.values())[-1][0], "targets": batch.targets[0], "mask": batch.mask[0]}
        return found if batch.labels is None else found | {"labels": batch.labels[0]}


class Refit(Measurement):
    """The family's metrics (`refit_...`) with the readout replaced by a ridge map, and as much of the untrained network.

    The map goes from the deepest site to the targets. It is fitted on half of the held-out combinations (test side), scored on
    the other half, both ways round; its strength is chosen on the validation side. What it gets right and the
    network does not is there inside, and only the way out is wrong.
    """

    kind: Literal["refit"] = "refit"
    combinations: PositiveInt = 512
    """The most held-out combinations of each side."""
    draws: PositiveInt = 4
    """Tasks of each combination."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if config.family.targets != "numbers":
            raise BadInput(
                f"refit fits numbers; the targets of {config.family.kind!r} are {config.family.targets}.",
                fix="use a family of numbers, such as hyperteacher or sprites",
            )
        rows = dict(zip(SIDES, sides(setting, self.combinations, FEWEST, "a readout"), strict=True))
        summary: dict[str, float] = {}
        for suffix, which in (("", network), ("_untrained", setting.network())):
            parts = {side: self._part(setting, which, one, side) for side, one in rows.items()}
            found = refitted(config.family, parts["test"], parts["validation"], self.draws)
            summary |= {f"refit_{name}{suffix}": value for name, value in found.items()}
        return Measured(summary, {"metric": list(summary), "value": list(summary.values())})

    def _part(
        self, setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], side: str
    ) -> dict[str, np.ndarray]:
        tasks = np.repeat(rows, self.draws, axis=0)
        return over_tasks(DeepestTask(), setting, network, tasks, Stream.PROBE, f"refit {side}")


def refitted(
    family: Family, test: dict[str, np.ndarray], validation: dict[str, np.ndarray], draws: int
) -> dict[str, float]:
    """The metrics of readouts fitted on the half of the combinations that they are not scored on.

    Combinations are in random order, each with `draws` tasks, one after the other.
    """
    half = np.arange(len(test["site"])) // draws % 2
    said = np.empty(test["targets"].shape)
    for which in (0, 1):
        scored = half == which
        ridge = RidgePath(test["site"][~scored], test["targets"][~scored])

        def wrong(strength: float, ridge: RidgePath = ridge) -> float:
            return float(np.sum((ridge.predict(validation["site"], strength) - validation["targets"]) ** 2))

        said[scored] = ridge.predict(test["site"][scored], min(STRENGTHS, key=wrong))
    # All as the examples of one task: a single example of a task has no spread.
    examples = {name: jnp.asarray(values) for name, values in test.items() if name != "site"}
    batch = Batch(
        inputs=jnp.zeros((len(said), family.input_size)),
        targets=examples["targets"],
        mask=examples["mask"],
        labels=examples.get("labels"),
    )
    scores = family.score(batch, jnp.asarray(said, jnp.float32))
    return family.metrics({name: np.asarray(value)[None] for name, value in scores.items()})
