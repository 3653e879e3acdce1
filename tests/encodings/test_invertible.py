"""The invertible network can be undone, and its scale decides how far from linear it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from jaxtyping import Array
from sklearn.linear_model import Ridge

from recombine.encodings.invertible import Invertible, InvertibleEncoder
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.subset import SubsetSpace

FAMILY = Hyperteacher(inputs=2, hidden=2, outputs=2)


@functools.cache
def drawn(modules: int, scale: float = 0.1) -> InvertibleEncoder:
    space = SubsetSpace(modules=modules, max_active=1)
    return Invertible(scale=scale).draw(space, FAMILY, jax.random.key(0))


@eqx.filter_jit
def forward(encoder: InvertibleEncoder, vector: Array) -> Array:
    return encoder.forward(vector)


@eqx.filter_jit
def inverse(encoder: InvertibleEncoder, code: Array) -> Array:
    for number, layer in reversed(list(enumerate(encoder.layers))):
        kept, moved = jnp.split(code[::-1] if number % 2 else code, [len(code) // 2])
        factor, shift = layer.amounts(kept)
        undone = jnp.concatenate([kept, (moved - shift) / factor])
        code = undone[::-1] if number % 2 else undone
    return code


def by_hand(encoder: InvertibleEncoder, vector: np.ndarray) -> np.ndarray:
    """The three layers written out in numpy, in double precision."""
    half = len(vector) // 2
    for number, layer in enumerate(encoder.layers):
        if number == 1:
            vector = vector[::-1]
        first, second, third = (np.asarray(weight, float) for weight in layer.weights)
        hidden = 1 / (1 + np.exp(-vector[:half] @ first))
        hidden = 1 / (1 + np.exp(-hidden @ second))
        amounts = hidden @ third
        moved = len(vector) - half
        changed = (1 + 0.5 * np.tanh(amounts[:moved])) * vector[half:] + amounts[moved:]
        vector = np.concatenate([vector[:half], changed])
        if number == 1:
            vector = vector[::-1]
    return vector


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data(), st.sampled_from([1, 2, 5, 8]), st.sampled_from([0.01, 0.1, 1.0]))
def test_the_inverse_recovers_the_task_vector(data: Any, modules: int, scale: float):
    encoder = drawn(modules, scale)
    vector = data.draw(arrays.arrays(np.float32, modules, elements=st.floats(0, 1, width=32)))
    code = forward(encoder, jnp.asarray(vector))
    np.testing.assert_allclose(code, by_hand(encoder, vector.astype(float)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(inverse(encoder, code), vector, atol=2e-4)


def test_conditioners_have_the_published_sizes_and_scale():
    for layer in drawn(16, 0.1).layers:
        assert [weight.shape for weight in layer.weights] == [(8, 32), (32, 32), (32, 16)]
        assert np.std(np.concatenate([np.ravel(one) for one in layer.weights])) == pytest.approx(0.1, rel=0.1)
    for layer in drawn(5).layers:
        assert [weight.shape for weight in layer.weights] == [(2, 10), (10, 10), (10, 6)]


def test_every_coordinate_is_changed():
    vector = jnp.linspace(0.1, 1, 7)
    assert np.all(np.abs(np.asarray(drawn(7, 1.0).forward(vector) - vector)) > 1e-3)


def decodability(scale: float, tasks: Callable[..., Any]) -> float:
    """The mean over draws of a ridge map's R2, from codes to z."""
    space = SubsetSpace(modules=16, max_active=3)
    _, some = tasks(space, FAMILY, 1024)
    vectors, found = np.asarray(some.vector), []
    for seed in range(3):
        encoder = Invertible(scale=scale).draw(space, FAMILY, jax.random.key(seed))
        codes = np.asarray(jax.vmap(forward, in_axes=(None, 0))(encoder, some.vector))
        found.append(Ridge().fit(codes[:512], vectors[:512]).score(codes[512:], vectors[512:]))
    return float(np.mean(found))


def test_the_scale_decides_whether_a_linear_map_reads_the_task(tasks: Callable[..., Any]):
    assert decodability(0.1, tasks) > 0.99
    assert decodability(1.0, tasks) < 0.8
