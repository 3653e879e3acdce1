"""Tokens of the active constituents, read through tables that are trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.encodings.token_embedding import TokenEmbedder, TokenEmbedding
from recombine.families.hyperteacher import Coefficients, Hyperteacher
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=6, max_active=3)
ENCODING = TokenEmbedding(width=4)


def reader() -> TokenEmbedder:
    return ENCODING.embedder(SPACE, Hyperteacher(), jax.random.key(3))


@pytest.mark.parametrize("law", ["discrete", "k-hot", "continuous"])
def test_codes_list_the_active_parts(law: Coefficients, tasks: Callable[..., Any]):
    family = Hyperteacher(inputs=2, hidden=2, outputs=2, coefficients=law)
    teacher, some = tasks(SPACE, family)
    encoder = ENCODING.draw(SPACE, family, jax.random.key(0))
    codes = np.asarray(jax.vmap(lambda task: encoder(task, teacher, jax.random.key(1)))(some))
    assert codes.shape[1] == ENCODING.size(SPACE, family) == 6
    np.testing.assert_array_equal(codes[:, 0::2], some.combination)
    np.testing.assert_allclose(codes[:, 1::2] / 10, some.coefficients, atol=1e-6)
    if law != "continuous":
        np.testing.assert_allclose(codes, np.round(codes), atol=1e-5)


def test_the_reading_is_a_look_into_two_tables():
    found = reader()
    read = np.asarray(found(jnp.array([1.0, 5.0, 4.0, 10.0, 6.0, 0.0]))).reshape(3, 2, 4)
    assert read.size == ENCODING.features(SPACE, Hyperteacher())
    np.testing.assert_array_equal(read[:, 0], found.parts[jnp.array([1, 4, 6])])
    np.testing.assert_allclose(read[:, 1], found.values[jnp.array([5, 10, 0])], atol=1e-6)


def test_continuous_coefficients_are_read_between_two_levels():
    found = reader()
    read = np.asarray(found(jnp.array([1.0, 7.25, 4.0, 9.5, 6.0, 0.0]))).reshape(3, 2, 4)[:, 1]
    values = np.asarray(found.values)
    np.testing.assert_allclose(read[0], 0.75 * values[7] + 0.25 * values[8], atol=1e-5)
    np.testing.assert_allclose(read[1], 0.5 * values[9] + 0.5 * values[10], atol=1e-5)


def test_every_task_has_a_reading_of_its_own():
    """Also those that differ only in which part has which coefficient."""
    rows = np.repeat(SPACE.enumerate(), 8, axis=0)
    levels = np.random.default_rng(0).integers(5, 11, rows.shape) * (rows < SPACE.width)
    codes = np.unique(np.stack([rows, levels], axis=2).reshape(len(rows), -1), axis=0)
    codes = np.concatenate([codes, [[0, 5, 1, 6, 2, 7], [0, 6, 1, 5, 2, 7], [0, 7, 1, 6, 2, 5]]])
    codes = np.unique(codes, axis=0).astype(np.float32)
    readings = np.asarray(jax.vmap(reader())(jnp.asarray(codes)))
    assert len(np.unique(np.round(readings, 4), axis=0)) == len(codes)


def test_gradients_reach_only_the_tokens_that_occur():
    gradient = jax.grad(lambda one: jnp.sum(one(jnp.array([1.0, 5.0, 4.0, 10.0, 6.0, 0.0])) ** 2))(reader())
    assert set(np.flatnonzero(np.any(gradient.parts != 0, axis=1))) == {1, 4, 6}
    assert set(np.flatnonzero(np.any(gradient.values != 0, axis=1))) == {0, 5, 10}
