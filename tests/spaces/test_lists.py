"""Lists of numbers as a space, and the support that trains on short ones."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.spaces.lists import ListSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.regions import Regions
from recombine.supports.short_lists import ShortLists
from recombine.testing import check_space, check_support

SMALL = ListSpace(low=-1, high=1, shortest=1, longest=4)


@pytest.mark.parametrize("space", [SMALL, ListSpace(low=0, high=3, shortest=2, longest=2)])
def test_conformance(space: ListSpace) -> None:
    check_space(space)


def test_lists_are_counted_named_and_told_apart() -> None:
    assert SMALL.size == 3 + 9 + 27 + 81 == len(SMALL.enumerate())
    row = SMALL.of(np.array([[1, 0, -1]]))[0]
    assert SMALL.name(row) == "1 0 -1"
    assert SMALL.values(row) == (1, 0, -1)
    assert SMALL.label(int(row[2])) == "place 3=-1"
    assert not SMALL.contains(np.array([[0, 12, 7, 12]]))[0]
    with pytest.raises(ValidationError, match="longest=1"):
        ListSpace(shortest=2, longest=1)


@pytest.mark.parametrize("kind", [ShortLists(longest=2, number=5, reserve=3), ShortLists(longest=3)])
def test_support_conformance(kind: ShortLists) -> None:
    check_support(kind, SMALL)


def test_longer_lists_are_never_trained_and_all_lengths_are_tested() -> None:
    space = ListSpace()
    support = ShortLists(longest=5, number=500, reserve=64).draw(space, 3)
    lengths = (support.rows < space.width).sum(axis=1)
    assert lengths.max() == 5
    shares = [support.shares[lengths == length].sum() for length in range(2, 6)]
    np.testing.assert_allclose(shares, 0.25)
    tested = (support.reserved < space.width).sum(axis=1)
    assert [int((tested == length).sum()) for length in range(2, 9)] == [24] + [64] * 6
    longer = Regions(support, 3).rows("more_parts", 10_000)
    assert len(longer) == 3 * 64
    more = ShortLists(longest=5, number=900, reserve=64).draw(space, 3)
    np.testing.assert_array_equal(more.reserved, support.reserved)


def test_other_spaces_and_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="not defined for a space of kind"):
        ShortLists().check(SubsetSpace(modules=4, max_active=2))
    with pytest.raises(BadInput, match="too many lists of 20 numbers"):
        ShortLists().check(ListSpace(longest=20))
    with pytest.raises(BadInput, match="longest=4 leaves"):
        ShortLists(longest=4).check(SMALL)
