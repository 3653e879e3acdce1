"""What every model provides."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from recombine.component import Component

Trace = dict[str, Float[Array, "sample _"]]
"""Activations by the name of their site, in the order of the computation. Sites may have any width."""


class Network(eqx.Module):
    """A drawn model. It sees one task: a code, and several inputs."""

    @abc.abstractmethod
    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"]
    ) -> tuple[Float[Array, "sample output"], Trace]:
        """The outputs and the activations at every site."""

    def __call__(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"]
    ) -> Float[Array, "sample output"]:
        """The outputs. Compiled code keeps nothing of the trace."""
        return self.trace(code, inputs)[0]


class Model(Component, abc.ABC):
    """The configuration of a model."""

    unroll: ClassVar[int] = 1
    """How many steps the compiled loop writes out. 1 for dense layers; convolutions want their whole chunk."""

    def lanes(self) -> int:
        """How many runs of this model one program steps at once. More than 1 only where stacking pays."""
        return 1

    @abc.abstractmethod
    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        """A network with fresh weights."""
