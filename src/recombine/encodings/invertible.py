"""A random invertible network of the task vector: three affine coupling layers."""

from __future__ import annotations

import itertools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveFloat

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space

LAYERS = 3


class Coupling(eqx.Module):
    """An affine coupling layer: the first half of a vector stays and decides how the second half is scaled and shifted.

    The second half is longer by one where the length is odd. The scale is between .5 and 1.5, so it can be inverted.
    """

    weights: tuple[Float[Array, "_ _"], ...]

    @staticmethod
    def draw(width: int, scale: float, key: Array) -> Coupling:
        """Random weights with standard deviation `scale`."""
        kept = width // 2
        sizes = (kept, 2 * width, 2 * width, 2 * (width - kept))
        keys = jax.random.split(key, len(sizes) - 1)
        shapes = zip(keys, itertools.pairwise(sizes), strict=True)
        return Coupling(tuple(scale * jax.random.normal(layer_key, shape) for layer_key, shape in shapes))

    def amounts(self, kept: Float[Array, " kept"]) -> tuple[Float[Array, " moved"], Float[Array, " moved"]]:
        """Scale and shift of the second half."""
        *hidden, last = self.weights
        for weight in hidden:
            kept = jax.nn.sigmoid(kept @ weight)
        factor, shift = jnp.split(kept @ last, 2)
        return 1 + 0.5 * jnp.tanh(factor), shift

    def forward(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        """Apply the layer."""
        kept, moved = jnp.split(vector, [len(vector) // 2])
        factor, shift = self.amounts(kept)
        return jnp.concatenate([kept, factor * moved + shift])


class InvertibleEncoder(Encoder):
    """The code is f(z). The second layer acts on the reversed vector, so that both halves change."""

    layers: tuple[Coupling, ...]

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return self.forward(task.vector)

    def forward(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        """The code of a task vector."""
        for number, layer in enumerate(self.layers):
            vector = layer.forward(vector[::-1])[::-1] if number % 2 else layer.forward(vector)
        return vector


class Invertible(Encoding):
    """The model sees f(z), f invertible and drawn once for each replicate.

    Scale and shift come from a network M/2 -> 2M -> 2M -> M with sigmoids and without biases. At the published scale of its
    weights, .1, f is so nearly affine that z can be decoded linearly; a scale of 1 makes it nonlinear.
    """

    kind: Literal["invertible"] = "invertible"
    scale: PositiveFloat = 0.1
    """The standard deviation of the weights."""

    def draw(self, space: Space, family: Family, key: Array) -> InvertibleEncoder:
        keys = jax.random.split(key, LAYERS)
        return InvertibleEncoder(tuple(Coupling.draw(space.width, self.scale, layer_key) for layer_key in keys))
