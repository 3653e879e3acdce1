"""What an image shows: the renderer's own opacities, put beside the image one by one. Nothing here is trained.

The background is the median of the pixels. What differs from it is one colour with an opacity, so a thing is looked for
where the image differs most, in a window around that: all shapes, textures, radii and small shifts are tried, the one
that fits best is taken, and its colour follows. An image is readable where no small patch of it is left unexplained.
Images of 32 pixels a side are averaged to 16 first.
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

from recombine.families.scene_layout import layout_of
from recombine.families.scene_rendering import (
    COLOURS,
    PAIR,
    PLACES,
    SHAPES,
    SIZES,
    TEXTURES,
    Look,
    opacity,
    render,
)
from recombine.spaces.base import Space

AT_ONCE = 32
"""Images that are read together."""
SIDE = 16
"""Pixels a side of what is read."""
RANGE = (-0.5, 1.5)
"""Between which colours are taken as they are; what is generated may be anything."""
REACH = 6
"""Pixels from the middle of a window to its edge."""
RADII = tuple(np.geomspace(0.142, 0.262, 12))
"""The radii that are tried: from a tenth below small to a tenth above large."""
SHIFTS = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""The shifts that are tried, in pixels, in both directions."""
CONTRAST = 0.3
"""How far from the background a colour must be to be seen (1: from black to one full channel)."""
UNEXPLAINED, SHARE = 0.13, 0.4
"""The most that a patch of 3 x 3 pixels may differ from what was read, in mean square (summed over channels): altogether,
which a second thing exceeds, and as a share of the squared contrast, which a thing of another shape exceeds."""
OTHER_COLOUR = 0.3
"""A colour farther than this from every known one is none of them."""
OTHER_PLACE = 0.14
"""A thing farther than this from every place is at none of them: half way from a corner to the middle."""


class Candidates(NamedTuple):
    """All that a window may show."""

    opacities: Float[np.ndarray, "candidate pixel"]
    """As vectors of length one."""
    lengths: Float[np.ndarray, " candidate"]
    """Of the vectors before that."""
    shapes: Int[np.ndarray, " candidate"]
    textures: Int[np.ndarray, " candidate"]
    radii: Float[np.ndarray, " candidate"]
    shifts: Float[np.ndarray, "candidate 2"]
    """Right and down, in pixels."""


