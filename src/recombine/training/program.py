"""The compiled program: a chunk of steps with the data drawn inside, then a look at both validation streams.

What differs between runs is in arrays (`Lane`, `TrainState`); what they share is in the program. Runs whose
programs and array shapes are equal form a *bucket*: the program is compiled once for all of them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PyTree

from recombine.encodings.base import Encoder
from recombine.errors import BadInput
from recombine.families.base import Batch, Family, Task, TaskScores, Teacher
from recombine.models.base import Model, Network
from recombine.objectives.base import Objective, TrainState
from recombine.recipes.base import Recipe
from recombine.supports.base import Sampler
from recombine.training.compiling import compiler_options
from recombine.training.config import RunConfig
from recombine.training.streams import Stream, stream_key

Tree = TypeVar("Tree", bound=PyTree)

SHORTEST_LIST = 1 << 15
"""All lists of combinations up to this length are padded to it: a few megabytes at most."""


class Lane(eqx.Module):
    """What one run brings to the program."""

    sampler: Sampler
    teacher: Teacher
    encoder: Encoder
    key: Array
    """The key of all the run's data streams."""
    held_out: Int[Array, "validation slots"]
    """Held-out combinations of the validation side."""
    rate: Float[Array, ""]
    steps: Float[Array, ""]


class Look(NamedTuple):
    """What a chunk reports of one run."""

    losses: Float[Array, " step"]
    score_in: Float[Array, ""]
    score_held_out: Float[Array, ""]


def draw_examples(
    teacher: Teacher, encoder: Encoder, row: Int[Array, " slots"], key: Array, samples: int
) -> tuple[Task, Float[Array, " code"], Batch]:
    """One task of a combination: its code and its examples."""
    by_task, by_batch, by_code = jax.random.split(key, 3)
    task = teacher.task(row, by_task)
    return task, encoder(task, teacher, by_code), teacher.batch(task, by_batch, samples)


def score_tasks(
    family: Family,
    objective: Objective,
    network: Network,
    codes: Float[Array, "task code"],
    batch: Batch,
    key: Array,
) -> TaskScores:
    """The additive statistics of each task."""
    return jax.vmap(family.score)(batch, objective.evaluate(network, codes, batch, key))


