"""The checker: it reads the factors of a scene back from an image, by comparison with the renderer's own opacities.

Nothing here is trained. The background is the median of the pixels. A thing is one colour with an opacity, so it is
searched in a window where the image differs most from the background: all shapes, textures, radii and small shifts are
tried, and the best fit also gives the colour. An image is readable if no small patch of it is left unexplained. Images of
32 x 32 pixels are first averaged to 16 x 16.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.families.scenes.rendering import COLOURS, PAIR, PLACES, SHAPES, SIZES, TEXTURES, Appearance, opacity

AT_ONCE = 32
"""Images that are read at once."""
SIDE = 16
"""Rows and columns of the images that are read."""
RANGE = (-0.5, 1.5)
"""Colours are clipped to this range; a generated image may have any values."""
REACH = 6
"""Pixels from the centre of a window to its edge."""
RADII = tuple(np.geomspace(0.142, 0.262, 12))
"""The candidate radii: from a tenth below small to a tenth above large."""
SHIFTS = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""The candidate shifts in pixels, in both directions."""
CONTRAST = 0.3
"""The smallest distance of a visible colour from the background (1: from black to one full channel)."""
UNEXPLAINED, SHARE = 0.13, 0.4
"""The largest mean squared difference (summed over channels) of a patch of 3 x 3 pixels from what was read: absolute,
which a second thing exceeds, and relative to the squared contrast, which a thing of another shape exceeds."""
OTHER_COLOUR = 0.3
"""A colour farther than this from every known colour is unknown."""
OTHER_PLACE = 0.14
"""A thing farther than this from every known place has no place: half way from a corner to the middle."""


class Candidates(NamedTuple):
    """Everything that a window may show."""

    opacities: Float[np.ndarray, "candidate pixel"]
    """Vectors of length one."""
    lengths: Float[np.ndarray, " candidate"]
    """Lengths of the vectors before normalisation."""
    shapes: Int[np.ndarray, " candidate"]
    textures: Int[np.ndarray, " candidate"]
    radii: Float[np.ndarray, " candidate"]
    shifts: Float[np.ndarray, "candidate 2"]
    """Right and down, in pixels."""