@functools.cache
def candidates(pixels: int, textures: int) -> Candidates:
    """The candidates with so many of the textures, as they are in images of so many pixels a side."""
    grid = itertools.product(range(len(SHAPES)), range(textures), RADII, SHIFTS, SHIFTS)
    shapes, kinds, radii, right, down = (np.array(column) for column in zip(*grid, strict=True))
    # Around the middle of the pixel that is the middle of the window cut out below.
    middle = (SIDE // 2 + 0.5) / SIDE
    cut = slice(SIDE // 2 - REACH, SIDE // 2 + REACH + 1)

    @jax.jit
    @jax.vmap
    def drawn(shape: Array, kind: Array, radius: Array, shift: Array) -> tuple[Array, Array]:
        seen = averaged(opacity(Look(shape, kind, jnp.full(2, middle), radius), pixels))
        # What stands out of a thing may be beside its centre: in the window that is in the middle, but for the shift.
        shift = shift - (standing_out(seen) - SIDE // 2)
        look = Look(shape, kind, middle + shift / SIDE, radius)
        return averaged(opacity(look, pixels)), shift

    # Numbers, and no part of the program that is being compiled when this is called.
    with jax.ensure_compile_time_eval():
        made = drawn(*map(jnp.asarray, (shapes, kinds, radii, np.stack([right, down], axis=1))))
        whole, shifts = map(np.asarray, made)
    found = whole[:, cut, cut].reshape(len(shapes), -1)
    lengths = np.linalg.norm(found, axis=1)
    return Candidates(found / lengths[:, None], lengths, shapes, kinds, radii, shifts)


def averaged(image: Float[Array, "row column *channel"]) -> Float[Array, "side side *channel"]:
    """An image with `SIDE` pixels a side: means of what lies in each."""
    finer = len(image) // SIDE
    return image.reshape(SIDE, finer, SIDE, finer, *image.shape[2:]).mean(axis=(1, 3))


def patches(values: Float[Array, "row column"]) -> Float[Array, "row column"]:
    """The means of the 3 x 3 pixels around each pixel; beyond the edge is nothing."""
    around = jnp.pad(values, 1)
    rows = around[:-2] + around[1:-1] + around[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9


def standing_out(values: Float[Array, "side side"]) -> Float[Array, " 2"]:
    """The middle of what stands out, right and down in pixels."""
    smooth = patches(values)
    weight = jnp.maximum(smooth - 0.4 * jnp.max(smooth), 0)
    pixel = jnp.arange(SIDE)
    found = jnp.stack([jnp.sum(weight * pixel), jnp.sum(weight * pixel[:, None])])
    return found / (jnp.sum(weight) + 1e-12)


def medians(values: Float[Array, "n channel"]) -> Float[Array, " channel"]:
    """The median of each channel, by halving: on a CPU sorting takes longer than all else. Values are in `RANGE`."""
    low, high = (jnp.full(values.shape[1], end) for end in RANGE)
    for _ in range(12):
        middle = (low + high) / 2
        below = 2 * jnp.sum(values <= middle, axis=0) >= len(values)
        low, high = jnp.where(below, low, middle), jnp.where(below, middle, high)
    return (low + high) / 2


class Found(NamedTuple):
    """The thing that a part of an image shows best."""

    shape: Int[Array, ""]
    texture: Int[Array, ""]
    radius: Float[Array, ""]
    centre: Float[Array, " 2"]
    """Right and down, as shares of the side."""
    ink: Float[Array, " 3"]
    """Its colour less that of the background."""
    drawn: Float[Array, "side side 3"]
    """What it adds to the background."""


def find(different: Float[Array, "side side 3"], among: Candidates) -> Found:
    """The candidate that explains most of what differs from the background."""
    # One colour in many opacities: the direction along which pixels differ most is that of the colour.
    spread = jnp.einsum("rci,rcj->ij", different, different)
    for _ in range(4):
        spread = spread / (jnp.trace(spread) + 1e-12)
        spread = spread @ spread
    direction = spread[jnp.argmax(jnp.diag(spread))]
    direction = direction / (jnp.linalg.norm(direction) + 1e-12)
    along = different @ direction
    # Away from the background is forward; cubes, so that noise has no say.
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
    return Found(
        jnp.asarray(among.shapes)[best],
        jnp.asarray(among.textures)[best],
        jnp.asarray(among.radii)[best],
        centre,
        ink,
        drawn[:, :, None] * ink,
    )


def nearest(
    value: Float[Array, " n"], known: Float[np.ndarray, "value n"], farthest: float
) -> Int[Array, ""]:
    """The number of the known value nearest to this one; -1 where none is near."""
    away = jnp.linalg.norm(value - known, axis=1)
    return jnp.where(jnp.min(away) <= farthest, jnp.argmin(away), -1)


class Reading(NamedTuple):
    """What an image shows, before it is asked whether that can be trusted."""

    label: Int[Array, " label"]
    contrast: Float[Array, ""]
    """How far the thing (of two the fainter) is from the background."""
    unexplained: Float[Array, ""]
    """The largest difference of a patch from what was read: see `UNEXPLAINED`."""

    @property
    def trusted(self) -> Int[Array, " label"]:
        """The label, or -1 everywhere."""
        most = jnp.minimum(UNEXPLAINED, SHARE * self.contrast**2)
        readable = (self.contrast >= CONTRAST) & (self.unexplained <= most)
        return jnp.where(readable, self.label, -1)


def reading(image: Float[Array, " pixel"], labels: int) -> Reading:
    """What one image shows. `labels`: see `read`."""
    pixels = math.isqrt(len(image) // 3)
    given = jnp.clip(jnp.nan_to_num((image.reshape(pixels, pixels, 3) + 1) / 2), *RANGE)
    colours = averaged(given)
    background = medians(colours.reshape(-1, 3))
    different = colours - background
    inks = np.array(list(COLOURS.values()))
    if labels == len(PAIR):
        among, left = candidates(pixels, 1), (jnp.arange(SIDE) < SIDE // 2)[:, None]
        found = [find(jnp.where(side, different, 0), among) for side in (left, ~left)]
        values = [(one.shape, nearest(background + one.ink, inks, OTHER_COLOUR)) for one in found]
        label = [value for pair in values for value in pair]
    else:
        found = [find(different, candidates(pixels, len(TEXTURES)))]
        (one,) = found
        sizes, places = np.log([*SIZES.values()])[:, None], np.array(list(PLACES.values()))
        label = [
            one.shape,
            nearest(background + one.ink, inks, OTHER_COLOUR),
            nearest(jnp.log(one.radius)[None], sizes, np.inf),
            nearest(one.centre, places, OTHER_PLACE),
            one.texture,
        ]
    left_over = different - sum(one.drawn for one in found)
    contrast = jnp.min(jnp.stack([jnp.linalg.norm(one.ink) for one in found]))
    worst = jnp.max(patches(jnp.sum(left_over**2, axis=2)))
    return Reading(jnp.stack(label).astype(jnp.int32), contrast, worst)


@functools.partial(jax.jit, static_argnames="labels")
def read(images: Float[Array, "image pixel"], labels: int) -> Int[Array, "image label"]:
    """The number of each factor's value in each image, in the order of `SINGLE` or `PAIR`; -1 where it cannot be told.

    `labels` says how many factors are read: those of one thing (5) or of two (4).
    """

    # However many tasks there are, a few images at a time: all candidates of all images would not fit into a cache.
    @jax.custom_batching.sequential_vmap
    def few(some: Float[Array, "image pixel"]) -> Int[Array, "image label"]:
        return jax.lax.map(lambda image: reading(image, labels).trusted, some, batch_size=AT_ONCE)

    return few(images)


def checker_error(
    space: Space, key: Array, images: int = 4096, pixels: int = 16, jitter: float = 1.0, noise: float = 0.0
) -> dict[str, float]:
    """How often the checker is wrong about fresh rendered images of a space's combinations, drawn uniformly.

    `error` is the share of images of which anything is read wrongly or not at all, `unreadable` the share that is not read;
    the others are the errors in each factor of the space. `noise` is the standard deviation of Gaussian noise on each
    channel of each pixel (they go from -1 to 1), added after rendering and cut at -1 and 1.
    """
    layout = layout_of(space)
    by_row, by_image = jax.random.split(key)

    labels = jax.jit(jax.vmap(lambda one: layout.label(space.sample(one))))(jax.random.split(by_row, images))
    rendered = functools.partial(render, pixels=pixels, jitter=jitter, noise=noise)
    shown = jax.jit(jax.vmap(rendered))(labels, jax.random.split(by_image, images))
    meant, found = np.asarray(labels), np.asarray(read(shown, labels=labels.shape[1]))
    asked = meant >= 0
    wrong, missed = asked & (meant != found), asked & (found < 0)
    shares = {name: float(wrong[:, column].mean()) for column, name in enumerate(layout.factors)}
    return {
        "error": float(wrong.any(axis=1).mean()),
        "unreadable": float(missed.any(axis=1).mean()),
        **{name: share for column, (name, share) in enumerate(shares.items()) if asked[:, column].any()},
    }
