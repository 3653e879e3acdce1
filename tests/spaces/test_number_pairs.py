"""Pairs of numbers as a space, and the support that trains on short ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.number_pairs import NumberPairs
from recombine.spaces.subset import SubsetSpace
from recombine.supports.regions import Regions
from recombine.supports.small_factors import SmallFactors
from recombine.testing import check_space, check_support

SMALL = NumberPairs(left=2, right=1)


@pytest.mark.parametrize("space", [NumberPairs(left=1, right=1), SMALL, NumberPairs()])
def test_conformance(space: NumberPairs) -> None:
    check_space(space)


@given(left=st.integers(1, 999), right=st.integers(1, 99))
@settings(max_examples=80, deadline=None)
def test_a_row_says_its_numbers(left: int, right: int) -> None:
    space = NumberPairs(left=3, right=2)
    row = space.of(np.array([left]), np.array([right]))
    assert [int(one[0]) for one in space.numbers(row)] == [left, right]
    assert space.name(row[0]) == f"{left} x {right}"
    assert space.contains(row)[0]
    said = "".join(f"{digit}" for digit in space.digits(row)[0][:3][::-1] if digit >= 0)
    assert said == str(left)


def test_compiled_code_makes_the_same_rows() -> None:
    space = NumberPairs(left=3, right=2)
    left, right = np.array([7, 40, 305]), np.array([10, 9, 99])
    made = jax.jit(lambda one, two: space.of(one, two, jnp))(left, right)
    np.testing.assert_array_equal(made, space.of(left, right))


def test_rows_that_are_no_pairs_are_refused() -> None:
    row = SMALL.of(np.array([30]), np.array([4]))[0]
    assert SMALL.name(row) == "30 x 4"
    without_units = np.sort(np.where(row == row[0], SMALL.width, row))
    assert not SMALL.contains(without_units[None])[0]
    # 0 as the only digit of a number.
    assert not SMALL.contains(np.array([[0, int(row[2]), SMALL.width]]))[0]
    assert not SMALL.contains(row[None, ::-1])[0]


@pytest.mark.parametrize("kind", [SmallFactors(left=1, right=1), SmallFactors(left=1, right=1, number=9, reserve=4)])
def test_support_conformance(kind: SmallFactors) -> None:
    check_support(kind, SMALL)


def test_larger_pairs_are_never_trained_and_all_sizes_are_tested() -> None:
    space = NumberPairs()
    support = SmallFactors(number=500, reserve=64).draw(space, 3)
    left, right = space.numbers(support.rows)
    assert left.max() < 100 and right.max() < 100
    wide = (left > 9) & (right > 9)
    assert wide.sum() == 500
    assert support.shares[wide].sum() == pytest.approx(4 / 9)
    tested = np.stack(space.numbers(support.reserved))
    sizes = 1 + (tested > 9) + (tested > 99)
    counts = {(a, b): int(((sizes[0] == a) & (sizes[1] == b)).sum()) for a in (1, 2, 3) for b in (1, 2, 3)}
    assert counts == {(1, 1): 16} | {size: 64 for size in counts if size != (1, 1)}
    # 3 x 1 digits are as many parts as 2 x 2: size, and not the number of parts, tells what is beyond training.
    assert len(Regions(support, 3).rows("more_parts", 10_000)) == 3 * 64
    more = SmallFactors(number=900, reserve=64).draw(space, 3)
    np.testing.assert_array_equal(more.reserved, support.reserved)


@given(
    sizes=st.tuples(*(st.integers(1, 3) for _ in range(4))),
    number=st.integers(2, 400),
    reserve=st.integers(2, 90),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_no_held_out_pair_was_trained_the_other_way_round(
    sizes: tuple[int, int, int, int], number: int, reserve: int, seed: int
) -> None:
    left, right = sorted(sizes[:2]), sorted(sizes[2:])
    space = NumberPairs(left=left[1], right=right[1])
    kind = SmallFactors(left=left[0], right=right[0], number=number, reserve=reserve)
    assume(kind.obstacle(space) is None)
    support = kind.draw(space, seed)
    trained, held_out = (
        set(zip(*(one.tolist() for one in space.numbers(rows)), strict=True))
        for rows in (support.rows, support.reserved)
    )
    assert held_out and not {(right, left) for left, right in held_out} & trained
    assert kind.length(space) == len(trained)
    # Both orders are trained on, where both are of trained sizes.
    short = 10 ** min(kind.left, kind.right)
    own = {pair for pair in trained if max(pair) < short}
    assert own == {(right, left) for left, right in own}


def test_products_that_look_the_same_are_on_one_side() -> None:
    space = NumberPairs()
    support = SmallFactors().draw(space, 5)
    left, right = space.numbers(support.rows)
    of_two = (left > 9) & (right > 9)
    # All but the reserve are trained on, in both orders; squares among them.
    assert of_two.sum() == 8100 - 128 and (left == right)[of_two].sum() > 60
    held_out = np.stack(space.numbers(support.reserved))
    assert held_out.shape[1] == 16 + 8 * 128


def test_a_size_whose_mirror_is_trained_is_in_neither_list() -> None:
    space = NumberPairs(left=2, right=2)
    support = SmallFactors(left=1, right=2, number=60, reserve=24).draw(space, 0)
    for rows in (support.rows, support.reserved):
        left, right = space.numbers(rows)
        assert not ((left > 9) & (right < 10)).any()


def test_pairs_of_a_large_size_are_drawn_without_listing_it() -> None:
    space = NumberPairs(left=4, right=4)
    rows = SmallFactors(left=3, right=3, number=20, reserve=300).draw(space, 0).reserved
    left, right = space.numbers(rows)
    assert ((left > 999) & (right > 999)).sum() == 300


def test_other_spaces_and_sizes_are_refused() -> None:
    with pytest.raises(BadInput, match="not defined for a space of kind"):
        SmallFactors().check(SubsetSpace(modules=4, max_active=2))
    with pytest.raises(BadInput, match="leave no larger pairs"):
        SmallFactors(left=2, right=1).check(SMALL)
