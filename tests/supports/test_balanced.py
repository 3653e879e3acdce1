"""Lists with equal usage."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet, groups
from recombine.spaces.subset import SubsetSpace
from recombine.supports.balanced import Balanced, balanced
from recombine.supports.listed import kinds
from recombine.supports.random import Random


def usage(space: Space, rows: np.ndarray) -> list[int]:
    counts = Counter(part for row in rows for part in space.constituents(row))
    return [counts[part] for part in range(space.width)]


def spread(space: Space, rows: np.ndarray) -> int:
    """The largest difference in usage: between any modules, or between the values of a factor."""
    used = usage(space, rows)
    if not isinstance(space, ProductSpace):
        return max(used) - min(used)
    lists = [used[at : at + count] for at, count in zip(space.offsets, space.levels, strict=True)]
    return max(max(one) - min(one) for one in lists)


@pytest.mark.parametrize("number", [8, 9, 16, 50, 300, 600, 690])
@pytest.mark.parametrize("seed", [0, 1])
def test_usage_is_equal_at_every_length(paper: SubsetSpace, number: int, seed: int):
    rows = Balanced(number=number).draw(paper, seed).rows
    assert len(RowSet(rows)) == number
    assert paper.contains(rows).all()
    assert spread(paper, rows) <= 1
    assert groups(rows, 16) == 1


@pytest.mark.parametrize("number", [4, 7, 13, 20, 22])
def test_usage_is_equal_within_each_factor(toys: ProductSpace, number: int):
    for seed in range(5):
        rows = Balanced(number=number).draw(toys, seed).rows
        assert spread(toys, rows) <= 1
        assert groups(rows, toys.width) == 1


def test_swaps_keep_sizes_and_most_of_the_list(paper: SubsetSpace):
    rng = np.random.default_rng(0)
    rows = Random(number=200).draw(paper, 0).rows
    made = balanced(paper, rows, lambda rows: np.ones(len(rows), bool), rng)
    assert made is not None
    np.testing.assert_array_equal((made < 16).sum(axis=1), (rows < 16).sum(axis=1))
    # A swap makes one combination new, and no more are made than usage is off.
    off = np.abs(np.array(usage(paper, rows)) - np.mean(usage(paper, rows))).sum() / 2
    assert 0 < (~RowSet(rows).contains(made)).sum() <= off + 16


def test_the_reserve_is_that_of_random_and_never_trained(paper: SubsetSpace):
    for number in (20, 100, 550):
        support = Balanced(number=number, reserve=100).draw(paper, 3)
        np.testing.assert_array_equal(support.reserved, Random(number=20, reserve=100).draw(paper, 3).reserved)
        assert not support.contains(support.reserved).any()
        assert spread(paper, support.rows) <= 1


def test_share_and_number(paper: SubsetSpace):
    assert Balanced().length(paper) == Balanced(held_out=0.25).length(paper) == 522
    with pytest.raises(ValueError, match="either number or held_out"):
        Balanced(number=3, held_out=0.5)
    with pytest.raises(BadInput, match="train on at least 8 combinations"):
        Balanced(number=7).check(paper)


def test_a_reserve_can_prevent_balance(monkeypatch: pytest.MonkeyPatch):
    # What the reserve leaves of all combinations is trained on, and no swap is left.
    monkeypatch.setattr(kinds, "TRIES", 3)
    space = SubsetSpace(modules=6, max_active=2)
    reserved = Random(number=11, reserve=10).draw(space, 0).reserved
    assert spread(space, reserved) > 1
    with pytest.raises(
        BadInput, match="3 random supports of 11 combinations were drawn, and none was balanced and complete"
    ):
        Balanced(number=11, reserve=10).draw(space, 0)


def test_a_draw_is_deterministic(paper: SubsetSpace):
    first, again, other = (Balanced(number=50).draw(paper, seed).rows for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
