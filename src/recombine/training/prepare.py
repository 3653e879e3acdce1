"""From a configuration to arrays: draws the support, the teacher, the encoding and the first weights."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Teacher
from recombine.models.base import Model, Network
from recombine.models.reading import ReadingNetwork
from recombine.objectives.base import Objective, TrainState
from recombine.recipes.base import Recipe
from recombine.spaces.base import Space
from recombine.supports.base import Support
from recombine.supports.regions import Regions
from recombine.training.compiling import compiled
from recombine.training.config import RunConfig
from recombine.training.program import Lane, padded, stack
from recombine.training.streams import named_key


@dataclasses.dataclass(frozen=True)
class Setting:
    """All that is drawn for a run before training. Depends on the configuration alone, so it is never stored."""

    config: RunConfig

    @functools.cached_property
    def support(self) -> Support:
        return self.config.support.draw(self.config.space, self.config.seeds.support)

    @functools.cached_property
    def regions(self) -> Regions:
        return Regions(self.support, self.config.seeds.support)

    @functools.cached_property
    def teacher(self) -> Teacher:
        self.config.family.prepare(self.config.space, self._teacher_key)
        return self._draw_teacher()

    @functools.cached_property
    def encoder(self) -> Encoder:
        return self._draw_encoder()

    @property
    def _teacher_key(self) -> Array:
        return named_key(self.config.seeds.teacher, "teacher")

    def _draw_teacher(self) -> Teacher:
        family, space = self.config.family, self.config.space
        key, structure = self._teacher_key, self.support.structure
        return _draw(family, space, key) if structure is None else _draw_within(family, space, structure, key)

    def _draw_encoder(self) -> Encoder:
        key = named_key(self.config.seeds.teacher, "encoding")
        return _draw(self.config.encoding, self.config.space, self.config.family, key)

    def network(self) -> Network:
        """The network before training."""
        return _network(*self._origin(self.teacher))

    def _origin(self, teacher: Teacher) -> tuple[Any, ...]:
        """What the first weights depend on."""
        config = self.config
        parts = config.model, config.encoding, config.space, config.family
        return *parts, teacher, named_key(config.seeds.init, "init")

    @property
    def data_key(self) -> Array:
        """The key of all data streams."""
        return named_key(self.config.seeds.data, "data")

    def validation_rows(self) -> Int[np.ndarray, "n slots"]:
        """Held-out combinations of the validation side, repeated in turn where there are fewer than tasks."""
        number = self.config.validation_tasks
        rows = self.regions.require("held_out", number, "validation")
        return np.resize(rows, (number, rows.shape[1]))

    def lane(self) -> Lane:
        """The run's arrays."""
        return self._lane(self.teacher, self.encoder, self.validation_rows())

    def _lane(self, teacher: Teacher, encoder: Encoder, held_out: Int[np.ndarray, "n slots"]) -> Lane:
        length = self.config.support.length(self.config.space)
        return Lane(
            sampler=self.support.sampler(None if length is None else padded(length)),
            teacher=teacher,
            encoder=encoder,
            key=self.data_key,
            held_out=jnp.asarray(held_out),
            rate=jnp.asarray(self.config.recipe.rate, jnp.float32),
            steps=jnp.asarray(self.config.recipe.steps, jnp.float32),
        )

    def state(self) -> TrainState:
        """The state before the first step."""
        return self._state(self.teacher)

    def _state(self, teacher: Teacher) -> TrainState:
        return _state(self.config.objective, self.config.recipe.shared(), *self._origin(teacher))

    def shapes(self, lanes: int) -> tuple[TrainState, Lane]:
        """State and lane of a stack of such runs, as shapes. Of what is random only the support is drawn."""
        held_out = self.validation_rows()  # Not inside: it is no program of arrays.

        def drawn() -> tuple[TrainState, Lane]:
            teacher = self._draw_teacher()
            whole = self._state(teacher), self._lane(teacher, self._draw_encoder(), held_out)
            return stack([whole] * lanes)

        return eqx.filter_eval_shape(drawn)


@compiled
def _draw(component: Any, *arguments: Any) -> Any:
    """A component's `draw`, compiled: once for each configuration, not once for each of its operations."""
    return component.draw(*arguments)


@compiled
def _draw_within(family: Family, space: Space, structure: Any, key: Array) -> Teacher:
    return family.draw_within(space, structure, key)


def first_network(
    model: Model, encoding: Encoding, space: Space, family: Family, teacher: Teacher, key: Array
) -> Network:
    """A network with fresh weights: the model's, behind the encoding's reader if it has one."""
    features = encoding.features(space, family)
    network = model.build(teacher, features, family.input_size, family.output_size, key)
    reader = encoding.reader(space, family, jax.random.fold_in(key, 1))
    return network if reader is None else ReadingNetwork(reader, network)


_network = compiled(first_network)


@compiled
def _state(objective: Objective, recipe: Recipe, *origin: Any) -> TrainState:
    """The state of a network with fresh weights, in one program: one by one these are about eighty operations."""
    return objective.init(first_network(*origin), recipe.optimiser())
