"""Can the constituents be recovered from the encoding through the model alone, as often as a theorem says?"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.neighbours import replaced_task, replacements
from recombine.probes.tasks import over_tasks
from recombine.spaces.base import Space
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

CALL = 64
"""Tasks in one compiled call; each has many candidates."""


@dataclasses.dataclass(frozen=True)
class CompareTask:
    """Distances of the model's outputs on one task to the teacher's outputs for every candidate task.

    A row is the combination, followed by the replacements (slot, constituent) that give the other combinations. Each
    combination is a candidate with the task's own coefficients, and with `coefficients` - 1 other draws of them.
    """

    space: Space
    coefficients: int
    samples: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_task, by_batch, by_code, by_candidate = jax.random.split(key, 4)
        row, ways = row[: self.space.slots], row[self.space.slots :].reshape(-1, 2)
        task = teacher.task(row, by_task)
        batch = teacher.batch(task, by_batch, self.samples)
        answers = network(encoder(task, teacher, by_code), batch.inputs)

        def distances(base: Any, way: Array) -> dict[str, Array]:
            """The squared distances of a candidate's outputs from the model's and from the true ones, at each input."""
            other = teacher.batch(replaced_task(self.space, base, way), by_batch, self.samples)
            return {
                "model": jnp.sum((other.targets - answers) ** 2, axis=1),
                "truth": jnp.sum((other.targets - batch.targets) ** 2, axis=1),
                "same_inputs": jnp.all(other.inputs == batch.inputs),
            }

        keys = jax.random.split(by_candidate, self.coefficients)
        bases = jax.vmap(lambda key: teacher.task(row, key))(keys)
        bases = jax.tree.map(lambda drawn, own: drawn.at[0].set(own), bases, task)
        # Replacing the first constituent by itself gives the combination itself.
        ways = jnp.concatenate([jnp.stack([jnp.zeros_like(row[0]), row[0]])[None], ways])
        return jax.vmap(lambda base: jax.vmap(lambda way: distances(base, way))(ways))(bases)


class FromEncoding(Measurement):
    """The constituents, recovered from a task's code by running the model on it.

    The theorem: if a model is right with probability 1 - d over tasks and inputs, then some decoder recovers the
    constituents from the code with probability 1 - sqrt(d) over tasks. By Markov's inequality at most a share sqrt(d) of
    the tasks can be wrong on more than a share sqrt(d) of their inputs. For the others the code, through the model, gives
    the teacher's function nearly everywhere, and the function determines the constituents.

    The decoder here is a simple one of that kind. It has the code and the model but not the task: it runs the model on its
    own inputs and names the candidate whose teacher outputs are nearest in sum of squares. Candidates are the true
    combination and others that differ in one constituent, each with the true coefficients and with some other draws.

    `wrong` (d) is measured on *other* inputs: the share of (task, input) pairs where the model is farther from the
    teacher than epsilon. Epsilon is half the distance from the truth that all but `percent` % of the candidates with other
    constituents exceed. `recovered` is the share of tasks whose constituents the decoder names; `bound` is 1 - sqrt(wrong)
    and `slack` is recovered - bound. A negative slack beyond chance shows that an assumption fails: functions of different
    combinations cannot be distinguished by this number of inputs. Where `bound` is about 0, nothing is tested. The converse
    is not claimed: a model may be wrong everywhere and still distinguish its tasks.
    """

    kind: Literal["from-encoding"] = "from-encoding"
    combinations: PositiveInt = 256
    """The largest number of combinations of each region; each has one task."""
    candidates: int = Field(default=16, ge=2)
    """The number of combinations that the decoder chooses from, if the space has as many neighbours."""
    coefficients: PositiveInt = 4
    """The number of draws of coefficients of each candidate, including the true ones."""
    samples: PositiveInt = 16
    """The number of inputs to decode with, and of others to measure `wrong` on."""
    percent: float = Field(default=5.0, ge=0, lt=100)
    """The percentage of candidates that may be nearer to the truth than twice epsilon."""

    summary_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}{region}" for name in ("recovered", "wrong", "bound", "slack", "epsilon") for region in ("", "_in")
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if config.family.targets != "numbers":
            raise BadInput(
                f"from-encoding compares numbers at the same inputs; the targets of {config.family.kind!r} are "
                f"{config.family.targets}.",
                fix="use a family of numbers, such as hyperteacher",
            )
        regions = {
            "trained": setting.regions.require("trained", self.combinations),
            "held_out": setting.regions.require("held_out", self.combinations, "test"),
        }
        summary: dict[str, float] = {}
        columns: dict[str, list[Any]] = {}
        for region, rows in regions.items():
            distances = self._run(setting, network, rows, region)
            recovered, wrong, epsilon = decode(distances, self.samples, self.percent)
            bound = 1 - float(np.sqrt(wrong.mean()))
            values = {
                "recovered": float(recovered.mean()),
                "wrong": float(wrong.mean()),
                "bound": bound,
                "slack": float(recovered.mean()) - bound,
                "epsilon": epsilon,
            }
            suffix = "" if region == "held_out" else "_in"
            summary |= {f"{name}{suffix}": value for name, value in values.items()}
            table = {
                "region": [region] * len(rows),
                "combination": [config.space.name(row) for row in rows],
                "recovered": recovered.tolist(),
                "wrong": wrong.tolist(),
            }
            columns = {name: columns.get(name, []) + more for name, more in table.items()}
        return Measured(summary, columns)

    def _run(
        self, setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], region: str
    ) -> dict[str, np.ndarray]:
        space, others = setting.config.space, self.candidates - 1
        owner, ways = replacements(space, rows, others, setting.config.seeds.support)
        first = np.searchsorted(owner, np.arange(len(rows)))
        counts = np.bincount(owner, minlength=len(rows))
        if not counts.all():
            raise BadInput(
                f"The combination {space.name(rows[np.argmin(counts)])} has no neighbour in {space!r}.",
                fix="from-encoding needs combinations that differ in one constituent",
            )
        # Combinations with fewer neighbours repeat some of them.
        index = first[:, None] + np.arange(others) % counts[:, None]
        packed = np.concatenate([rows, ways[index].reshape(len(rows), -1)], axis=1).astype(np.int32)
        compute = CompareTask(space, self.coefficients, 2 * self.samples)
        region = f"from-encoding {region}"
        distances = over_tasks(compute, setting, network, packed, Stream.PROBE, region, CALL)
        if not distances["same_inputs"].all():
            raise BadInput(
                f"The inputs of the family {setting.config.family.kind!r} depend on the task.",
                fix="from-encoding needs a family whose teacher accepts any input, such as hyperteacher",
            )
        return distances


def decode(
    distances: dict[str, Float[np.ndarray, "task draw candidate _"] | np.ndarray], samples: int, percent: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Which tasks are recovered, the share of wrong inputs of each, and epsilon.

    Distances are squared: by task, draw of coefficients, candidate (the true combination first) and input. The first
    `samples` inputs are for decoding, the others for the share of wrong inputs.
    """
    model, truth = (np.asarray(distances[name], np.float64) for name in ("model", "truth"))
    total = model[..., :samples].sum(-1)
    # Strictly less: a tie is not a recovery.
    recovered = total[:, :, 0].min(1) < total[:, :, 1:].min((1, 2))
    epsilon = float(np.percentile(np.sqrt(truth[:, :, 1:]), percent)) / 2
    wrong = (np.sqrt(model[:, 0, 0, samples:]) >= epsilon).mean(-1)
    return recovered, wrong, epsilon
