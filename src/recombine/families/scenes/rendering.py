"""The renderer of scenes: small anti-aliased images of shapes, from signed distances.

An image is a background with one or two things on it. A thing is an *opacity* (which pixels it covers, and how much)
in one colour, so that an image is `background + opacity x (colour - background)`. The checker reads images by the same
opacities. Lengths are shares of an image's side; x goes to the right, y down. Colours are between 0 and 1 here, pixels of
images between -1 and 1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

SHAPES = ("disc", "square", "triangle", "cross", "ring", "bar")
COLOURS: Mapping[str, tuple[float, float, float]] = {
    "red": (0.92, 0.12, 0.15),
    "green": (0.15, 0.75, 0.2),
    "blue": (0.18, 0.32, 0.95),
    "yellow": (0.98, 0.92, 0.15),
    "purple": (0.72, 0.25, 0.9),
    "cyan": (0.15, 0.88, 0.92),
    "orange": (1.0, 0.52, 0.08),
    "white": (0.96, 0.96, 0.96),
}
SIZES: Mapping[str, float] = {"small": 0.16, "large": 0.235}
"""Radii."""
PLACES: Mapping[str, tuple[float, float]] = {
    "top left": (0.3, 0.3),
    "top right": (0.7, 0.3),
    "bottom left": (0.3, 0.7),
    "bottom right": (0.7, 0.7),
    "middle": (0.5, 0.5),
}
TEXTURES = ("plain", "striped", "faded")

SINGLE: Mapping[str, tuple[str, ...]] = {
    "shape": SHAPES,
    "colour": tuple(COLOURS),
    "size": tuple(SIZES),
    "place": tuple(PLACES),
    "texture": TEXTURES,
}
"""The factors of a single thing and their values, in the order of labels."""
PAIR: Mapping[str, tuple[str, ...]] = {
    "left shape": SHAPES,
    "left colour": tuple(COLOURS),
    "right shape": SHAPES,
    "right colour": tuple(COLOURS),
}
"""The factors of two things side by side and their values, in the order of labels."""

ALONE, BESIDE = 0.2, 0.17
"""Radii where the size is not a factor: of a single thing, and of each of two."""
SIDES = ((0.25, 0.5), (0.75, 0.5))
"""The centres of two things."""
MOVED, MOVED_BESIDE = (0.05, 0.05), (0.04, 0.2)
"""The largest random shift (horizontal, vertical) in either direction: of a single thing, and of each of two."""
SCALED, TINTED = 0.06, 0.06
"""The largest random change of a radius (relative), and of each channel of a colour (absolute)."""
DARK, LIGHT = 0.05, 0.3
"""The range of grey of backgrounds."""
PERIOD, GAP = 0.2, 0.35
"""The period of stripes, and the opacity between them."""
FADED = 0.2
"""The opacity of a faded thing at its right end."""


class Appearance(eqx.Module):
    """The appearance of one or several things: the numbers of shape and texture, centre and radius."""

    shape: Int[Array, "*thing"]
    texture: Int[Array, "*thing"]
    centre: Float[Array, "*thing 2"]
    radius: Float[Array, "*thing"]


def distances(x: Float[Array, "1 column"], y: Float[Array, "row 1"]) -> list[Float[Array, "row column"]]:
    """The signed distances to all shapes of radius one (negative inside), with centres of mass at zero."""
    right, down = jnp.abs(x), jnp.abs(y)
    from_centre = jnp.sqrt(right**2 + down**2)

    def box(width: float, height: float) -> Float[Array, "row column"]:
        # Slightly too small beyond the corners, by less than an anti-aliased edge can show.
        return jnp.maximum(right - width, down - height)

    return [
        from_centre - 1,
        box(0.86, 0.86),
        # The sides of an equilateral triangle: the lower one, and two that lean by 60 degrees.
        jnp.maximum(y, 0.866 * right - 0.5 * y) - 0.65,
        jnp.minimum(box(1.0, 0.34), box(0.34, 1.0)),
        jnp.abs(from_centre - 0.7) - 0.3,
        box(1.05, 0.42),
    ]


def opacity(appearance: Appearance, pixels: int) -> Float[Array, "row column"]:
    """How much of each pixel a thing covers."""
    middles = (jnp.arange(pixels) + 0.5) / pixels
    x, y = middles[None, :] - appearance.centre[0], middles[:, None] - appearance.centre[1]
    away = jax.lax.select_n(appearance.shape, *distances(x / appearance.radius, y / appearance.radius))
    # The share of a pixel on the inner side of the edge: all of it where the edge is half a pixel away.
    covered = jnp.clip(0.5 - pixels * appearance.radius * away, 0, 1)
    stripes = GAP + (1 - GAP) * jnp.clip(0.5 + jnp.cos(2 * jnp.pi * x / PERIOD), 0, 1)
    fading = FADED + (1 - FADED) * jnp.clip(0.5 - 0.5 * x / appearance.radius, 0, 1)
    return covered * jax.lax.select_n(appearance.texture, jnp.ones_like(x), stripes, fading)


def paint(
    background: Float[Array, " 3"], opacities: Float[Array, "thing row column"], colours: Float[Array, "thing 3"]
) -> Float[Array, "row column 3"]:
    """An image with colours between 0 and 1. Where things overlap, the later one is in front."""
    image = jnp.broadcast_to(background, (*opacities.shape[1:], 3))
    for covered, colour in zip(opacities, colours, strict=True):
        image = image + covered[:, :, None] * (colour - image)
    return image


def things(label: Int[Array, " label"]) -> tuple[Appearance, Int[Array, " thing"], Float[Array, "thing 2"]]:
    """The things of a label, without anything random: appearances, colours, and the largest shifts.

    -1 stands for a factor that the space does not have: a size between small and large, the middle, plain.
    """
    if len(label) == len(PAIR):
        shapes, colours = label[::2], label[1::2]
        appearances = Appearance(shapes, jnp.zeros(2, int), jnp.array(SIDES), jnp.full(2, BESIDE))
        return appearances, colours, jnp.array([MOVED_BESIDE] * 2)
    shape, colour, size, place, texture = label
    radius = jnp.where(size < 0, ALONE, jnp.array(list(SIZES.values()))[size])
    centre = jnp.where(place < 0, jnp.array(PLACES["middle"]), jnp.array(list(PLACES.values()))[place])
    appearance = Appearance(shape, jnp.maximum(texture, 0), centre, radius)
    return jax.tree.map(lambda leaf: leaf[None], appearance), colour[None], jnp.array([MOVED])


@functools.partial(jax.jit, static_argnames=("pixels", "jitter", "noise"))
def render(label: Int[Array, " label"], key: Array, pixels: int, jitter: float, noise: float) -> Float[Array, " pixel"]:
    """Render an image of a label: rows, columns and channels as one vector, between -1 and 1.

    `jitter` says how random images are: 1 as far as the constants above say, 0 always the same. `noise` is the standard
    deviation of the noise on each channel of each pixel.
    """
    appearances, colours, moved = things(label)
    by_place, by_size, by_colour, by_shade, by_tint, by_noise = jax.random.split(key, 6)

    def either_way(key: Array, shape: tuple[int, ...]) -> Array:
        return jitter * jax.random.uniform(key, shape, minval=-1, maxval=1)

    number = len(colours)
    appearances = Appearance(
        appearances.shape,
        appearances.texture,
        appearances.centre + moved * either_way(by_place, (number, 2)),
        appearances.radius * (1 + SCALED * either_way(by_size, (number,))),
    )
    inks = jnp.array(list(COLOURS.values()))[colours] + TINTED * either_way(by_colour, (number, 3))
    shade = (DARK + LIGHT) / 2 + (LIGHT - DARK) / 2 * either_way(by_shade, ())
    background = shade + TINTED / 2 * either_way(by_tint, (3,))
    opacities = jax.vmap(lambda appearance: opacity(appearance, pixels))(appearances)
    image = 2 * paint(background, opacities, inks) - 1
    if noise:
        image = image + noise * jax.random.normal(by_noise, image.shape)
    return jnp.clip(image, -1, 1).ravel()
