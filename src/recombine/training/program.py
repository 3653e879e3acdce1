"""The compiled program: a chunk of training steps with the data drawn inside, then an evaluation on both validation streams.

What differs between runs is in arrays (`RunArrays`, `TrainState`); what they share is in the program. Runs with equal
programs and array shapes form a *bucket*: the program is compiled once for all of them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
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
from recombine.training.compiling import compile_lowered, compiler_options
from recombine.training.config import RunConfig
from recombine.training.streams import Stream, stream_key

Tree = TypeVar("Tree", bound=PyTree)

SHORTEST_LIST = 1 << 15
"""Shorter lists of combinations are padded to this length, which takes a few megabytes at most."""

MOST_PROGRAMS = 100
"""Compiled programs that a process keeps in memory: each takes several of the mappings that Linux allows."""


class RunArrays(eqx.Module):
    """The arrays of one run, as the program takes them."""

    sampler: Sampler
    teacher: Teacher
    encoder: Encoder
    key: Array
    """The key of all the run's data streams."""
    held_out: Int[Array, "validation slots"]
    """Held-out combinations for validation."""
    rate: Float[Array, ""]
    steps: Float[Array, ""]


class Evaluation(NamedTuple):
    """What a chunk reports of one run: the loss of each step, and the headline score of both validation streams."""

    losses: Float[Array, " step"]
    score_in: Float[Array, ""]
    score_held_out: Float[Array, ""]


def draw_examples(
    teacher: Teacher, encoder: Encoder, row: Int[Array, " slots"], key: Array, samples: int
) -> tuple[Task, Float[Array, " code"], Batch]:
    """Draw a task of a combination, its code and its examples."""
    by_task, by_batch, by_code = jax.random.split(key, 3)
    task = teacher.task(row, by_task)
    return task, encoder(task, teacher, by_code), teacher.batch(task, by_batch, samples)


def score_tasks(
    family: Family, objective: Objective, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
) -> TaskScores:
    """The additive statistics of each task."""
    return jax.vmap(family.score)(batch, objective.evaluate(network, codes, batch, key))


