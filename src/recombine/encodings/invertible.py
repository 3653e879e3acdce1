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
    """Leaves the first half of a vector; scales and shifts the second half, by amounts that the first decides.

    The second half has one more where the length is odd. Its factor is between .5 and 1.5, so it can be undone.
    """

    weights: tuple[Float[Array, "_ _"], ...]

    @staticmethod
    def draw(width: int, scale: float, key: Array) -> Coupling:
        kept = width // 2
        sizes = (kept, 2 * width, 2 * width, 2 * (width - kept))
        keys = jax.random.split(key, len(sizes) - 1)
        shapes = zip(keys, itertools.pairwise(sizes), strict=True)
        return Coupling(tuple(scale * jax.random.normal(one, shape) for one, shape in shapes))

    def amounts(self, kept: Float[Array, " kept"]) -> tuple[Float[Array, " moved"], Float[Array, " moved"]]:
        """Factor and shift of the second half."""
        *hidden, last = self.weights
        for weight in hidden:
            kept = jax.nn.sigmoid(kept @ weight)
        factor, shift = jnp.split(kept @ last, 2)
        return 1 + 0.5 * jnp.tanh(factor), shift

    def forward(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        kept, moved = jnp.split(vector, [len(vector) // 2])
        factor, shift = self.amounts(kept)
        return jnp.concatenate([kept, factor * moved + shift])

    def inverse(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        kept, moved = jnp.split(vector, [len(vector) // 2])
        factor, shift = self.amounts(kept)
        return jnp.concatenate([kept, (moved - shift) / factor])


class InvertibleEncoder(Encoder):
    """Shows f(z). The second layer acts on the reversed vector, so that both halves are changed."""

    layers: tuple[Coupling, ...]

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return self.forward(task.vector)

    def forward(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        """The code of a task vector."""
        for number, layer in enumerate(self.layers):
            vector = layer.forward(vector[::-1])[::-1] if number % 2 else layer.forward(vector)
        return vector

    def inverse(self, code: Float[Array, " width"]) -> Float[Array, " width"]:
        """The task vector of a code."""
        for number, layer in reversed(list(enumerate(self.layers))):
            code = layer.inverse(code[::-1])[::-1] if number % 2 else layer.inverse(code)
        return code


class Invertible(Encoding):
    """The model sees f(z), f invertible and drawn once for each replicate.

    The amounts come from a network M/2 -> 2M -> 2M -> M with sigmoids and no biases. At the published scale of its
    weights, .1, f is so nearly affine that z can be read off linearly; 1 makes it truly nonlinear.
    """

    kind: Literal["invertible"] = "invertible"
    scale: PositiveFloat = 0.1
    """The standard deviation of the weights."""

    def size(self, space: Space, family: Family) -> int:
        return space.width

    def draw(self, space: Space, family: Family, key: Array) -> InvertibleEncoder:
        keys = jax.random.split(key, LAYERS)
        return InvertibleEncoder(tuple(Coupling.draw(space.width, self.scale, one) for one in keys))
