"""What is said of a support before training, against networkx and brute force."""

from __future__ import annotations

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports import certificate, listed
from recombine.supports.certificate import Certificate, certify
from recombine.supports.listed import Listed
from recombine.supports.missing_part import MissingPart
from recombine.supports.random import Random

SPACES: list[Space] = [
    SubsetSpace(modules=5, max_active=3),
    SubsetSpace(modules=6, max_active=2),
    SubsetSpace(modules=5, max_active=4, min_active=3),
    SubsetSpace(modules=4, max_active=1),
    ProductSpace(factors={"a": 2, "b": 3, "c": 2}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 4, "b": 1}),  # type: ignore[arg-type]
]


SIZES = [space.size for space in SPACES]

Case = tuple[int, list[int], list[float]]
"""A space, the rows of it that are trained on, and their weights (none: equal)."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any list of combinations of a small space, with or without weights."""
    # Plain numbers only: the checks of array shapes use `random`, which strategies must not.
    number = draw(st.integers(0, len(SPACES) - 1))
    rows = draw(st.lists(st.integers(0, SIZES[number] - 1), min_size=1, max_size=12, unique=True))
    weights = st.lists(st.floats(0.01, 10), min_size=len(rows), max_size=len(rows))
    return number, rows, draw(st.just([]) | weights)


def listed_support(case: Case) -> Listed:
    number, rows, weights = case
    space = SPACES[number]
    return Listed(space, space.enumerate()[rows], np.array(weights) if weights else None)


def vectors(support: Listed) -> np.ndarray:
    return np.array([[part in row for part in range(support.space.width)] for row in support.rows.tolist()], float)


def possible(space: Space, strength: int) -> set[tuple[int, ...]]:
    return {parts for row in space.enumerate() for parts in itertools.combinations(space.constituents(row), strength)}


def occurring(support: Listed, strength: int) -> set[tuple[int, ...]]:
    return {
        parts for row in support.rows for parts in itertools.combinations(support.space.constituents(row), strength)
    }


@settings(deadline=None, max_examples=100)
@given(cases())
def test_completeness_and_groups_against_networkx(case: Case):
    support = listed_support(case)
    graph = nx.Graph()
    graph.add_nodes_from(range(support.space.width))
    graph.add_edges_from(occurring(support, 2))
    found = support.certificate()
    seen = {part for (part,) in occurring(support, 1)}
    assert found.size == len(support.rows)
    assert found.space_size == support.space.size
    assert found.groups == nx.number_connected_components(graph)
    assert found.connected == nx.is_connected(graph)
    assert found.complete == (len(seen) == support.space.width)
    assert set(found.unseen) == set(range(support.space.width)) - seen


@settings(deadline=None, max_examples=100)
@given(cases())
def test_balance_against_brute_force(case: Case):
    number, chosen, _ = case
    support = listed_support((number, chosen, []))
    space, used = support.space, vectors(support).sum(axis=0)
    lists = np.split(used, space.offsets[1:]) if isinstance(space, ProductSpace) else [used]
    assert support.certificate((1,)).balanced == all(max(one) - min(one) <= 1 for one in lists)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_usage_and_spectrum_against_brute_force(case: Case):
    support = listed_support(case)
    hot = vectors(support)
    moment = sum(share * np.outer(vector, vector) for share, vector in zip(support.shares, hot, strict=True))
    found = support.certificate()
    np.testing.assert_allclose(support.second_moment(), moment, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.usage, support.shares @ hot, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.spectrum, np.linalg.eigvalsh(moment)[::-1], atol=1e-12)
    assert found.spectrum[0] >= found.spectrum[-1]


@settings(deadline=None, max_examples=100)
@given(cases())
def test_coverage_against_brute_force(case: Case):
    support = listed_support(case)
    found = support.certificate(strengths=(1, 2, 3, 4, 5))
    expected = [strength for strength in range(1, 6) if possible(support.space, strength)]
    assert [coverage.strength for coverage in found.coverage] == expected
    for coverage in found.coverage:
        share = len(occurring(support, coverage.strength)) / len(possible(support.space, coverage.strength))
        assert coverage.exact
        assert coverage.low == coverage.high == coverage.share == pytest.approx(share)


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(1, 4))
def test_covers_against_brute_force(case: Case, strength: int):
    support = listed_support(case)
    asked = support.space.list_interactions(strength)
    met = occurring(support, strength)
    assert support.covers(asked).tolist() == [tuple(parts) in met for parts in asked.tolist()]