@dataclasses.dataclass(frozen=True)
class Program:
    """The static part of a run: all that is compiled into the program."""

    family: Family
    model: Model
    objective: Objective
    recipe: Recipe
    chunk: int
    """Steps in a chunk."""
    validation_tasks: int
    stack_size: int
    """Runs that are trained at once."""
    devices: int = 1
    """The number of devices over which the tasks of a batch are spread. Every device has all weights."""
    trained: tuple[str, ...] = ()
    """Names of the weights that are trained; empty for all."""

    @classmethod
    def of(cls, config: RunConfig, stack_size: int | None = None, devices: int = 1) -> Program:
        """The program of a run; by default with the model's stack size."""
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
            chunk=config.eval_every,
            validation_tasks=config.validation_tasks,
            stack_size=config.model.stack_size() if stack_size is None else stack_size,
            devices=devices,
            trained=config.trained,
        )

    @functools.cached_property
    def name(self) -> str:
        """Equal for programs that compile to the same code, up to the shapes of arrays."""
        parts: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("family", "model", "objective"):
            parts[name] = parts[name].model_dump(mode="json")
        parts["recipe"] = self.recipe.shared().model_dump(mode="json")
        return json.dumps(parts, sort_keys=True)

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that decides the compiled code, up to the shapes of arrays; hashable.

        The classes count, not only their kinds: a notebook may define a class anew. So do JAX's settings.
        """
        classes = (type(part) for part in (self.family, self.model, self.objective, self.recipe))
        settings = ("jax_disable_most_optimizations", "jax_default_matmul_precision", "jax_enable_x64")
        return self.name, *classes, jax.default_backend(), *(jax.config.values.get(name) for name in settings)

    def _on(self, *axes: str) -> NamedSharding:
        return NamedSharding(Mesh(jax.devices()[: self.devices], ("task",)), PartitionSpec(*axes))

    def place(self, tree: Tree) -> Tree:
        """Put arrays on every device that the program uses."""
        if self.devices == 1:
            return tree
        arrays, static = eqx.partition(tree, eqx.is_array)
        return eqx.combine(jax.device_put(arrays, self._on()), static)

    def _spread(self, tree: Tree) -> Tree:
        """Spread arrays with a leading task axis evenly over the devices."""
        if self.devices == 1:
            return tree
        return jax.lax.with_sharding_constraint(tree, self._on("task"))

    def _step(self, state: TrainState, run_arrays: RunArrays) -> tuple[TrainState, Float[Array, ""]]:
        key = stream_key(run_arrays.key, Stream.TRAIN, state.step)
        by_row, by_task, by_step = jax.random.split(key, 3)
        by_row, by_task = self._spread(
            (jax.random.split(by_row, self.recipe.tasks), jax.random.split(by_task, self.recipe.tasks))
        )
        rows = jax.vmap(run_arrays.sampler)(by_row)
        _, codes, batch = self._examples(run_arrays, rows, by_task, self.recipe.samples)
        rate = run_arrays.rate * self.recipe.schedule(state.step / run_arrays.steps)
        codes, batch = self._spread((codes, batch))
        optimiser, precision = self.recipe.optimiser(), jnp.dtype(self.recipe.precision)
        done = (state.step + 1) / run_arrays.steps
        return self.objective.step(state, codes, batch, by_step, optimiser, rate, precision, self.trained, done)

    def _examples(
        self, run_arrays: RunArrays, rows: Int[Array, "task slots"], keys: Array, samples: int
    ) -> tuple[Task, Float[Array, "task code"], Batch]:
        draw = functools.partial(draw_examples, run_arrays.teacher, run_arrays.encoder, samples=samples)
        return jax.vmap(draw)(rows, keys)

    def evaluate(self, state: TrainState, run_arrays: RunArrays) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The headline score on both validation streams. The tasks are always the same, so curves are smooth."""
        by_row, inside = jax.random.split(stream_key(run_arrays.key, Stream.VALIDATION_IN))
        outside, by_model = jax.random.split(stream_key(run_arrays.key, Stream.VALIDATION_OUT))
        number = self.validation_tasks
        trained = jax.vmap(run_arrays.sampler)(jax.random.split(by_row, number))
        # Both streams in one call, so that half as much is compiled.
        rows = jnp.concatenate([trained, run_arrays.held_out])
        keys = jnp.concatenate([jax.random.split(inside, number), jax.random.split(outside, number)])
        _, codes, batch = self._examples(run_arrays, rows, keys, self.family.validation_samples)
        network = self.objective.trained_network(state)
        scores = score_tasks(self.family, self.objective, network, codes, batch, by_model)
        return (
            self.family.headline({name: values[:number] for name, values in scores.items()}),
            self.family.headline({name: values[number:] for name, values in scores.items()}),
        )

    def advance(
        self, state: TrainState, run_arrays: RunArrays, active: Bool[Array, ""]
    ) -> tuple[TrainState, Evaluation]:
        """Train one run for a chunk of steps, then evaluate it. An inactive run does not change, bit for bit."""
        arrays, static = eqx.partition(state, eqx.is_array)
        # A loop of known length would have to keep the old weights beside the new ones, to choose between them. In a stack
        # the stack_size that are through wait for the others.
        left = jnp.where(active, jnp.clip(run_arrays.steps - state.step, 0, self.chunk), 0).astype(int)

        def body(number: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
            before, losses = carry
            after, loss = self._step(eqx.combine(before, static), run_arrays)
            return eqx.filter(after, eqx.is_array), losses.at[number].set(loss)

        arrays, losses = jax.lax.fori_loop(0, left, body, (arrays, jnp.zeros(self.chunk)))
        state = eqx.combine(arrays, static)
        return state, Evaluation(losses, *self.evaluate(state, run_arrays))


def buckets(
    configs: Iterable[RunConfig], stack_size: int | None = None, devices: int = 1
) -> list[tuple[Program, list[RunConfig]]]:
    """Group runs by the program that they share, in order. Nothing is drawn."""
    by_name: dict[str, tuple[Program, list[RunConfig]]] = {}
    for config in configs:
        program = Program.of(config, stack_size, devices)
        by_name.setdefault(bucket_name(program, config), (program, []))[1].append(config)
    return list(by_name.values())


def bucket_name(program: Program, config: RunConfig) -> str:
    """Equal for runs that share a compiled program. Nothing is drawn."""
    # Lists of combinations are arrays and may differ; a rule is part of the program.
    length = config.support.length(config.space)
    support = config.support.kind if length else f"{config.support} {config.seeds.support}"
    return f"{program.name}|{config.space}|{config.encoding}|{support}|{length and padded_length(length)}"


def padded_length(length: int) -> int:
    """The padded length of a list of combinations. Supports of many sizes then share a program, at little memory."""
    return max(SHORTEST_LIST, 1 << (length - 1).bit_length())


def stack(trees: Sequence[Tree]) -> Tree:
    """Stack equal pytrees along a new leading axis. A single one stays as it is, because an axis would cost a copy.

    What is not an array (an activation function, for example) is shared.
    """
    if len(trees) == 1:
        return trees[0]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *trees)