@functools.cache
def candidates(pixels: int, textures: int) -> Candidates:
    """The candidates with the first `textures` textures, in images with `pixels` rows."""
    grid = itertools.product(range(len(SHAPES)), range(textures), RADII, SHIFTS, SHIFTS)
    shapes, kinds, radii, right, down = (np.array(column) for column in zip(*grid, strict=True))
    # The centre of the pixel that is the centre of the window below.
    middle = (SIDE // 2 + 0.5) / SIDE
    cut = slice(SIDE // 2 - REACH, SIDE // 2 + REACH + 1)

    @jax.jit
    @jax.vmap
    def drawn(shape: Array, kind: Array, radius: Array, shift: Array) -> tuple[Array, Array]:
        seen = averaged(opacity(Appearance(shape, kind, jnp.full(2, middle), radius), pixels))
        # What stands out may be beside the thing's centre; the shift corrects for it.
        shift = shift - (standing_out(seen) - SIDE // 2)
        look = Appearance(shape, kind, middle + shift / SIDE, radius)
        return averaged(opacity(look, pixels)), shift

    # Evaluated now, not traced into a program that is being compiled.
    with jax.ensure_compile_time_eval():
        rendered = drawn(*map(jnp.asarray, (shapes, kinds, radii, np.stack([right, down], axis=1))))
        whole, shifts = map(np.asarray, rendered)
    windows = whole[:, cut, cut].reshape(len(shapes), -1)
    lengths = np.linalg.norm(windows, axis=1)
    return Candidates(windows / lengths[:, None], lengths, shapes, kinds, radii, shifts)


def averaged(image: Float[Array, "row column *channel"]) -> Float[Array, "side side *channel"]:
    """An image averaged to `SIDE` x `SIDE` pixels."""
    finer = len(image) // SIDE
    return image.reshape(SIDE, finer, SIDE, finer, *image.shape[2:]).mean(axis=(1, 3))


def patches(values: Float[Array, "row column"]) -> Float[Array, "row column"]:
    """The mean of the 3 x 3 pixels around each pixel, with zeros beyond the edge."""
    around = jnp.pad(values, 1)
    rows = around[:-2] + around[1:-1] + around[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9


def standing_out(values: Float[Array, "side side"]) -> Float[Array, " 2"]:
    """The centre of what stands out: column and row in pixels."""
    smooth = patches(values)
    weight = jnp.maximum(smooth - 0.4 * jnp.max(smooth), 0)
    pixel = jnp.arange(SIDE)
    moments = jnp.stack([jnp.sum(weight * pixel), jnp.sum(weight * pixel[:, None])])
    return moments / (jnp.sum(weight) + 1e-12)


def medians(values: Float[Array, "n channel"]) -> Float[Array, " channel"]:
    """The median of each channel, by bisection: on a CPU, sorting would dominate the run time. Values are in `RANGE`."""
    low, high = (jnp.full(values.shape[1], end) for end in RANGE)
    for _ in range(12):
        middle = (low + high) / 2
        below = 2 * jnp.sum(values <= middle, axis=0) >= len(values)
        low, high = jnp.where(below, low, middle), jnp.where(below, middle, high)
    return (low + high) / 2


class Detection(NamedTuple):
    """The candidate that fits a part of an image best."""

    shape: Int[Array, ""]
    texture: Int[Array, ""]
    radius: Float[Array, ""]
    centre: Float[Array, " 2"]
    """Column and row, as shares of the side."""
    ink: Float[Array, " 3"]
    """Its colour minus that of the background."""
    drawn: Float[Array, "side side 3"]
    """Its contribution to the image, on top of the background."""


def find(different: Float[Array, "side side 3"], among: Candidates) -> Detection:
    """The candidate that explains most of what differs from the background."""
    # One colour with many opacities: pixels differ most in the direction of the colour.
    spread = jnp.einsum("rci,rcj->ij", different, different)
    for _ in range(4):
        spread = spread / (jnp.trace(spread) + 1e-12)
        spread = spread @ spread
    direction = spread[jnp.argmax(jnp.diag(spread))]
    direction = direction / (jnp.linalg.norm(direction) + 1e-12)
    along = different @ direction
    # The sign is positive away from the background; cubes suppress noise.
    along = along * jnp.sign(jnp.sum(along**3))
    column, row = jnp.round(standing_out(along)).astype(int)
    wide = ((REACH, REACH), (REACH, REACH))
    window = (2 * REACH + 1,) * 2
    seen = jax.lax.dynamic_slice(jnp.pad(along, wide), (row, column), window).ravel()
    best = jnp.argmax(among.opacities @ seen)
    unit, length = (jnp.asarray(table)[best] for table in (among.opacities, among.lengths))
    covered = (length * unit).reshape(window)
    colours = jax.lax.dynamic_slice(jnp.pad(different, (*wide, (0, 0))), (row, column, 0), (*window, 3))
    ink = jnp.einsum("rc,rci->i", covered, colours) / length**2
    canvas = jnp.zeros((SIDE + 2 * REACH,) * 2)
    drawn = jax.lax.dynamic_update_slice(canvas, covered, (row, column))[REACH:-REACH, REACH:-REACH]
    centre = (jnp.stack([column, row]) + 0.5 + jnp.asarray(among.shifts)[best]) / SIDE
    return Detection(
        jnp.asarray(among.shapes)[best],
        jnp.asarray(among.textures)[best],
        jnp.asarray(among.radii)[best],
        centre,
        ink,
        drawn[:, :, None] * ink,
    )


def nearest(value: Float[Array, " n"], known: Float[np.ndarray, "value n"], farthest: float) -> Int[Array, ""]:
    """The number of the nearest known value; -1 if none is within `farthest`."""
    away = jnp.linalg.norm(value - known, axis=1)
    return jnp.where(jnp.min(away) <= farthest, jnp.argmin(away), -1)


def read_image(image: Float[Array, " pixel"], labels: int) -> Int[Array, " label"]:
    """The label of one image, or -1 for all factors of an unreadable one. `labels`: see `read`."""
    pixels = math.isqrt(len(image) // 3)
    given = jnp.clip(jnp.nan_to_num((image.reshape(pixels, pixels, 3) + 1) / 2), *RANGE)
    colours = averaged(given)
    background = medians(colours.reshape(-1, 3))
    different = colours - background
    inks = np.array(list(COLOURS.values()))
    if labels == len(PAIR):
        among, left = candidates(pixels, 1), (jnp.arange(SIDE) < SIDE // 2)[:, None]
        detections = [find(jnp.where(side, different, 0), among) for side in (left, ~left)]
        values = [(found.shape, nearest(background + found.ink, inks, OTHER_COLOUR)) for found in detections]
        label = [value for pair in values for value in pair]
    else:
        found = find(different, candidates(pixels, len(TEXTURES)))
        detections = [found]
        sizes, places = np.log([*SIZES.values()])[:, None], np.array(list(PLACES.values()))
        label = [
            found.shape,
            nearest(background + found.ink, inks, OTHER_COLOUR),
            nearest(jnp.log(found.radius)[None], sizes, np.inf),
            nearest(found.centre, places, OTHER_PLACE),
            found.texture,
        ]
    left_over = different - sum(found.drawn for found in detections)
    # The distance of the thing's colour from the background; of two things, the smaller.
    contrast = jnp.min(jnp.stack([jnp.linalg.norm(found.ink) for found in detections]))
    unexplained = jnp.max(patches(jnp.sum(left_over**2, axis=2)))
    readable = (contrast >= CONTRAST) & (unexplained <= jnp.minimum(UNEXPLAINED, SHARE * contrast**2))
    return jnp.where(readable, jnp.stack(label).astype(jnp.int32), -1)


@functools.partial(jax.jit, static_argnames="labels")
def read(images: Float[Array, "image pixel"], labels: int) -> Int[Array, "image label"]:
    """The number of each factor's value in images, in the order of `SINGLE` or `PAIR`; -1 where it cannot be read.

    `labels` is the number of factors: those of one thing (5) or of two (4).
    """

    # A few images at a time: all candidates of all images would not fit into the CPU cache.
    @jax.custom_batching.sequential_vmap
    def few(some: Float[Array, "image pixel"]) -> Int[Array, "image label"]:
        return jax.lax.map(lambda image: read_image(image, labels), some, batch_size=AT_ONCE)

    return few(images)
