"""Pairs of neighbours on a ring, against brute force."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet
from recombine.spaces.subset import SubsetSpace
from recombine.supports.rings import Rings


@settings(deadline=None, max_examples=60)
@given(st.integers(4, 12), st.integers(1, 4), st.integers(1, 2), st.integers(0, 99))
def test_pairs_of_modules(modules: int, reach: int, least: int, seed: int):
    space = SubsetSpace(modules=modules, max_active=2, min_active=least)
    kind = Rings(reach=reach)
    if modules - 1 - 2 * reach <= (modules == 3):
        with pytest.raises(BadInput, match="choose a smaller reach"):
            kind.check(space)
        return
    rows = kind.draw(space, seed).rows
    pairs = rows[rows[:, 1] < modules]
    assert len(rows) == kind.length(space) == modules * reach + (modules if least == 1 else 0)
    # The graph of trained pairs is the square (cube, ...) of a cycle, whatever its nodes are called.
    assert nx.is_isomorphic(nx.Graph(pairs.tolist()), nx.circulant_graph(modules, list(range(1, reach + 1))))


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 6), st.integers(0, 99))
def test_pairs_of_values(first: int, second: int, reach: int, seed: int):
    space = ProductSpace(factors={"a": first, "b": second})  # type: ignore[arg-type]
    kind = Rings(reach=reach)
    try:
        kind.check(space)
    except BadInput:
        assert kind.length(space) > space.size - 2
        return
    rows = kind.draw(space, seed).rows
    graph = nx.Graph(rows.tolist())
    assert len(RowSet(rows)) == len(rows) == kind.length(space)
    assert len(graph) == space.width and nx.is_connected(graph)
    if first >= second:
        assert {graph.degree(value) for value in range(first)} == {reach + 1}
    for values in (range(first), range(first, first + second)):
        degrees = [graph.degree(value) for value in values]
        assert max(degrees) - min(degrees) <= 1


def test_equal_factors_make_one_ring():
    space = ProductSpace(factors={"a": 5, "b": 5})  # type: ignore[arg-type]
    graph = nx.Graph(Rings().draw(space, 0).rows.tolist())
    assert nx.is_isomorphic(graph, nx.cycle_graph(10))


def test_the_seed_picks_the_order():
    space = SubsetSpace(modules=12, max_active=2)
    first, again, other = (Rings().draw(space, seed).rows for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not RowSet(first).contains(other).all()


def test_the_reserve():
    space = SubsetSpace(modules=12, max_active=2)
    support = Rings(reserve=20).draw(space, 0)
    assert len(RowSet(support.reserved)) == 20
    assert not support.contains(support.reserved).any()


def test_other_than_pairs_are_refused(paper: SubsetSpace, toys: ProductSpace):
    with pytest.raises(BadInput, match="up to 3 modules"):
        Rings().check(paper)
    with pytest.raises(BadInput, match="up to 3 factors"):
        Rings().check(toys)
