"""Layers of models: the convolution by patches against XLA's own, values and gradients; changes of resolution against loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.models.layers import (
    Linear,
    convolve,
    depth_to_space,
    draw_convolution,
    neighbourhoods,
    pointwise,
    rms_norm,
    space_to_depth,
)


def drawn(shape: tuple[int, ...], seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def of_xla(images: jax.Array, layer: Linear) -> jax.Array:
    kernel = layer.weight.reshape(3, 3, images.shape[-1], -1)
    order = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=order) + layer.bias


@pytest.mark.parametrize("shape", [(2, 4, 4, 3, 5), (1, 3, 5, 2, 1), (3, 1, 2, 1, 4)])
def test_equals_the_convolution_of_xla(shape: tuple[int, ...]):
    """Values, and the gradients by images, weights and biases."""
    *place, channels, units = shape
    images, layer = drawn((*place, channels)), Linear(drawn((9 * channels, units), 1), drawn((units,), 2))
    slope = drawn((*place, units), 3)
    found, back = jax.vjp(convolve, images, layer)
    wanted, back_wanted = jax.vjp(of_xla, images, layer)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    for one, other in zip(jax.tree.leaves(back(slope)), jax.tree.leaves(back_wanted(slope)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_neighbourhoods_are_patches_row_by_row():
    images = np.asarray(drawn((1, 4, 5, 2)))
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    found = neighbourhoods(jnp.asarray(images))
    for row in range(4):
        for column in range(5):
            around = wide[0, row : row + 3, column : column + 3]
            np.testing.assert_array_equal(found[0, row, column], around.ravel())


def test_a_pointwise_map_is_the_same_at_every_position():
    images, layer = drawn((2, 3, 4, 5)), Linear(drawn((5, 2), 1), drawn((2,), 2))
    found = pointwise(images, layer)
    for place in np.ndindex(2, 3, 4):
        np.testing.assert_allclose(found[place], images[place] @ layer.weight + layer.bias, rtol=1e-5, atol=1e-6)


@settings(derandomize=True, deadline=None, max_examples=10)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_space_to_depth_gathers_squares_and_depth_to_space_undoes_it(
    factor: int, rows: int, columns: int, channels: int
):
    images = np.asarray(drawn((2, factor * rows, factor * columns, channels)))
    found = space_to_depth(jnp.asarray(images), factor)
    assert found.shape == (2, rows, columns, factor**2 * channels)
    for row, column in np.ndindex(rows, columns):
        top, left = factor * row, factor * column
        square = images[1, top : top + factor, left : left + factor]
        np.testing.assert_array_equal(found[1, row, column], square.ravel())
    np.testing.assert_array_equal(depth_to_space(found, factor), images)


def test_normed_positions_have_mean_square_one():
    images = 7 * drawn((2, 3, 3, 8))
    np.testing.assert_allclose(jnp.mean(rms_norm(images) ** 2, axis=-1), 1.0, rtol=1e-4)
    assert not np.any(rms_norm(jnp.zeros((1, 2, 2, 4))))


def test_first_weights_keep_the_variance():
    layer = draw_convolution(32, 64, jax.random.key(0))
    assert layer.weight.shape == (9 * 32, 64)
    assert np.var(layer.weight) == pytest.approx(1 / (9 * 32), rel=0.06)
    assert not np.any(layer.bias)
