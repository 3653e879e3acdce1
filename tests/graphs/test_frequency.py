"""Counts of subgraphs, against counting the computations themselves, and comparison at matched depth."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.dynamic_programming import maximum_sum_graph
from recombine.graphs.frequency import count_subgraphs, matched_frequency
from recombine.graphs.keys import subgraph_keys
from recombine.graphs.multiplication import multiplication_graph


def terms(graph):
    """Each node's computation as nested tuples."""
    made = []
    for place, node in enumerate(graph.nodes):
        parents = [made[parent] for parent in graph.parents[place]]
        if node.operation is not None and node.operation.commutative:
            parents.sort(key=repr)
        made.append((node.operation_name, node.value, *parents))
    return made


def test_counts_are_those_of_the_computations():
    rng = np.random.default_rng(0)
    graphs = [maximum_sum_graph(rng.integers(-1, 2, rng.integers(1, 4)).tolist()) for _ in range(300)]
    graphs += [multiplication_graph(str(rng.integers(10, 30)), str(rng.integers(1, 30))) for _ in range(60)]
    wanted = Counter(term for graph in graphs for term in terms(graph))
    found = count_subgraphs((graph, None) for graph in graphs)
    assert len(found.keys) == len(wanted)
    for graph in graphs[::7]:
        assert found.of(subgraph_keys(graph)).tolist() == [wanted[term] for term in terms(graph)]


def test_instances_of_one_shape_count_as_one_by_one():
    rng = np.random.default_rng(1)
    lists = rng.integers(-5, 6, (40, 3))
    together = count_subgraphs([(maximum_sum_graph([0, 0, 0]), lists)])
    single = count_subgraphs((maximum_sum_graph(entries), None) for entries in lists.tolist())
    assert together.keys.tolist() == single.keys.tolist()
    assert together.counts.tolist() == single.counts.tolist()


def test_instances_count_as_often_as_they_are_shown():
    rng = np.random.default_rng(2)
    lists = [rng.integers(-1, 2, (12, length)) for length in (2, 3)]
    shapes = [(maximum_sum_graph([0] * some.shape[1]), some) for some in lists]
    times = [rng.integers(1, 5, 12) for _ in lists]
    weighted = count_subgraphs(shapes, [often.astype(float) for often in times])
    repeated = count_subgraphs(
        (graph, np.repeat(some, often, axis=0)) for (graph, some), often in zip(shapes, times, strict=True)
    )
    np.testing.assert_array_equal(weighted.keys, repeated.keys)
    np.testing.assert_allclose(weighted.counts, repeated.counts)


def test_the_end_of_a_longer_list_is_the_same_subgraph():
    short, long = maximum_sum_graph([4, -1]), maximum_sum_graph([2, 4, -1])
    known = count_subgraphs([(short, None)])
    counts = dict(zip((node.name for node in long.nodes), known.of(subgraph_keys(long)).tolist(), strict=True))
    assert counts["best[1]"] == counts["best[2]"] == 1
    assert counts["best[0]"] == counts["label[0]"] == 0


def test_nothing_occurs_in_empty_training():
    graph = maximum_sum_graph([1, 2])
    assert count_subgraphs([]).of(subgraph_keys(graph)).tolist() == [0] * 6


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_the_difference_equals_least_squares_with_an_intercept_per_stratum(seed):
    rng = np.random.default_rng(seed)
    counts, depth, kind = rng.integers(0, 50, 60), rng.integers(1, 6, 60), rng.integers(0, 2, 60)
    right = rng.random(60) < 0.6
    found = matched_frequency(counts, right, depth, kind)
    stratum = np.unique(np.stack([depth, kind]), axis=1, return_inverse=True)[1].ravel()
    design = np.concatenate([right[:, None], np.eye(stratum.max() + 1)[stratum]], axis=1)
    slope = np.linalg.lstsq(design, np.log2(1 + counts), rcond=None)[0][0]
    assert found.overall == pytest.approx(slope)
    assert (found.right > 0).all() and (found.wrong > 0).all()
    assert found.strata.shape == (len(found.difference), 2)


def test_depth_alone_makes_no_difference():
    """Deep nodes are rare and wrong, shallow ones frequent and right: within a depth frequency says nothing."""
    counts, right = np.array([100, 100, 100, 1, 1, 1]), np.array([True, True, False, True, False, False])
    assert matched_frequency(counts, right, np.array([1, 1, 1, 2, 2, 2])).overall == 0
    assert matched_frequency(counts, right, np.zeros(6, np.int64)).overall > 1


def test_strata_without_both_outcomes_are_left_out():
    found = matched_frequency(np.array([3, 5]), np.array([True, False]), np.array([1, 2]))
    assert len(found.strata) == 0 and np.isnan(found.overall)
    with pytest.raises(BadInput, match="between matched nodes"):
        matched_frequency(np.array([3, 5]), np.array([True, False]))


def test_every_short_list_has_different_keys():
    """Entries, a best sum for each end of a list, and labels that rest on the whole list: no two share a key."""
    every = [np.stack(np.meshgrid(*[np.arange(-5, 6)] * n), axis=-1).reshape(-1, n) for n in range(1, 5)]
    found = count_subgraphs((maximum_sum_graph([0] * lists.shape[1]), lists) for lists in every)
    ends = sum(len(lists) for lists in every)
    labels = sum(lists.size for lists in every)
    assert len(found.keys) == 11 + ends + labels
    assert found.counts.sum() == 3 * labels
