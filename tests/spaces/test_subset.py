"""Sets of up to K of M modules, against brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.subset import SubsetSpace

SPACES = [(1, 1, 1), (2, 1, 1), (4, 2, 1), (5, 3, 2), (5, 3, 3), (4, 4, 1), (4, 4, 4), (7, 2, 2), (6, 4, 2)]
"""M, K and the fewest."""

HUGE = SubsetSpace(modules=1000, max_active=20)


def space_of(numbers: tuple[int, int, int]) -> SubsetSpace:
    modules, most, fewest = numbers
    return SubsetSpace(modules=modules, max_active=most, min_active=fewest)


def brute_force(space: SubsetSpace) -> list[tuple[int, ...]]:
    return [parts for n in space.sizes for parts in itertools.combinations(range(space.modules), n)]


def test_size_of_the_papers_space():
    assert SubsetSpace(modules=16, max_active=3).size == 696


def test_size_of_a_huge_space_is_an_exact_integer():
    assert HUGE.size == sum(math.comb(1000, count) for count in range(1, 21))
    assert type(HUGE.size) is int


def test_size_follows_a_changed_copy():
    # A cached size would stay behind in the copy.
    space = SubsetSpace(modules=16, max_active=3)
    assert space.size == 696
    assert space.model_copy(update={"modules": 15}).size == 575


@pytest.mark.parametrize("numbers", SPACES)
def test_enumeration_against_brute_force(numbers: tuple[int, int, int]):
    space = space_of(numbers)
    rows = space.enumerate()
    assert rows.dtype == np.int32
    assert rows.shape == (space.size, space.slots)
    assert [space.constituents(row) for row in rows] == brute_force(space)
    assert len({tuple(row) for row in rows.tolist()}) == space.size
    assert (np.sort(rows, axis=1) == rows).all()
    assert space.contains(rows).all()


@pytest.mark.parametrize("numbers", SPACES)
def test_membership_of_every_row_of_small_numbers(numbers: tuple[int, int, int]):
    # From -1 to M + 1: unsorted, repeated, negative, a pad in the middle, and a number beyond the pad.
    space = space_of(numbers)
    members = {tuple(space.row(parts).tolist()) for parts in brute_force(space)}
    rows = list(itertools.product(range(-1, space.modules + 2), repeat=space.slots))
    assert space.contains(np.array(rows)).tolist() == [row in members for row in rows]


@pytest.mark.parametrize(
    ("row", "inside"),
    [
        ([0, 1, 16], True),
        ([5, 16, 16], True),
        ([1, 0, 16], False),
        ([1, 1, 16], False),
        ([-1, 1, 2], False),
        ([1, 16, 3], False),
        ([16, 1, 3], False),
        ([16, 16, 16], False),
        ([1, 2, 17], False),
        ([0, 17, 17], False),
    ],
)
def test_membership_in_the_papers_space(row: list[int], inside: bool):
    assert SubsetSpace(modules=16, max_active=3).contains(np.array([row])).tolist() == [inside]


@pytest.mark.parametrize("numbers", [(1, 1, 1), (4, 2, 1), (5, 3, 2), (5, 3, 3), (4, 4, 1), (6, 4, 2)])
def test_sampling_is_uniform_over_combinations(numbers: tuple[int, int, int], drawn: Callable, fairness: Callable):
    space = space_of(numbers)
    rows = drawn(space, 400 * space.size)
    assert rows.dtype == np.int32
    if space.size == 1:
        assert (rows == space.enumerate()).all()
    else:
        assert fairness(rows, space.enumerate()) > 1e-3


def test_sampling_in_a_huge_space(drawn: Callable):
    rows = drawn(HUGE, 4000)
    assert HUGE.contains(rows).all()
    assert len(np.unique(rows, axis=0)) == 4000
    # Nearly all combinations have 20 or 19 modules: comb(1000, 19) / comb(1000, 20) is 20 / 981.
    counts = (rows < 1000).sum(axis=1)
    short = np.mean(counts < 20)
    assert abs(short - 20 / 981) < 4 * math.sqrt(20 / 981 / 4000)
    usage = np.bincount(rows[rows < 1000], minlength=1000)
    assert abs(usage.mean() - counts.mean() * 4) < 1e-9
    assert usage.min() > 30
    assert usage.max() < 140


def test_sampling_where_sizes_do_not_fit_a_float(drawn: Callable):
    space = SubsetSpace(modules=2000, max_active=500)
    with pytest.raises(OverflowError):
        float(space.size)
    rows = drawn(space, 3)
    assert space.contains(rows).all()
    assert np.isfinite(space.second_moment()).all()


@pytest.mark.parametrize("numbers", SPACES)
def test_second_moment_against_enumeration(numbers: tuple[int, int, int]):
    space = space_of(numbers)
    vectors = np.array([[part in parts for part in range(space.width)] for parts in brute_force(space)], float)
    np.testing.assert_allclose(space.second_moment(), vectors.T @ vectors / len(vectors), rtol=1e-12, atol=0)


@pytest.mark.parametrize("numbers", SPACES)
@pytest.mark.parametrize("strength", [1, 2, 3, 4])
def test_interactions_against_brute_force(numbers: tuple[int, int, int], strength: int):
    space = space_of(numbers)
    sets = {together for parts in brute_force(space) for together in itertools.combinations(parts, strength)}
    listed = space.list_interactions(strength)
    assert listed.shape == (space.interactions(strength), strength)
    assert {tuple(row) for row in listed.tolist()} == sets
    assert len(sets) == space.interactions(strength)


@pytest.mark.parametrize(("numbers", "strength"), [((6, 3, 1), 2), ((6, 3, 3), 3), ((5, 4, 1), 1), ((4, 4, 1), 3)])
def test_interactions_are_sampled_uniformly(numbers: tuple[int, int, int], strength: int, fairness: Callable):
    space = space_of(numbers)
    rows = space.sample_interactions(np.random.default_rng(0), strength, 4000)
    assert rows.shape == (4000, strength)
    assert fairness(rows, space.list_interactions(strength)) > 1e-3


@pytest.mark.parametrize("strength", [0, 4])
def test_interactions_that_no_combination_has_are_not_sampled(strength: int):
    with pytest.raises(BadInput, match=r"choose 1\.\.3"):
        SubsetSpace(modules=6, max_active=3).sample_interactions(np.random.default_rng(0), strength, 10)


def test_vector_is_compiled_and_drops_the_pad():
    space = SubsetSpace(modules=5, max_active=3)
    row = jnp.asarray(space.row([4, 1]))
    np.testing.assert_array_equal(jax.jit(space.vector)(row), [0, 1, 0, 0, 1])
    np.testing.assert_allclose(jax.jit(space.vector)(row, jnp.array([0.5, 0.7, 0.9])), [0, 0.5, 0, 0, 0.7], rtol=1e-6)


def test_row_constituents_and_name():
    space = SubsetSpace(modules=16, max_active=3)
    row = space.row([7, 2])
    assert row.tolist() == [2, 7, 16]
    assert row.dtype == np.int32
    assert space.constituents(row) == (2, 7)
    assert space.name(row) == "2 + 7"


@pytest.mark.parametrize("parts", [[], [1, 1], [1, 2, 3, 4], [-1], [16], [0, 16], [0, 17], [2**40]])
def test_row_refuses_constituents_that_are_not_a_combination(parts: list[int]):
    with pytest.raises(BadInput, match="is not a combination"):
        SubsetSpace(modules=16, max_active=3).row(parts)


def test_exactly():
    part = SubsetSpace(modules=16, max_active=3).exactly(3)
    assert part.size == math.comb(16, 3)
    assert (part.sizes.start, part.sizes.stop) == (3, 4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"modules": 2, "max_active": 3}, "max_active=3 is more than modules=2"),
        ({"modules": 5, "max_active": 2, "min_active": 3}, "min_active=3 is more than max_active=2"),
        ({"modules": 0, "max_active": 1}, "greater than 0"),
        ({"modules": 5, "max_active": 0}, "greater than 0"),
        ({"modules": 5, "max_active": 2, "min_active": 0}, "greater than 0"),
        ({"modules": 5, "max_active": 2, "most": 2}, "most"),
    ],
)
def test_impossible_spaces_are_refused(fields: dict[str, int], message: str):
    with pytest.raises(ValidationError, match=message):
        SubsetSpace(**fields)


def test_long_enumerations_are_refused():
    with pytest.raises(BadInput, match=r"about 10\^41 combinations"):
        HUGE.enumerate()
    with pytest.raises(BadInput, match="696 combinations, more than the limit of 695"):
        SubsetSpace(modules=16, max_active=3).enumerate(limit=695)
    with pytest.raises(BadInput, match="draw from it"):
        # More digits than Python is willing to print.
        SubsetSpace(modules=20_000, max_active=6000).enumerate()


def test_found_by_name_and_usable_as_a_key():
    space = resolve("spaces", {"kind": "subset", "modules": 16, "max_active": 3})
    assert space == SubsetSpace(modules=16, max_active=3)
    assert hash(space) == hash(SubsetSpace(modules=16, max_active=3))
    assert SubsetSpace.model_validate_json(space.model_dump_json()) == space


@st.composite
def spaces(draw: st.DrawFn) -> SubsetSpace:
    modules = draw(st.integers(1, 8))
    most = draw(st.integers(1, modules))
    return space_of((modules, most, draw(st.integers(1, most))))


@settings(deadline=None, max_examples=60)
@given(spaces(), st.data())
def test_rows_and_constituents_are_inverse(space: SubsetSpace, data: st.DataObject):
    rows = space.enumerate()
    assert len(rows) == space.size
    row = rows[data.draw(st.integers(0, space.size - 1))]
    parts = space.constituents(row)
    assert (space.row(data.draw(st.permutations(parts))) == row).all()
    assert space.min_active <= len(parts) <= space.max_active
    assert [int(name) for name in space.name(row).split(" + ")] == list(parts)


@settings(deadline=None, max_examples=60)
@given(spaces())
def test_second_moment_is_consistent(space: SubsetSpace):
    moment = space.second_moment()
    sizes = [len(parts) for parts in brute_force(space)]
    assert np.trace(moment) == pytest.approx(np.mean(sizes))
    assert moment.sum() == pytest.approx(np.mean(np.square(sizes)))
    assert (np.linalg.eigvalsh(moment) > -1e-12).all()
