"""Rendered images against counting points, and against what a label promises."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from recombine.families.scenes.rendering import (
    COLOURS,
    FADED,
    GAP,
    PAIR,
    PERIOD,
    PLACES,
    SHAPES,
    SINGLE,
    SIZES,
    TEXTURES,
    Appearance,
    opacity,
    render,
)

FINE = 20
"""Points along each side of a pixel."""


def inside(shape: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points belong to a shape of radius one: each said in another way than by distances."""
    around = x**2 + y**2
    corners = [1.3 * np.array([np.sin(turn), -np.cos(turn)]) for turn in 2 * np.pi * np.arange(3) / 3]
    sides = zip(corners, corners[1:] + corners[:1], strict=True)
    return {
        "disc": around < 1,
        "square": (abs(x) < 0.86) & (abs(y) < 0.86),
        "triangle": np.all([(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) > 0 for a, b in sides], axis=0),
        "cross": ((abs(x) < 1) & (abs(y) < 0.34)) | ((abs(x) < 0.34) & (abs(y) < 1)),
        "ring": (around < 1) & (around > 0.16),
        "bar": (abs(x) < 1.05) & (abs(y) < 0.42),
    }[shape]


def counted(shape: str, texture: str, centre: tuple[float, float], radius: float, pixels: int) -> np.ndarray:
    """The opacity of each pixel, by counting points."""
    points = (np.arange(pixels * FINE) + 0.5) / (pixels * FINE)
    x, y = np.meshgrid(points - centre[0], points - centre[1])
    dense = {
        "plain": np.ones_like(x),
        "striped": GAP + (1 - GAP) * np.clip(0.5 + np.cos(2 * np.pi * x / PERIOD), 0, 1),
        "faded": FADED + (1 - FADED) * np.clip(0.5 - 0.5 * x / radius, 0, 1),
    }[texture]
    covered = inside(shape, x / radius, y / radius) * dense
    return covered.reshape(pixels, FINE, pixels, FINE).mean(axis=(1, 3))


@pytest.mark.parametrize("pixels", [16, 32])
@pytest.mark.parametrize("texture", TEXTURES)
@pytest.mark.parametrize("shape", SHAPES)
def test_opacities_are_those_of_counting(shape: str, texture: str, pixels: int):
    for centre, radius in (((0.31, 0.36), 0.14), ((0.52, 0.47), 0.21)):
        look = Appearance(
            jnp.array(SHAPES.index(shape)), jnp.array(TEXTURES.index(texture)), jnp.array(centre), jnp.array(radius)
        )
        away = np.abs(np.asarray(opacity(look, pixels)) - counted(shape, texture, centre, radius, pixels))
        # Edges are taken to be straight and to lie across a pixel's sides; corners and leaning edges differ a little.
        assert away.max() < 0.3
        assert away.mean() < 0.012


@functools.cache
def rendered(pixels: int = 16, jitter: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Images of random labels of one thing."""
    levels = [len(values) for values in SINGLE.values()]
    labels = np.random.default_rng(0).integers(0, levels, (400, len(levels)))
    keys = jax.random.split(jax.random.key(1), len(labels))
    one = jax.jit(jax.vmap(lambda label, key: render(label, key, pixels, jitter, 0.0)))
    return labels, np.asarray(one(jnp.asarray(labels), keys)).reshape(-1, pixels, pixels, 3)


@pytest.mark.parametrize("pixels", [16, 32])
def test_things_are_where_the_label_says_in_its_colour_and_size(pixels: int):
    labels, images = rendered(pixels)
    assert images.min() >= -1 and images.max() <= 1
    background = np.median(images.reshape(len(images), -1, 3), axis=1)
    different = np.linalg.norm(images - background[:, None, None], axis=-1)
    peak = different.reshape(len(images), -1).argmax(axis=1)
    strongest = images.reshape(len(images), -1, 3)[np.arange(len(images)), peak]
    known = 2 * np.array(list(COLOURS.values())) - 1
    nearest = np.linalg.norm(strongest[:, None] - known, axis=-1).argmin(axis=1)
    # Thin things that are faint besides hide their colour from a single pixel.
    clear = (labels[:, 2] == 1) & (labels[:, 4] == 0)
    assert np.array_equal(nearest[clear], labels[clear, 1])
    centres = np.array([ndimage.center_of_mass(one) for one in different])[:, ::-1] + 0.5
    places = pixels * np.array(list(PLACES.values()))[labels[:, 3]]
    assert np.abs(centres - places)[labels[:, 4] == 0].max() < 0.06 * pixels
    areas = (different > 0.1).mean(axis=(1, 2))
    for shape in range(len(SHAPES)):
        small, large = (areas[(labels[:, 0] == shape) & (labels[:, 2] == size)] for size in (0, 1))
        assert small.max() < large.min()


def test_jitter_is_all_that_differs_and_comes_from_the_key():
    label = jnp.array([0, 0, 0, 0, 0])

    def made(seed: int, jitter: float, noise: float = 0.0) -> np.ndarray:
        return np.asarray(render(label, jax.random.key(seed), 16, jitter, noise))

    assert np.array_equal(made(0, 0.0), made(1, 0.0))
    assert np.array_equal(made(0, 1.0), made(0, 1.0))
    assert np.abs(made(0, 1.0) - made(1, 1.0)).max() > 0.1
    noisy = made(0, 0.0, noise=0.1) - made(0, 0.0)
    assert np.std(noisy[np.abs(made(0, 0.0)) < 0.7]) == pytest.approx(0.1, rel=0.15)


def test_what_is_not_told_is_in_the_middle_plain_and_between_small_and_large():
    shape, colour = 0, 3
    untold, small, large = (
        np.asarray(render(jnp.array([shape, colour, size, 4, 0]), jax.random.key(0), 16, 0.0, 0.0)).sum()
        for size in (-1, 0, 1)
    )
    assert small < untold < large
    told = render(jnp.array([shape, colour, -1, -1, -1]), jax.random.key(0), 16, 0.0, 0.0)
    assert np.asarray(told).sum() == untold
    assert list(SIZES) == ["small", "large"]


def test_two_things_keep_to_their_sides():
    levels = [len(values) for values in PAIR.values()]
    labels = jnp.asarray(np.random.default_rng(0).integers(0, levels, (300, 4)))
    keys = jax.random.split(jax.random.key(0), len(labels))

    def one(label: jax.Array, key: jax.Array) -> jax.Array:
        return render(label, key, 32, 1.0, 0.0).reshape(32, 32, 3)

    images = jax.jit(jax.vmap(one))(labels, keys)
    # With another thing on the right the left half stays as it is, and the other way round.
    for columns, half in (([2, 3], np.s_[:, :, :16]), ([0, 1], np.s_[:, :, 16:])):
        other = labels.at[:, columns].set((labels[:, columns] + 1) % jnp.array(levels)[jnp.array(columns)])
        changed = jax.jit(jax.vmap(one))(other, keys)
        np.testing.assert_allclose(images[half], changed[half], atol=1e-6)
        assert np.all(np.any(np.abs(images - changed) > 0.1, axis=(1, 2, 3)))
