"""Intervals of [0, 1] change places; offsets stay, and so do exact ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.encodings.interval_shuffle import IntervalShuffle, IntervalShuffleEncoder
from recombine.families.hyperteacher import LEVELS, Hyperteacher
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=4, max_active=2)


def drawn(intervals: int = 10, seed: int = 0) -> IntervalShuffleEncoder:
    return IntervalShuffle(intervals=intervals).draw(SPACE, Hyperteacher(), jax.random.key(seed))


def test_places_are_a_permutation_that_leaves_the_one():
    places = np.asarray(drawn().places)
    assert sorted(places) == list(range(11))
    assert places[-1] == 10
    assert any(np.any(drawn(seed=seed).places != places) for seed in (1, 2))


@pytest.mark.parametrize("intervals", [2, 3, 7, 10, 100, 1000])
def test_cuts_fall_into_the_interval_that_they_begin(intervals: int):
    """k/n in single precision may lie a little below k/n."""
    encoder = drawn(intervals)
    for cuts in (np.arange(intervals) / intervals, np.arange(intervals, dtype=np.float32) * np.float32(1 / intervals)):
        found = np.asarray(encoder.forward(jnp.asarray(cuts, jnp.float32)))
        np.testing.assert_allclose(found, np.asarray(encoder.places)[:-1] / intervals, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_levels_of_the_discrete_law(compiled: bool):
    encoder = drawn(seed=3)
    forward = jax.jit(lambda values: encoder.forward(values)) if compiled else encoder.forward
    found = np.asarray(forward(jnp.array((0.0, *LEVELS))))
    wanted = np.asarray(encoder.places)[[0, 5, 6, 7, 8, 9, 10]] / 10
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert found[-1] == 1.0


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 9), st.floats(0.001, 0.999), st.integers(0, 5))
def test_offsets_are_kept(interval: int, offset: float, seed: int):
    encoder = drawn(seed=seed)
    value = jnp.array([(interval + offset) / 10] * 4)
    found = np.asarray(encoder.forward(value))
    np.testing.assert_allclose(found, (int(encoder.places[interval]) + offset) / 10, atol=1e-6)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.sampled_from([2, 7, 10, 64]), st.integers(0, 2**16))
def test_the_inverse_recovers_the_task_vector(intervals: int, seed: int):
    encoder = drawn(intervals, seed % 5)
    rng = np.random.default_rng(seed)
    inside = (rng.integers(0, intervals, 50) + rng.uniform(0.001, 0.999, 50)) / intervals
    vector = np.concatenate([[0, 1], LEVELS, np.arange(intervals) / intervals, inside]).astype(np.float32)
    code = encoder.forward(jnp.asarray(vector))
    assert float(code.min()) > -1e-6
    assert float(code.max()) <= 1
    np.testing.assert_allclose(IntervalShuffleEncoder(jnp.argsort(encoder.places)).forward(code), vector, atol=1e-6)


def test_less_than_two_intervals_are_refused():
    with pytest.raises(ValidationError):
        IntervalShuffle(intervals=1)
