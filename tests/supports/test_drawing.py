"""Distinct combinations in random order: distinct, uniform, nested, and found without listing the space."""

from __future__ import annotations

import itertools
from collections import Counter

import jax
import numpy as np
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.spaces.subset import SubsetSpace
from recombine.supports.listed import drawing
from recombine.supports.listed.drawing import distinct_rows, require, sample_rows, seed_key

LARGE = SubsetSpace(modules=100, max_active=4)


def test_a_seed_keeps_all_its_bits():
    seeds = [0, 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    assert len({tuple(jax.random.key_data(seed_key(seed)).tolist()) for seed in seeds}) == len(seeds)


def test_a_stream_does_not_depend_on_how_it_is_cut():
    key = jax.random.key(0)
    whole = sample_rows(LARGE, key, 64)
    np.testing.assert_array_equal(whole[32:], sample_rows(LARGE, key, 32, start=32))


@pytest.mark.parametrize("space", [SubsetSpace(modules=16, max_active=3), LARGE])
def test_a_longer_list_begins_with_the_shorter(space: SubsetSpace):
    lists = [distinct_rows(space, jax.random.key(3), number) for number in (0, 1, 100, 600)]
    for rows, number in zip(lists, (0, 1, 100, 600), strict=True):
        assert rows.shape == (number, space.slots)
        assert len({tuple(row) for row in rows.tolist()}) == number
        assert space.contains(rows).all()
        np.testing.assert_array_equal(rows, lists[-1][:number])


def test_a_longer_list_begins_with_the_shorter_over_many_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawing, "SMALL", 0)
    monkeypatch.setattr(drawing, "BATCHES", (8, 32))
    space = SubsetSpace(modules=16, max_active=3)
    whole = distinct_rows(space, jax.random.key(1), 690)
    assert len({tuple(row) for row in whole.tolist()}) == 690
    for number in (1, 7, 8, 9, 40, 300, 689):
        np.testing.assert_array_equal(distinct_rows(space, jax.random.key(1), number), whole[:number])


@pytest.mark.parametrize("listing", [True, False])
def test_every_ordered_choice_is_equally_likely(listing: bool, monkeypatch: pytest.MonkeyPatch):
    space = SubsetSpace(modules=4, max_active=1)
    if not listing:
        monkeypatch.setattr(drawing, "SMALL", 0)
    counts: Counter[tuple[int, ...]] = Counter(
        tuple(distinct_rows(space, jax.random.key(seed), 2).ravel().tolist()) for seed in range(600)
    )
    pairs = list(itertools.permutations(range(4), 2))
    assert set(counts) <= set(pairs)
    assert stats.chisquare([counts[pair] for pair in pairs]).pvalue > 1e-3


@pytest.mark.parametrize("listing", [True, False])
def test_only_what_is_kept_comes_back(listing: bool, monkeypatch: pytest.MonkeyPatch):
    space = SubsetSpace(modules=16, max_active=3)
    if not listing:
        monkeypatch.setattr(drawing, "SMALL", 0)
        monkeypatch.setattr(drawing, "PATIENCE", 20_000)
    rows = distinct_rows(space, jax.random.key(0), 10_000, lambda rows: (rows == 7).any(axis=1))
    # All 121 combinations with module 7, and then it gives up.
    assert len({tuple(row) for row in rows.tolist()}) == len(rows) == 121
    assert (rows == 7).any(axis=1).all()


def test_a_search_for_nothing_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawing, "PATIENCE", 20_000)
    rows = distinct_rows(LARGE, jax.random.key(0), 5, lambda rows: np.zeros(len(rows), bool))
    assert rows.shape == (0, 4)


def test_require():
    rows = np.zeros((3, 2), np.int32)
    assert require(rows, 3, "rows") is rows
    with pytest.raises(BadInput, match="Only 3 rows were found, but 4 were requested"):
        require(rows, 4, "rows")
