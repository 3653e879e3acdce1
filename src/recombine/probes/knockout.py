"""Knockout: does a hidden unit serve one constituent, or a bit of many? Sets units to zero, one by one."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.models.masked import MaskedNetwork
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.spaces import SubsetSpace
from recombine.training import Setting
from recombine.training.streams import Stream

BATCH = 16
"""Tasks in one compiled call: there is one for each constituent and draw, and each needs a pass per unit."""


@dataclasses.dataclass(frozen=True)
class KnockoutTask:
    """How much the output of one task changes without each of the first units of each site, as a share of its variance."""

    units: int
    samples: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_task, by_batch, by_code = jax.random.split(key, 3)
        task = teacher.task(row, by_task)
        batch, code = teacher.batch(task, by_batch, self.samples), encoder(task, teacher, by_code)
        whole, sites = network.trace(code, batch.inputs)
        spread = jnp.sum((whole - jnp.mean(whole, axis=0)) ** 2)

        def change(site: str, unit: Array) -> Array:
            def without(name: str, values: Array) -> Array:
                return values.at[:, unit].set(0) if name == site else values

            return jnp.sum((network.trace(code, batch.inputs, without)[0] - whole) ** 2) / spread

        return {
            site: jax.vmap(lambda unit, at=site: change(at, unit))(jnp.arange(min(self.units, values.shape[1])))
            for site, values in sites.items()
        }


def purity(changes: Float[np.ndarray, "constituent unit"]) -> float:
    """How much of each unit's effect is on the tasks of one constituent: 1 for one alone, 0 for all alike.

    A unit's share of constituent m is the change that its knockout causes in the tasks of m, relative to the sum over all
    constituents. The sum of squared shares is scaled so that equal shares give 0. Units count by their total effect.

    Args:
        changes: The change in the tasks of each constituent without each unit.
    """
    total = changes.sum(axis=0)
    if not np.isfinite(total).all() or total.sum() <= 0 or len(changes) < 2:
        return float("nan")
    shares = np.divide(changes, total, out=np.zeros_like(changes), where=total > 0)
    concentration = (shares**2).sum(axis=0)
    return float(((concentration - 1 / len(changes)) / (1 - 1 / len(changes))) @ total / total.sum())


class Knockout(Measurement):
    """Whether hidden units serve one constituent each. Each unit is set to zero on tasks of single constituents.

    `purity` is 1 if each unit matters for one constituent alone, and 0 if it matters for all alike (see `purity`); the mean over
    all units by their effect. `purity_untrained` is the same of the network before training. No held-out combination
    is used. The table has one row per unit and constituent. For spaces of subsets that have single constituents, and networks
    whose sites have units.
    """

    kind: Literal["knockout"] = "knockout"
    units: PositiveInt = 64
    """The most units of each site; the first ones, as the units of a layer are alike before training."""
    draws: PositiveInt = 4
    """The number of tasks of each constituent."""
    samples: PositiveInt = 32
    """The number of examples of each task."""

    summary_names: ClassVar[tuple[str, ...]] = ("purity", "purity_untrained")

    def measure(self, setting: Setting, network: Network) -> Measured:
        space = setting.config.space
        if isinstance(network, MaskedNetwork):
            raise BadInput("knockout is for whole networks, and this one is masked.", fix="measure its parent")
        singles = np.full((space.width, space.slots), space.width, dtype=np.int32)
        singles[:, 0] = np.arange(space.width)
        if not isinstance(space, SubsetSpace) or not space.contains(singles).all():
            raise BadInput(
                f"knockout needs tasks of a single constituent, and {space.title} has none.",
                fix="a space of subsets with min_active=1",
            )
        summary, records = {}, []
        for name, model in (("purity", network), ("purity_untrained", setting.network())):
            compute = KnockoutTask(self.units, self.samples)
            rows = np.repeat(singles, self.draws, axis=0)
            drawn = over_tasks(compute, setting, model, rows, Stream.PROBE, "knockout", BATCH)
            changes = {site: values.reshape(space.width, self.draws, -1).mean(axis=1) for site, values in drawn.items()}
            summary[name] = purity(np.concatenate(list(changes.values()), axis=1))
            if name == "purity":
                records = [
                    {"site": site, "unit": unit, "constituent": part, "change": float(values[part, unit])}
                    for site, values in changes.items()
                    for unit in range(values.shape[1])
                    for part in range(space.width)
                ]
        return Measured.from_records(summary, records)