def unstack(tree: Tree, index: int, stack_size: int) -> Tree:
    """The arrays of one run of a stack."""
    if stack_size == 1:
        return tree
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def signature(tree: PyTree) -> tuple[Any, ...]:
    """The structure and shapes of a pytree: with the program, they decide the compiled code."""
    leaves, structure = jax.tree.flatten(tree)
    # What is not an array (an activation function, a number) is written into the code.
    shapes = [(leaf.shape, str(leaf.dtype)) if eqx.is_array(leaf) else repr(leaf) for leaf in leaves]
    return structure, *shapes


@dataclasses.dataclass(frozen=True)
class Advance:
    """`Program.advance`, compiled; for several runs, over a leading run axis."""

    compiled: Any
    """The compiled program, which also knows its memory."""
    static: Any
    """The parts of a state that are not arrays."""

    @functools.cached_property
    def memory(self) -> Any:
        """The compiler's account of memory. Read once, because this takes longer than a step."""
        return self.compiled.memory_analysis()

    def __call__(self, state: TrainState, run_arrays: RunArrays, active: Array) -> tuple[TrainState, Evaluation]:
        after, evaluation = self.compiled(*eqx.filter((state, run_arrays), eqx.is_array), active)
        return eqx.combine(after, self.static), evaluation


class Compiler:
    """Compiles each bucket once, keeps the compiled programs in memory, and counts."""

    def __init__(self, most: int | None = None) -> None:
        self._compiled: OrderedDict[Any, Advance] = OrderedDict()
        self._most = most
        """How many programs are kept; None for all."""
        self.compilations = 0
        self.seconds = 0.0

    def advance(
        self,
        program: Program,
        state: TrainState,
        run_arrays: RunArrays,
        active: Array,
        notice: Callable[[], None] | None = None,
    ) -> Advance:
        """The compiled `advance` of a stack of runs, to be called with such arguments. Only their shapes matter here.

        `notice` is called when compiling takes more than a second.
        """
        name = program.identity, signature((state, run_arrays, active))
        if name not in self._compiled:
            begin = time.perf_counter()
            self._compiled[name] = _compile(program, state, run_arrays, active, notice)
            self.compilations += 1
            self.seconds += time.perf_counter() - begin
            if self._most is not None and len(self._compiled) > self._most:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(name)
        return self._compiled[name]


@functools.cache
def shared_compiler() -> Compiler:
    """The compiler of this process, for `train` and for engines: the same program is compiled once."""
    return Compiler(most=MOST_PROGRAMS)


def _compile(
    program: Program, state: TrainState, run_arrays: RunArrays, active: Array, notice: Callable[[], None] | None
) -> Advance:
    """Compile `advance`, over a leading run axis where the stack has several. Only arrays are stacked."""
    arrays, (state_static, run_static) = eqx.partition((state, run_arrays), eqx.is_array)

    def one_run(state_arrays: PyTree, own_arrays: PyTree, active: Array) -> tuple[PyTree, Evaluation]:
        whole = eqx.combine(state_arrays, state_static), eqx.combine(own_arrays, run_static)
        after, evaluation = program.advance(*whole, active)
        return eqx.filter(after, eqx.is_array), evaluation

    all_runs = jax.vmap(one_run) if program.stack_size > 1 else one_run
    stacked = jax.jit(all_runs, donate_argnums=0, compiler_options=compiler_options())
    return Advance(compile_lowered(stacked.lower(*arrays, active), notice), state_static)
