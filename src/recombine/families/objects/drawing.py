"""Scenes of several objects: where they are, which pixel belongs to which, and how they are painted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.errors import BadInput, did_you_mean
from recombine.families.scenes.rendering import SHAPES, Appearance, opacity

CELLS = 3
"""Objects are in different cells of a square of this side, so that none hides another."""
SHIFTS = 3
"""The number of places of an object in its cell, along each side."""
LOOKS = 3 * CELLS**2
"""Random numbers that decide where objects are: a rank and two shifts for each cell."""
ROOM = 0.36
"""The radius of an object, as a share of its cell."""
TRIES = 24
"""Placements that are drawn; the first one in which objects are far enough apart is used."""


def _in_cell(shape: int, centre: np.ndarray, pixels: int) -> Float[Array, "row column"]:
    """The opacity of a shape in a cell."""
    return opacity(
        Appearance(jnp.array(shape), jnp.array(0), jnp.asarray(centre, jnp.float32), jnp.array(ROOM)), pixels
    )


def bitmaps(pixels: int) -> Float[np.ndarray, "any_shape shift shift side side"]:
    """The opacity of each shape in a cell of `pixels` rows, at each of its places: one pixel apart, around the middle."""
    with jax.ensure_compile_time_eval():
        shifts = np.arange(SHIFTS) - SHIFTS // 2
        places = [(down, right) for down in shifts for right in shifts]
        drawn = [
            _in_cell(shape, 0.5 + np.array([right, down]) / pixels, pixels)
            for shape in range(len(SHAPES))
            for down, right in places
        ]
        return np.stack([np.asarray(image) for image in drawn]).reshape(len(SHAPES), SHIFTS, SHIFTS, pixels, pixels)


def in_cells(
    table: Float[Array, "any_shape shift shift side side"],
    shapes: Int[Array, " object"],
    colours: Float[Array, "object 3"],
    number: Int[Array, ""],
    background: Float[Array, ""],
    look: Float[Array, " number"],
) -> Float[Array, "row column 3"]:
    """Paint the first `number` objects, each in a random cell and at a random place in it. Colours are between 0 and 1.

    Args:
        table: The table of `bitmaps`.
        shapes: The shape of each object.
        colours: The colour of each object.
        number: How many objects there are.
        background: A shade of grey.
        look: Random numbers between 0 and 1 (`LOOKS` of them) for the cells and places.
    """
    ranks, down, right = look.reshape(3, CELLS**2)
    # The order of random numbers is a random order: `order[cell]` is the object of a cell, if there is one.
    order = jnp.argsort(ranks)
    thing = jnp.minimum(order, len(shapes) - 1)
    down, right = (jnp.floor(SHIFTS * values).astype(int) for values in (down, right))
    covered = table[shapes[thing], down, right] * (order < number)[:, None, None]
    cells = background + covered[..., None] * (colours[thing][:, None, None] - background)
    side = table.shape[-1]
    return cells.reshape(CELLS, CELLS, side, side, 3).transpose(0, 2, 1, 3, 4).reshape(CELLS * side, CELLS * side, 3)


def anywhere(
    key: Array, present: Float[Array, " object"], radii: Float[Array, " object"], spacing: float
) -> Float[Array, "object 2"]:
    """Centres of objects anywhere in the image, with a distance between them that is large enough, if that can be had.

    Args:
        key: Of the random numbers.
        present: One for an object that is there, zero for one that is not.
        radii: The least distance of each centre from the border.
        spacing: The least distance between two centres, relative to the sum of their radii.
    """
    number, border = len(present), radii[:, None]
    centres = border + (1 - 2 * border) * jax.random.uniform(key, (TRIES, number, 2))
    squares = jnp.sum((centres[:, :, None] - centres[:, None]) ** 2, axis=-1)
    both = present[:, None] * present[None, :] * (1 - jnp.eye(number))
    apart = jnp.where(both > 0, squares / (border + radii) ** 2, 4.0)
    return centres[jnp.argmax(jnp.minimum(jnp.min(apart, axis=(1, 2)), spacing**2))]


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


def check_values(given: Mapping[str, Sequence[str]], known: Mapping[str, Sequence[str]]) -> None:
    """Raise BadInput if a factor has a value that cannot be drawn."""
    for name, values in known.items():
        for value in given[name]:
            if value not in values:
                raise BadInput(
                    f"There is no value {value!r} of {name!r}.",
                    fix=f"{did_you_mean(value, values)} The values: {', '.join(values)}",
                )
