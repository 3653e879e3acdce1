"""Scenes of several objects: where they are, which pixel belongs to which, and how they are painted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from recombine.families.scenes.rendering import Appearance, opacity

CELLS = 3
"""Objects are at different cells of a square of this side, so that none hides another."""
JITTERED = 0.035
"""The largest random shift from the middle of a cell, as a share of the image."""
RADIUS, SCALED = 0.125, 0.1
"""The radius of an object, as a share of the image, and its largest random change (relative)."""
TRIES = 24
"""Placements that are drawn; the first one in which objects are far enough apart is used."""


def apart(key: Array, number: int) -> Float[Array, "object 2"]:
    """Centres of objects in different cells."""
    by_cell, by_jitter = jax.random.split(key)
    cells = jax.random.permutation(by_cell, CELLS**2)[:number]
    middles = (jnp.stack([cells % CELLS, cells // CELLS], axis=1) + 0.5) / CELLS
    return middles + JITTERED * jax.random.uniform(by_jitter, (number, 2), minval=-1, maxval=1)


def anywhere(
    key: Array, present: Float[Array, " object"], radius: float, spacing: float
) -> Float[Array, "object 2"]:
    """Centres of objects anywhere in the image. Objects that are present are at least `spacing` apart, if that can be had.

    Args:
        key: Of the random numbers.
        present: One for an object that is there, zero for one that is not.
        radius: The distance of centres from the border.
        spacing: The distance between centres.
    """
    number = len(present)
    centres = jax.random.uniform(key, (TRIES, number, 2), minval=radius, maxval=1 - radius)
    squares = jnp.sum((centres[:, :, None] - centres[:, None]) ** 2, axis=-1)
    both = present[:, None] * present[None, :] * (1 - jnp.eye(number))
    nearest = jnp.sqrt(jnp.min(jnp.where(both > 0, squares, 2.0), axis=(1, 2)))
    return centres[jnp.argmax(jnp.minimum(nearest, spacing))]


def opacities(
    shapes: Int[Array, " object"],
    centres: Float[Array, "object 2"],
    radii: Float[Array, " object"],
    present: Float[Array, " object"],
    pixels: int,
) -> Float[Array, "object row column"]:
    """How much of each pixel each object covers; an object that is not present covers nothing."""
    appearances = Appearance(shapes, jnp.zeros_like(shapes), centres, radii)
    covered = jax.vmap(lambda appearance: opacity(appearance, pixels))(appearances)
    return present[:, None, None] * covered
