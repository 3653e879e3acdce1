"""Supports given by a list."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.listed import Listed

SPACE = SubsetSpace(modules=5, max_active=3)
ALL = SPACE.enumerate()


@settings(deadline=None, max_examples=100)
@given(st.sets(st.integers(0, len(ALL) - 1), min_size=1))
def test_contains_is_that_of_a_python_set(chosen: set[int]):
    support = Listed(SPACE, ALL[sorted(chosen)])
    assert support.size == len(chosen)
    assert support.contains(ALL).tolist() == [index in chosen for index in range(len(ALL))]


def test_contains_rows_that_are_no_combinations():
    support = Listed(SPACE, ALL)
    foreign = np.array([[1, 0, 5], [0, 0, 5], [-1, 0, 5], [0, 6, 6], [2**32, 1, 5]])
    assert not support.contains(foreign).any()


def test_contains_no_rows_at_all():
    assert Listed(SPACE, ALL).contains(np.empty((0, 3), np.int32)).shape == (0,)


def test_uniform_draws(drawn: Callable, fit: Callable):
    rows = ALL[::2]
    assert fit(drawn(Listed(SPACE, rows).sampler(), 6000), rows) > 1e-3


def test_weighted_draws(drawn: Callable, fit: Callable):
    rows, weights = ALL[:6], np.array([1, 2, 3, 4, 5, 0.5])
    support = Listed(SPACE, rows, weights)
    np.testing.assert_allclose(support.shares, weights / weights.sum())
    draws = drawn(support.sampler(), 8000)
    assert fit(draws, rows, weights / weights.sum()) > 1e-3
    # The test can tell: the same draws do not pass as uniform.
    assert fit(draws, rows) < 1e-6


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 8.0)])
def test_padding_changes_no_draw(weights: np.ndarray | None, drawn: Callable):
    support = Listed(SPACE, ALL[:7], weights)
    plain, padded = support.sampler(), support.sampler(pad_to=64)
    assert padded.rows.shape == (64, 3)
    np.testing.assert_array_equal(drawn(plain, 5000), drawn(padded, 5000))


def test_padding_to_less_than_the_list_is_refused():
    with pytest.raises(BadInput, match="pad_to=6 is shorter than the list of 7"):
        Listed(SPACE, ALL[:7]).sampler(pad_to=6)


def test_long_weighted_lists_keep_their_shares():
    space = ProductSpace(factors={"a": 400, "b": 500})  # type: ignore[arg-type]
    support = Listed(space, space.enumerate(), np.random.default_rng(0).uniform(0.5, 1.5, 200_000))
    thresholds = np.asarray(support.sampler().thresholds).astype(np.float64)
    drawn_shares = np.diff(np.append(np.insert(thresholds[:-1], 0, 0), 2**32)) / 2**32
    # Cumulative shares as 32-bit floats would be wrong by up to a few per cent here.
    np.testing.assert_allclose(drawn_shares, support.shares, rtol=2e-4)


def test_extreme_weights(drawn: Callable):
    support = Listed(SPACE, ALL[:3], np.array([1e308, 1e308, 1e-300]))
    np.testing.assert_allclose(support.shares, [0.5, 0.5, 0], atol=1e-300)
    assert len(np.unique(drawn(support.sampler(), 100), axis=0)) == 2


def test_second_moment_by_weights():
    weights = np.arange(1.0, 11.0)
    support = Listed(SPACE, ALL[3:13], weights)
    vectors = np.array([[part in row for part in range(5)] for row in support.rows.tolist()], float)
    expected = np.einsum("n,ni,nj->ij", weights / weights.sum(), vectors, vectors)
    np.testing.assert_allclose(support.second_moment(), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ALL[[0, 1, 0]], "listed twice"),
        (np.array([[1, 0, 5]]), "is not a combination"),
        (np.array([[0, 5, 1]]), "is not a combination"),
        (np.array([[0, 1, 6]]), "is not a combination"),
        (np.array([[2**32, 5, 5]]), "is not a combination"),
        (ALL[:0], "at least one combination"),
        (ALL[:, :2], "rows of 3 whole numbers"),
        (ALL[0], "rows of 3 whole numbers"),
        (ALL.astype(float), "rows of 3 whole numbers"),
    ],
)
def test_bad_lists_are_refused(rows: np.ndarray, message: str):
    with pytest.raises(BadInput, match=message):
        Listed(SPACE, rows)


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0], [1.0, 0.0, 1.0], [1, -1, 1], [1, np.nan, 1], [1, np.inf, 1], [[1], [1], [1]]]
)
def test_bad_weights_are_refused(weights: list):
    with pytest.raises(BadInput, match="must be positive numbers, one for each row"):
        Listed(SPACE, ALL[:3], np.array(weights, float))


def test_bad_reserves_are_refused():
    with pytest.raises(BadInput, match="reserved combination is also listed"):
        Listed(SPACE, ALL[:3], reserved=ALL[2:4])
    with pytest.raises(BadInput, match="is not a combination"):
        Listed(SPACE, ALL[:3], reserved=np.array([[4, 3, 5]]))
