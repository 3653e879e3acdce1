"""What every model provides."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from recombine.component import Component
from recombine.encodings.base import Encoding
from recombine.families.base import Family, Teacher

Trace = dict[str, Float[Array, "sample _"]]
"""Activations by the name of their site, in the order of the computation. Sites may have any width."""

Edit = Callable[[str, Float[Array, "sample _"]], Float[Array, "sample _"]]
"""From a site and what the network computed there to what it goes on with."""


def unedited(site: str, values: Float[Array, "sample _"]) -> Float[Array, "sample _"]:
    """Leaves every site as it is."""
    return values


class Network(eqx.Module):
    """A drawn model. It sees one task: a code, and several inputs."""

    @abc.abstractmethod
    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        """The outputs and the activations at every site, each passed through `edit` before the network goes on."""

    def __call__(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"]
    ) -> Float[Array, "sample output"]:
        """The outputs. Compiled code keeps nothing of the trace."""
        return self.trace(code, inputs)[0]

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        """The outputs for many tasks at once: what is trained. A model for which another form than vmap is faster has it."""
        return jax.vmap(self)(codes, inputs)


class Model(Component, abc.ABC):
    """The configuration of a model."""

    speaks: ClassVar[bool] = False
    """Whether it answers in tokens, one after another (`SequenceNetwork`)."""

    def lanes(self) -> int:
        """How many runs of this model one program steps at once. More than 1 only where stacking pays."""
        return 1

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        """Raise BadInput if this model cannot serve a family or an encoding, or so many examples a task."""
        return

    @abc.abstractmethod
    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        """A network with fresh weights."""

    def build(
        self, teacher: Teacher, code_size: int, input_size: int, output_size: int, key: Array
    ) -> Network:
        """The network before training. Only a model that is constructed from the teacher looks at it."""
        return self.draw(code_size, input_size, output_size, key)
