"""Convolutions as matrix products, and changes of resolution without one: for models that see images.

A convolution is written as one product of gathered patches with a matrix. On CPUs the gradients of XLA's own
convolution are many times slower inside a compiled loop (docs/performance.md), and a weight that is a plain matrix is
one to every optimiser that treats matrices as a whole.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.models.mlp import Layer, lecun_normal

SIDE = 3
"""Rows and columns of a patch."""

Images = Float[Array, "image _ _ _"]
"""Rows, columns and channels of several images."""


def patches(images: Images) -> Images:
    """The neighbourhood of every position, row by row, its own place in the middle; zeros beyond the border."""
    rows, columns = images.shape[1:3]
    reach = SIDE // 2
    wide = jnp.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    shifts = [(down, right) for down in range(SIDE) for right in range(SIDE)]
    return jnp.concatenate(
        [wide[:, down : down + rows, right : right + columns] for down, right in shifts], axis=-1
    )


def mixed(images: Images, layer: Layer) -> Images:
    """An affine map of the channels, the same at every position."""
    flat = images.reshape(-1, images.shape[-1])
    return (flat @ layer.weight + layer.bias).reshape(*images.shape[:-1], -1)


def convolved(images: Images, layer: Layer) -> Images:
    """A convolution that keeps the resolution. The rows of its matrix are those of `patches`."""
    return mixed(patches(images), layer)


def coarser(images: Images, factor: int) -> Images:
    """Squares of `factor` x `factor` positions as one position each, their channels side by side."""
    number, rows, columns, channels = images.shape
    apart = images.reshape(number, rows // factor, factor, columns // factor, factor, channels)
    squares = apart.transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(number, rows // factor, columns // factor, factor**2 * channels)


def finer(images: Images, factor: int) -> Images:
    """The inverse of `coarser`."""
    number, rows, columns, channels = images.shape
    squares = images.reshape(number, rows, columns, factor, factor, channels // factor**2)
    apart = squares.transpose(0, 1, 3, 2, 4, 5)
    return apart.reshape(number, rows * factor, columns * factor, channels // factor**2)


def draw_layer(features: int, units: int, key: Array) -> Layer:
    """An affine map with fresh weights."""
    return Layer(lecun_normal(key, (features, units)), jnp.zeros(units))


def draw_convolution(channels: int, units: int, key: Array) -> Layer:
    """A convolution with fresh weights, as the matrix that `convolved` takes."""
    return draw_layer(SIDE**2 * channels, units, key)


def normed(images: Float[Array, "*place channel"]) -> Float[Array, "*place channel"]:
    """Every position divided by the root mean square of its channels."""
    return images * jax.lax.rsqrt(jnp.mean(images**2, axis=-1, keepdims=True) + 1e-6)
