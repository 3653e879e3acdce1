"""A value for each factor, against brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace

LEVELS = [(1,), (4,), (2, 3), (2, 2, 2), (3, 1, 2), (2, 3, 4)]


def space_of(levels: tuple[int, ...]) -> ProductSpace:
    return ProductSpace(factors={f"f{index}": count for index, count in enumerate(levels)})  # type: ignore[arg-type]


def brute_force(levels: tuple[int, ...]) -> list[tuple[int, ...]]:
    starts = [sum(levels[:index]) for index in range(len(levels))]
    return list(itertools.product(*(range(start, start + count) for start, count in zip(starts, levels, strict=True))))


@pytest.fixture
def toys() -> ProductSpace:
    return ProductSpace(factors={"colour": ["red", "blue"], "shape": 3})  # type: ignore[arg-type]


def test_numbers_of_a_space(toys: ProductSpace):
    assert (toys.width, toys.slots, toys.size) == (5, 2, 6)
    assert toys.levels == (2, 3)
    assert toys.offsets == (0, 2)


def test_size_of_a_huge_space_is_an_exact_integer():
    space = space_of((7,) * 50)
    assert space.size == 7**50
    assert space.interactions(50) == 7**50


@pytest.mark.parametrize("levels", LEVELS)
def test_enumeration_against_brute_force(levels: tuple[int, ...]):
    space = space_of(levels)
    rows = space.enumerate()
    assert rows.dtype == np.int32
    assert [tuple(row) for row in rows.tolist()] == brute_force(levels)
    assert len(rows) == space.size == math.prod(levels)
    assert (np.sort(rows, axis=1) == rows).all()
    assert space.contains(rows).all()


@pytest.mark.parametrize("levels", LEVELS)
def test_membership_of_every_row_of_small_numbers(levels: tuple[int, ...]):
    space, members = space_of(levels), set(brute_force(levels))
    rows = list(itertools.product(range(-1, space.width + 2), repeat=space.slots))
    assert space.contains(np.array(rows)).tolist() == [row in members for row in rows]


@pytest.mark.parametrize("levels", [(4,), (3, 1, 2), (2, 3, 4)])
def test_sampling_is_uniform_over_combinations(levels: tuple[int, ...], drawn: Callable, fairness: Callable):
    space = space_of(levels)
    rows = drawn(space, 400 * space.size)
    assert rows.dtype == np.int32
    if space.size == 1:
        assert (rows == space.enumerate()).all()
    else:
        assert fairness(rows, space.enumerate()) > 1e-3


def test_sampling_in_a_huge_space(drawn: Callable):
    space = space_of(tuple(range(2, 52)))
    rows = drawn(space, 2000)
    assert space.contains(rows).all()
    assert len(np.unique(rows, axis=0)) == 2000


@pytest.mark.parametrize("levels", LEVELS)
def test_second_moment_against_enumeration(levels: tuple[int, ...]):
    space = space_of(levels)
    vectors = np.array([[part in parts for part in range(space.width)] for parts in brute_force(levels)], float)
    np.testing.assert_allclose(space.second_moment(), vectors.T @ vectors / len(vectors), rtol=1e-12, atol=0)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("strength", [1, 2, 3, 4])
def test_interactions_against_brute_force(levels: tuple[int, ...], strength: int):
    space = space_of(levels)
    sets = {parts for row in brute_force(levels) for parts in itertools.combinations(row, strength)}
    listed = space.list_interactions(strength)
    assert listed.shape == (space.interactions(strength), strength)
    assert {tuple(row) for row in listed.tolist()} == sets
    assert len(sets) == space.interactions(strength)


@pytest.mark.parametrize(
    ("levels", "strength"), [((2, 3, 4), 2), ((1, 5, 2), 2), ((2, 3, 4), 3), ((6, 1), 1), ((2, 2, 2, 7), 3)]
)
def test_interactions_are_sampled_uniformly(levels: tuple[int, ...], strength: int, fairness: Callable):
    space = space_of(levels)
    rows = space.sample_interactions(np.random.default_rng(0), strength, 5000)
    assert fairness(rows, space.list_interactions(strength)) > 1e-3


@pytest.mark.parametrize("strength", [0, 3])
def test_interactions_that_no_combination_has_are_not_sampled(strength: int):
    with pytest.raises(BadInput, match=r"choose 1\.\.2"):
        space_of((2, 3)).sample_interactions(np.random.default_rng(0), strength, 10)


def test_row_constituents_name_and_vector(toys: ProductSpace):
    row = toys.row([4, 1])
    assert row.tolist() == [1, 4]
    assert toys.constituents(row) == (1, 4)
    assert toys.name(row) == "colour=blue + shape=2"
    np.testing.assert_array_equal(jax.jit(toys.vector)(jnp.asarray(row)), [0, 1, 0, 0, 1])


@pytest.mark.parametrize("parts", [[], [0], [0, 1], [2, 3], [0, 2, 3], [-1, 2], [0, 5]])
def test_row_refuses_constituents_that_are_not_a_combination(toys: ProductSpace, parts: list[int]):
    with pytest.raises(BadInput, match="is not a combination"):
        toys.row(parts)


def test_label_of_no_constituent(toys: ProductSpace):
    assert [toys.label(part) for part in range(5)] == ["colour=red", "colour=blue", "shape=0", "shape=1", "shape=2"]
    with pytest.raises(IndexError):
        toys.label(5)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({}, "at least 1 item"),
        (3, "give a mapping"),
        ("colour", "give a mapping"),
        (["colour"], "give a mapping"),
        ([("colour", 2, 3)], "give a mapping"),
        ({"colour": 0}, "at least one value"),
        ({"colour": -2}, "at least one value"),
        ({"colour": []}, "at least one value"),
        ({"colour": ["red", "red"]}, "no value twice"),
        ({"colour": "red"}, "a list of values or their number"),
        ({"colour": 2.5}, "a list of values or their number"),
        ({"colour": None}, "a list of values or their number"),
        ({"colour": True}, "a list of values or their number"),
        ([("colour", 2), ("colour", 3)], "factor names must differ"),
    ],
)
def test_bad_factors_are_refused(factors: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        ProductSpace(factors=factors)


def test_long_enumerations_are_refused():
    with pytest.raises(BadInput, match="6 combinations, more than the limit of 5"):
        space_of((2, 3)).enumerate(limit=5)
    with pytest.raises(BadInput, match="draw from it"):
        space_of((10,) * 30).enumerate()


def test_found_by_name_and_usable_as_a_key(toys: ProductSpace):
    space = resolve("spaces", {"kind": "product", "factors": {"colour": ["red", "blue"], "shape": 3}})
    assert space == toys
    assert hash(space) == hash(toys)
    assert ProductSpace.model_validate_json(space.model_dump_json()) == space


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.data())
def test_rows_and_constituents_are_inverse(levels: tuple[int, ...], data: st.DataObject):
    space = space_of(levels)
    rows = space.enumerate()
    row = rows[data.draw(st.integers(0, space.size - 1))]
    parts = space.constituents(row)
    assert (space.row(data.draw(st.permutations(parts))) == row).all()
    moment = space.second_moment()
    assert np.trace(moment) == pytest.approx(len(levels))
    assert moment.sum() == pytest.approx(len(levels) ** 2)
