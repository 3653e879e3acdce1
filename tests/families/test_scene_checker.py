"""The checker's own error rate, and what it does not take for a scene."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.scenes.checker import medians, read
from recombine.families.scenes.layout import layout_of
from recombine.families.scenes.rendering import PAIR, SINGLE, render
from recombine.spaces.product import ProductSpace

ONE = ProductSpace(factors=SINGLE)  # type: ignore[arg-type]
TWO = ProductSpace(factors=PAIR)  # type: ignore[arg-type]
NUMBER = 64


def told(images: np.ndarray, labels: int) -> np.ndarray:
    """What is read; images are repeated, so that one compiled program serves all."""
    padded = np.resize(images, (NUMBER, images.shape[1]))
    return np.asarray(read(jnp.asarray(padded, jnp.float32), labels=labels))[: len(images)]


def checker_error(
    space: ProductSpace, key: jax.Array, images: int, pixels: int = 16, noise: float = 0.0
) -> dict[str, float]:
    """The share of rendered images with a factor that is read wrongly or not at all (`error`), the share that is not read
    (`unreadable`), and the error rate of each factor of the space."""
    layout = layout_of(space)
    by_row, by_image = jax.random.split(key)
    labels = jax.jit(jax.vmap(lambda row_key: layout.label(space.sample(row_key))))(jax.random.split(by_row, images))
    rendered = functools.partial(render, pixels=pixels, jitter=1.0, noise=noise)
    shown = jax.jit(jax.vmap(rendered))(labels, jax.random.split(by_image, images))
    wanted, shown_labels = np.asarray(labels), np.asarray(read(shown, labels=labels.shape[1]))
    asked = wanted >= 0
    wrong, missed = asked & (wanted != shown_labels), asked & (shown_labels < 0)
    return {
        "error": float(wrong.any(axis=1).mean()),
        "unreadable": float(missed.any(axis=1).mean()),
        **{name: float(wrong[:, i].mean()) for i, name in enumerate(layout.factors) if asked[:, i].any()},
    }


@functools.cache
def scenes(labels: int, number: int = NUMBER) -> tuple[np.ndarray, np.ndarray]:
    levels = [len(values) for values in (SINGLE if labels == len(SINGLE) else PAIR).values()]
    chosen = np.random.default_rng(3).integers(0, levels, (number, labels))
    keys = jax.random.split(jax.random.key(4), number)
    made = jax.jit(jax.vmap(lambda label, key: render(label, key, 16, 1.0, 0.0)))(jnp.asarray(chosen), keys)
    return chosen, np.asarray(made)


@pytest.mark.parametrize("pixels", [16, 32])
@pytest.mark.parametrize("space", [ONE, TWO], ids=["one thing", "two things"])
def test_rendered_images_are_read_back(space: ProductSpace, pixels: int):
    errors = checker_error(space, jax.random.key(0), images=1024, pixels=pixels)
    assert list(errors)[:2] == ["error", "unreadable"]
    assert set(errors) - {"error", "unreadable"} == {name for name, _ in space.factors}
    assert errors["error"] < 0.005


@pytest.mark.parametrize(
    ("space", "noise", "most"),
    [(ONE, 0.1, 0.01), (ONE, 0.2, 0.05), (TWO, 0.1, 0.005), (TWO, 0.2, 0.015)],
    ids=["one .1", "one .2", "two .1", "two .2"],
)
def test_noise_hardly_matters(space: ProductSpace, noise: float, most: float):
    errors = checker_error(space, jax.random.key(1), images=1024, noise=noise)
    assert errors["error"] < most


def test_errors_are_those_of_the_factors_that_are_told():
    space = ProductSpace(factors={"colour": ["blue", "red"], "shape": ["ring", "disc"]})  # type: ignore[arg-type]
    errors = checker_error(space, jax.random.key(0), images=256)
    assert errors == {"error": 0, "unreadable": 0, "shape": 0, "colour": 0}
    # So much noise that nothing is left: the checker is wrong, and says so.
    errors = checker_error(space, jax.random.key(0), images=256, noise=2.0)
    assert errors["error"] == errors["unreadable"] == errors["shape"] == 1


@pytest.mark.parametrize("labels", [5, 4])
@pytest.mark.parametrize("spread", [0.1, 0.3, 0.5, 1.0])
def test_noise_is_no_scene(labels: int, spread: float):
    noise = np.random.default_rng(0).normal(0, spread, (NUMBER, 768))
    assert np.all(told(noise, labels) == -1)
    assert np.all(told(np.clip(noise, -1, 1), labels) == -1)


@pytest.mark.parametrize("labels", [5, 4])
def test_what_is_blank_cut_or_broken_is_no_scene(labels: int):
    halves = np.zeros((16, 16, 3))
    halves[:, :8] = (0.8, -0.9, -0.9)
    ramp = np.broadcast_to(np.linspace(-1, 1, 16)[:, None, None], (16, 16, 3))
    wrong = [np.full(768, -1.0), np.zeros(768), np.ones(768), np.full(768, np.nan), np.full(768, 1e9)]
    wrong += [halves.ravel(), ramp.ravel(), np.tile([-1.0, 1.0], 384)]
    assert np.all(told(np.stack(wrong), labels) == -1)


def test_too_many_and_too_few_things_are_no_scene():
    """What is told of one thing does not hold of two; half a thing is none."""
    _, singles = scenes(5)
    _, pairs = scenes(4)
    assert np.mean(told(pairs, 5)[:, 0] == -1) > 0.95
    assert np.mean((told(singles, 4) == -1).any(axis=1)) > 0.9
    images = pairs.reshape(-1, 16, 16, 3).copy()
    images[:, :, 8:] = np.median(images.reshape(len(images), -1, 3), axis=1)[:, None, None]
    assert np.all(told(images.reshape(len(images), -1), 4) == -1), "the right one is missing"


def test_a_patch_that_belongs_to_nothing_is_seen():
    labels, images = scenes(5)
    spoilt = images.reshape(-1, 16, 16, 3).copy()
    assert np.mean(np.all(told(images, 5) == labels, axis=1)) == 1
    away = labels[:, 3] == 0
    spoilt[:, 12:15, 12:15] = 1.0
    assert np.all(told(spoilt.reshape(len(spoilt), -1)[away], 5) == -1)


def test_values_stay_when_pixels_leave_their_range_a_little():
    """Generators do not keep exactly between -1 and 1."""
    labels, images = scenes(5)
    assert np.mean(np.all(told(1.15 * images, 5) == labels, axis=1)) > 0.97


def test_reading_is_the_same_alone_and_beside_others():
    labels, images = scenes(5)
    stacked = jnp.asarray(images).reshape(4, 16, -1)
    together = jax.jit(jax.vmap(lambda some: read(some, labels=5)))(stacked)
    assert np.array_equal(np.asarray(together).reshape(-1, 5), labels)


def test_medians():
    values = np.random.default_rng(0).uniform(-0.5, 1.5, (256, 3)).astype(np.float32)
    np.testing.assert_allclose(medians(jnp.asarray(values)), np.median(values, axis=0), atol=0.02)
    values[:180] = (0.1, 0.2, 0.3)
    np.testing.assert_allclose(medians(jnp.asarray(values)), (0.1, 0.2, 0.3), atol=1e-3)