@dataclasses.dataclass(frozen=True)
class Program:
    """The static side of a run."""

    family: Family
    model: Model
    objective: Objective
    recipe: Recipe
    chunk: int
    """Steps in a chunk."""
    validation_tasks: int
    lanes: int
    devices: int = 1
    """Over how many devices the tasks of a batch are spread. Every device has all weights."""

    @classmethod
    def of(cls, config: RunConfig, lanes: int | None = None, devices: int = 1) -> Program:
        """The program of a run."""
        there = jax.device_count() if devices > 1 else 1
        if devices > there:
            raise BadInput(
                f"There are {there} devices here, not {devices}.",
                fix=f"devices={there}, or on CPUs XLA_FLAGS=--xla_force_host_platform_device_count={devices}",
            )
        if config.recipe.tasks % devices:
            raise BadInput(
                f"A batch of {config.recipe.tasks} tasks cannot be spread evenly over {devices} devices.",
                fix="set recipe.tasks to a multiple of the number of devices",
            )
        return cls(
            family=config.family,
            model=config.model,
            objective=config.objective,
            recipe=config.recipe,
            chunk=config.every,
            validation_tasks=config.validation_tasks,
            lanes=config.model.lanes() if lanes is None else lanes,
            devices=devices,
        )

    @functools.cached_property
    def name(self) -> str:
        """Equal for programs that compile to the same code, up to the shapes of a lane's arrays."""
        parts: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("family", "model", "objective"):
            parts[name] = parts[name].model_dump(mode="json")
        parts["recipe"] = self.recipe.shared().model_dump(mode="json")
        return json.dumps(parts, sort_keys=True)

    def _on(self, *axes: str) -> NamedSharding:
        return NamedSharding(Mesh(jax.devices()[: self.devices], ("task",)), PartitionSpec(*axes))

    def place(self, tree: Tree) -> Tree:
        """Arrays where the program wants them: on every device that it uses."""
        if self.devices == 1:
            return tree
        arrays, static = eqx.partition(tree, eqx.is_array)
        return eqx.combine(jax.device_put(arrays, self._on()), static)

    def _spread(self, tree: Tree) -> Tree:
        """Arrays with a leading task axis, an equal share of the tasks on each device: so is all that follows from them."""
        if self.devices == 1:
            return tree
        return jax.lax.with_sharding_constraint(tree, self._on("task"))

    def _step(self, state: TrainState, lane: Lane) -> tuple[TrainState, Float[Array, ""]]:
        key = stream_key(lane.key, Stream.TRAIN, state.step)
        by_row, by_task, by_step = jax.random.split(key, 3)
        by_row, by_task = self._spread(
            (jax.random.split(by_row, self.recipe.tasks), jax.random.split(by_task, self.recipe.tasks))
        )
        rows = jax.vmap(lane.sampler)(by_row)
        _, codes, batch = self._examples(lane, rows, by_task, self.recipe.samples)
        rate = lane.rate * self.recipe.schedule(state.step / lane.steps)
        codes, batch = self._spread((codes, batch))
        optimiser, precision = self.recipe.optimiser(), jnp.dtype(self.recipe.precision)
        return self.objective.step(state, codes, batch, by_step, optimiser, rate, precision)

    def _examples(
        self, lane: Lane, rows: Int[Array, "task slots"], keys: Array, samples: int
    ) -> tuple[Task, Float[Array, "task code"], Batch]:
        one = functools.partial(draw_examples, lane.teacher, lane.encoder, samples=samples)
        return jax.vmap(one)(rows, keys)

    def look(self, state: TrainState, lane: Lane) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The headline score of the two validation streams. The same tasks every time: curves are smooth."""
        by_row, inside = jax.random.split(stream_key(lane.key, Stream.VALIDATION_IN))
        outside, by_model = jax.random.split(stream_key(lane.key, Stream.VALIDATION_OUT))
        number = self.validation_tasks
        trained = jax.vmap(lane.sampler)(jax.random.split(by_row, number))
        # Both streams in one call: half the code to compile.
        rows = jnp.concatenate([trained, lane.held_out])
        keys = jnp.concatenate([jax.random.split(inside, number), jax.random.split(outside, number)])
        _, codes, batch = self._examples(lane, rows, keys, self.family.validation_samples)
        scores = score_tasks(self.family, self.objective, state.network, codes, batch, by_model)
        return (
            self.family.headline({name: values[:number] for name, values in scores.items()}),
            self.family.headline({name: values[number:] for name, values in scores.items()}),
        )

    def advance(self, state: TrainState, lane: Lane, active: Bool[Array, ""]) -> tuple[TrainState, Look]:
        """A chunk of steps for one run. A run that is not active stays as it is, bit for bit."""

        arrays, static = eqx.partition(state, eqx.is_array)
        # A loop of known length would have to keep the old weights beside the new ones, to choose between them. In a stack
        # the lanes that are through wait for the others.
        left = jnp.where(active, jnp.clip(lane.steps - state.step, 0, self.chunk), 0).astype(int)

        def body(number: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
            before, losses = carry
            after, loss = self._step(eqx.combine(before, static), lane)
            return eqx.filter(after, eqx.is_array), losses.at[number].set(loss)

        arrays, losses = jax.lax.fori_loop(0, left, body, (arrays, jnp.zeros(self.chunk)))
        state = eqx.combine(arrays, static)
        return state, Look(losses, *self.look(state, lane))


def buckets(
    configs: Iterable[RunConfig], lanes: int | None = None, devices: int = 1
) -> list[tuple[Program, list[RunConfig]]]:
    """Runs by the program that they share, in the order in which they came. Nothing is drawn for this."""
    found: dict[str, tuple[Program, list[RunConfig]]] = {}
    for config in configs:
        program = Program.of(config, lanes, devices)
        # Lists of combinations are arrays and differ freely; a rule is part of the program.
        length = config.support.length(config.space)
        support = config.support.kind if length else f"{config.support} {config.seeds.support}"
        name = f"{program.name}|{config.space}|{config.encoding}|{support}|{length and padded(length)}"
        found.setdefault(name, (program, []))[1].append(config)
    return list(found.values())


def padded(length: int) -> int:
    """The length to which a list of combinations is padded, so that supports of many sizes share a program: numbers cost little
    memory, a program takes seconds to compile."""
    return max(SHORTEST_LIST, 1 << (length - 1).bit_length())


def stack(trees: Sequence[Tree]) -> Tree:
    """Equal pytrees as one with a leading lane axis; one alone stays as it is, as an axis would cost a copy.

    What is no array (an activation function) is shared.
    """
    if len(trees) == 1:
        return trees[0]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *trees)


def unstack(tree: Tree, index: int, lanes: int) -> Tree:
    """One lane of a stack of so many."""
    if lanes == 1:
        return tree
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def signature(tree: PyTree) -> str:
    """The structure and shapes of a pytree: what, with the program's name, decides the compiled code."""
    leaves, structure = jax.tree.flatten(tree)
    # What is no array (an activation function, a number) is written into the code.
    shapes = [(leaf.shape, str(leaf.dtype)) if eqx.is_array(leaf) else repr(leaf) for leaf in leaves]
    return f"{structure}|{shapes}"


