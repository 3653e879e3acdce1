"""The largest error of a network against its teacher over many fresh tasks, and the size of the network."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import BATCH, over_tasks
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

MAX_ACTIVATIONS = 2**24
"""The largest number of activations of the widest site in one compiled call: 64 MB."""


@dataclasses.dataclass(frozen=True)
class ErrorTask:
    """The largest and the root mean square error of one task. Hashable, so that runs share one compiled program."""

    objective: Objective
    samples: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_data, by_model = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, self.samples)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        predictions = self.objective.evaluate(network, codes, batches, by_model)[0]
        error = batch.mask[:, None] * jnp.abs(predictions - batch.targets)
        count = batch.mask.sum() * error.shape[1]
        return {"sup_error": jnp.max(error), "rms_error": jnp.sqrt(jnp.sum(error**2) / count)}


class SupError(Measurement):
    """The largest absolute error and the root mean square error on trained and held-out combinations (test side).

    The maximum is over a sample: the maximum over all tasks and inputs is at least as large.
    """

    kind: Literal["sup-error"] = "sup-error"
    tasks: PositiveInt = 1024
    """The number of fresh tasks of each region. Combinations repeat if there are fewer."""
    samples: PositiveInt = 64
    """The number of examples of each task."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *("sup_error", "rms_error", "sup_error_in", "sup_error_held_out"),
        *("neurons", "weights"),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if config.family.targets != "numbers":
            raise BadInput(
                f"sup-error measures distances; the targets of {config.family.kind!r} are {config.family.targets}.",
                fix="measure scores instead",
            )
        widths = site_widths(network, setting)
        batch = int(np.clip(MAX_ACTIVATIONS // (self.samples * max(widths)), 1, BATCH))
        compute = ErrorTask(config.objective, self.samples)
        regions = {
            "trained": setting.regions.require("trained", self.tasks),
            "held_out": setting.regions.require("held_out", self.tasks, "test"),
        }
        rows = {region: np.resize(some, (self.tasks, some.shape[1])) for region, some in regions.items()}
        errors = {
            # A separate name, so that the tasks differ from those of `scores`.
            region: over_tasks(compute, setting, network, some, Stream.TEST, f"sup-error {region}", batch)
            for region, some in rows.items()
        }
        sup = {region: values["sup_error"] for region, values in errors.items()}
        rms = np.concatenate([values["rms_error"] for values in errors.values()])
        every = np.concatenate(list(rows.values()))
        summary = {
            "sup_error": float(max(values.max() for values in sup.values())),
            "rms_error": float(np.sqrt(np.mean(rms.astype(float) ** 2))),
            "sup_error_in": float(sup["trained"].max()),
            "sup_error_held_out": float(sup["held_out"].max()),
            "neurons": float(sum(widths)),
            "weights": float(count_weights(network)),
        }
        columns = {
            "region": np.repeat(list(rows), self.tasks).tolist(),
            "combination": [config.space.name(row) for row in every],
            "sup_error": np.concatenate(list(sup.values())).tolist(),
            "rms_error": rms.tolist(),
        }
        return Measured(summary, columns)


def site_widths(network: Network, setting: Setting) -> list[int]:
    """The number of units of each site, from shapes alone: nothing is computed."""
    config = setting.config
    code = jax.ShapeDtypeStruct((config.encoding.size(config.space, config.family),), jnp.float32)
    inputs = jax.ShapeDtypeStruct((1, config.family.input_size), jnp.float32)
    _, sites = eqx.filter_eval_shape(lambda model, *given: model.trace(*given), network, code, inputs)
    return [values.shape[1] for values in sites.values()]


def count_weights(network: Network) -> int:
    """The number of trainable parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))