def test_covers_over_many_blocks():
    # 700 rows of 1000 parts: several blocks of rows, and an interaction may be in any of them.
    space = SubsetSpace(modules=300_000, max_active=3)
    rows = np.sort(np.random.default_rng(0).choice(300_000, (700, 3), replace=False), axis=1)
    support = Listed(space, rows)
    np.testing.assert_array_equal(support.covers(rows), True)
    mixed = np.sort(np.stack([rows[:, 0], np.roll(rows[:, 1], 1)], axis=1), axis=1)
    np.testing.assert_array_equal(support.covers(mixed), False)


@pytest.mark.parametrize("part", [0, 3, 4])
@pytest.mark.parametrize(
    "space",
    [
        SubsetSpace(modules=6, max_active=3),
        SubsetSpace(modules=6, max_active=3, min_active=2),
        ProductSpace(factors={"a": 2, "b": 3, "c": 4}),  # type: ignore[arg-type]
    ],
)
def test_a_rule_agrees_with_its_own_list(space: Space, part: int):
    rule = MissingPart(part=part).draw(space, 0)
    rows = space.enumerate()
    spelt_out = Listed(space, rows[rule.contains(rows)])
    one, other = (dataclasses.asdict(support.certificate((1, 2, 3, 4))) for support in (rule, spelt_out))
    for name in ("usage", "spectrum"):
        np.testing.assert_allclose(one.pop(name), other.pop(name), atol=1e-12)
    assert one == other
    assert one["unseen"] == (part,)
    assert not one["connected"]


def test_all_combinations_cover_everything(paper: SubsetSpace):
    found = Listed(paper, paper.enumerate()).certificate()
    assert found.complete
    assert found.connected
    assert [coverage.share for coverage in found.coverage] == [1, 1, 1]
    np.testing.assert_allclose(found.usage, 121 / 696)
    np.testing.assert_allclose(found.spectrum, np.linalg.eigvalsh(paper.second_moment())[::-1], atol=1e-12)


def test_coverage_of(paper: SubsetSpace):
    found = Random(number=100).draw(paper, 0).certificate(strengths=(2,))
    assert found.coverage_of(2) is found.coverage[0]
    with pytest.raises(KeyError, match="3"):
        found.coverage_of(3)


def test_strengths_start_at_one(paper: SubsetSpace):
    with pytest.raises(BadInput, match="a strength is at least 1"):
        Random(number=100).draw(paper, 0).certificate(strengths=(0, 1))


def test_sampled_coverage_is_marked_and_its_interval_covers(paper: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    support = Random(number=150).draw(paper, 0)
    exact = support.certificate().coverage_of(3)
    assert exact.exact
    assert 0.1 < exact.share < 0.9
    monkeypatch.setattr(certificate, "EXACT_LIMIT", 0)
    monkeypatch.setattr(certificate, "SAMPLES", 400)
    sampled = [certify(support, (3,), seed).coverage_of(3) for seed in range(60)]
    assert not any(coverage.exact for coverage in sampled)
    assert all(coverage.low < coverage.share < coverage.high for coverage in sampled)
    # Intervals of 95 %: of 60, fewer than 51 cover with a chance of 1 in 1000.
    assert sum(coverage.low <= exact.share <= coverage.high for coverage in sampled) >= 51


def test_parts_and_pairs_are_never_sampled(huge: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(certificate, "EXACT_LIMIT", 0)
    found = Random(number=500).draw(huge, 0).certificate(strengths=(1, 2))
    assert all(coverage.exact for coverage in found.coverage)
    assert found.coverage_of(1).share == 1
    # 190 pairs a row, 499,500 in all: with repeats a little less than 500 * 190 / 499,500.
    assert 0.15 < found.coverage_of(2).share < 0.19


def test_short_lists_give_the_same_in_blocks(paper: SubsetSpace, monkeypatch: pytest.MonkeyPatch):
    support = Random(number=150).draw(paper, 0)
    whole: Certificate = support.certificate()
    monkeypatch.setattr(listed, "BLOCK", 256)
    assert support.certificate() == whole