@dataclasses.dataclass(frozen=True)
class Advance:
    """`Program.advance`, compiled; over a leading lane axis where there are several lanes."""

    compiled: Any
    """What the compiler made; it also knows how much memory it needs."""
    static: Any
    """What of a state is no array."""

    @functools.cached_property
    def memory(self) -> Any:
        """The compiler's account of memory. Asked for once: it takes longer than many a step."""
        return self.compiled.memory_analysis()

    def __call__(self, state: TrainState, lane: Lane, active: Array) -> tuple[TrainState, Look]:
        after, look = self.compiled(*eqx.filter((state, lane), eqx.is_array), active)
        return eqx.combine(after, self.static), look


class Compiler:
    """Compiles each bucket once and counts."""

    def __init__(self) -> None:
        self._compiled: dict[str, Advance] = {}
        self.compilations = 0
        self.seconds = 0.0

    def advance(self, program: Program, state: TrainState, lane: Lane, active: Array) -> Advance:
        """The compiled `advance` of a stack of lanes, ready to be called with such arguments."""
        name = f"{program.name}|{signature((state, lane, active))}"
        if name not in self._compiled:
            begin = time.perf_counter()
            self._compiled[name] = _compile(program, state, lane, active)
            self.compilations += 1
            self.seconds += time.perf_counter() - begin
        return self._compiled[name]


def _compile(program: Program, state: TrainState, lane: Lane, active: Array) -> Advance:
    """`advance` over a leading lane axis, where there are several. Only arrays are stacked; the rest is the same for all."""
    arrays, (state_static, lane_static) = eqx.partition((state, lane), eqx.is_array)

    def one(state_arrays: PyTree, lane_arrays: PyTree, active: Array) -> tuple[PyTree, Look]:
        whole = eqx.combine(state_arrays, state_static), eqx.combine(lane_arrays, lane_static)
        after, look = program.advance(*whole, active)
        return eqx.filter(after, eqx.is_array), look

    every = jax.vmap(one) if program.lanes > 1 else one
    stacked = jax.jit(every, donate_argnums=0, compiler_options=compiler_options())
    compiled = stacked.lower(*arrays, active).compile()
    return Advance(compiled, state_static)
