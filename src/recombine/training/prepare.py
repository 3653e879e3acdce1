"""From a configuration to arrays: drawing the support, the teacher, the encoding and the initial weights."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.encodings.base import Encoder, Encoding
from recombine.errors import BadInput
from recombine.families.base import Batch, Family, Teacher
from recombine.models.base import EmbeddedNetwork, Model, Network, leaf_name
from recombine.objectives.base import Objective, TrainState, trained_leaves
from recombine.recipes.base import Recipe
from recombine.spaces.base import Space
from recombine.supports import Regions, Support
from recombine.training.compiling import compiled
from recombine.training.config import RunConfig
from recombine.training.program import RunArrays, padded_length
from recombine.training.streams import named_key

LoadParent = Callable[[RunConfig], Network]
"""Gives the trained network of a parent."""


def no_parent(config: RunConfig) -> Network:
    """Raise BadInput: where no store is at hand, the weights of a parent are unknown."""
    fix = "load the run from its store, or train it with rc.train"
    raise BadInput(f"The weights of the parent {config.run_id} are not at hand.", fix=fix)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is drawn for a run before training: support, teacher, encoding, initial weights.

    All of it follows from the configuration, so it is never stored. Each part is drawn on first use.

    Example:
        ```python
        setting = rc.training.Setting(rc.RunConfig())
        setting.support.certificate()
        ```
    """

    config: RunConfig
    parents: LoadParent = no_parent
    """Gives the trained network of a parent. Only runs with parents need it, and only for their first network."""

    @functools.cached_property
    def support(self) -> Support:
        """The training combinations."""
        return self.config.support.draw(self.config.space, self.config.seeds.support)

    @functools.cached_property
    def regions(self) -> Regions:
        """The combinations to evaluate on."""
        return Regions(self.support, self.config.seeds.support)

    @functools.cached_property
    def teacher(self) -> Teacher:
        """The drawn family, which makes tasks and examples."""
        family, space = self.config.family, self.config.space
        key, structure = named_key(self.config.seeds.teacher, "teacher"), self.support.structure
        family.prepare(space, key)
        return _draw(family, space, key) if structure is None else _draw_within(family, space, structure, key)

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The drawn encoding, which makes a task's code."""
        key = named_key(self.config.seeds.teacher, "encoding")
        return _draw(self.config.encoding, self.config.space, self.config.family, key)

    def network(self) -> Network:
        """The network before training."""
        return _network(*self._origin())

    def network_shapes(self) -> Network:
        """The network with shapes in place of arrays, for loading weights."""
        return network_shapes(*self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.config.model, self.config.encoding, self.config.space, self.config.family

    def _origin(self) -> tuple[Any, ...]:
        """What the initial weights depend on."""
        parents = tuple(self.parents(parent) for parent in self.config.parents)
        return *self._parts(), self.teacher, named_key(self.config.seeds.init, "init"), parents

    @property
    def data_key(self) -> Array:
        """The key of all data streams."""
        return named_key(self.config.seeds.data, "data")

    def validation_rows(self) -> Int[np.ndarray, "n slots"]:
        """Held-out combinations for validation, repeated where there are fewer than tasks."""
        number = self.config.validation_tasks
        rows = self.regions.require("held_out", number, "validation")
        return np.resize(rows, (number, rows.shape[1]))

    def arrays(self) -> RunArrays:
        """The run's arrays, for the compiled program."""
        length = self.config.support.length(self.config.space)
        return RunArrays(
            sampler=self.support.sampler(None if length is None else padded_length(length)),
            teacher=self.teacher,
            encoder=self.encoder,
            key=self.data_key,
            held_out=jnp.asarray(self.validation_rows()),
            rate=jnp.asarray(self.config.recipe.learning_rate, jnp.float32),
            steps=jnp.asarray(self.config.recipe.steps, jnp.float32),
        )

    def state(self) -> TrainState:
        """The state before the first step."""
        return _state(self.config.objective, self.config.recipe.shared(), self.config.trained, *self._origin())


@compiled
def _draw(component: Any, *arguments: Any) -> Any:
    """A component's `draw`, compiled as one program per configuration instead of one per operation."""
    return component.draw(*arguments)


@compiled
def _draw_within(family: Family, space: Space, structure: Any, key: Array) -> Teacher:
    return family.draw_within(space, structure, key)


def first_network(
    model: Model,
    encoding: Encoding,
    space: Space,
    family: Family,
    teacher: Teacher | None,
    key: Array,
    parents: tuple[Network, ...] = (),
) -> Network:
    """A network with initial weights: the model's, behind the encoding's embedder if it has one, or what it has of its parents."""
    sizes = encoding.features(space, family), family.input_size, family.output_size
    network = model.draw(*sizes, key) if teacher is None else model.build(teacher, *sizes, key)
    embedder = encoding.embedder(space, family, jax.random.fold_in(key, 1))
    if not parents:
        return network if embedder is None else EmbeddedNetwork(embedder, network)
    if embedder is None:
        return model.inherit(network, parents)
    embedded = [parent for parent in parents if isinstance(parent, EmbeddedNetwork)]
    if len(embedded) < len(parents):
        fix = f"give the parent the encoding {encoding.kind!r} too"
        raise BadInput(
            f"The encoding {encoding.kind!r} is trained with the network, and a parent has no such part.", fix=fix
        )
    return EmbeddedNetwork(embedded[0].reader, model.inherit(network, [parent.network for parent in embedded]))


def check_line(config: RunConfig) -> None:
    """Raise BadInput if a run cannot start from its parents, or if `trains` names no weight or all. Nothing is drawn."""
    shapes = network_shapes(config.model, config.encoding, config.space, config.family)
    if config.parents:
        parts = [(each.model, each.encoding, each.space, each.family) for each in (config, *config.parents)]
        try:
            _check_shapes(*parts)
        except BadInput as error:
            names = ", ".join(parent.run_id for parent in config.parents)
            raise BadInput(
                f"The run {config.run_id} cannot start from {names}: {error.message}", fix=error.fix
            ) from error
    if config.trains:
        chosen = jax.tree.leaves(trained_leaves(shapes, config.trains))
        weights = jax.tree.leaves(trained_leaves(shapes))
        if sum(chosen) in (0, sum(weights)):
            named = [
                leaf_name(path) for path, leaf in jax.tree_util.tree_leaves_with_path(trained_leaves(shapes)) if leaf
            ]
            what = "no weight" if not any(chosen) else "all weights"
            shown = ", ".join(named[:8]) + (", ..." if len(named) > 8 else "")
            fix = f"choose some of {shown}" if not any(chosen) else "leave trains out"
            raise BadInput(f"trains={list(config.trains)} names {what} of the model {config.model.kind!r}.", fix=fix)


@functools.lru_cache(maxsize=64)
def _check_shapes(own: tuple[Any, ...], *others: tuple[Any, ...]) -> None:
    """Start from networks with the shapes of these parents, without any numbers."""

    def build(key: Array, parents: tuple[Network, ...]) -> Network:
        model, encoding, space, family = own
        teacher = None if type(model).build is Model.build else family.draw(space, key)
        return first_network(model, encoding, space, family, teacher, key, parents)

    eqx.filter_eval_shape(build, jax.random.key(0), tuple(network_shapes(*parts) for parts in others))


@functools.lru_cache(maxsize=64)
def network_shapes(model: Model, encoding: Encoding, space: Space, family: Family) -> Network:
    """A network with shapes in place of arrays. Nothing is compiled.

    The teacher is drawn only for a model that is built from it, because some families draw slowly.
    """

    def build(key: Array) -> Network:
        teacher = None if type(model).build is Model.build else family.draw(space, key)
        return first_network(model, encoding, space, family, teacher, key)

    return eqx.filter_eval_shape(build, jax.random.key(0))


_network = compiled(first_network)


@compiled
def _state(objective: Objective, recipe: Recipe, trained: tuple[str, ...], *origin: Any) -> TrainState:
    """The initial training state in one program instead of about eighty operations."""
    network, family = first_network(*origin), origin[3]
    state = objective.init(network, recipe.optimiser(), trained)
    rows = recipe.tasks, recipe.samples
    zeros = (jnp.zeros((*rows, *size)) for size in ((family.input_size,), (family.output_size,), ()))
    nothing = jax.vmap(Batch)(*zeros)
    return TrainState(state.network, state.optimiser, state.step, objective.carry(network, nothing))
