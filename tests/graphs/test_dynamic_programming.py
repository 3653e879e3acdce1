"""The largest sum of non-adjacent entries, against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.dynamic_programming import ENTRIES, LEFT_OUT, TAKEN, maximum_sum_graph, maximum_sum_scratchpad
from recombine.graphs.graph import evaluate

LISTS = st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=8)


def tried(entries):
    """The best sum, and of the choices that have it the labels that come first."""
    best = []
    for labels in itertools.product((TAKEN, LEFT_OUT), repeat=len(entries)):
        if (TAKEN, TAKEN) not in itertools.pairwise(labels):
            total = sum(entry for entry, label in zip(entries, labels, strict=True) if label == TAKEN)
            best.append((-total, labels))
    least = min(best)
    return -least[0], list(least[1])


def solved(entries):
    graph = maximum_sum_graph(entries)
    values = evaluate(graph)
    labels = [int(values[graph.index[f"label[{at}]"]]) for at in range(len(entries))]
    return int(values[graph.index["best[0]"]]), labels


@settings(deadline=None, max_examples=60)
@given(entries=LISTS)
def test_values_and_labels_equal_brute_force(entries):
    assert solved(entries) == tried(entries)


def test_every_list_of_three():
    lists = np.array(list(itertools.product(ENTRIES, repeat=3)))
    graph = maximum_sum_graph([0, 0, 0])
    values = evaluate(graph, lists)
    labels = values[:, [graph.index[f"label[{at}]"] for at in range(3)]].tolist()
    sums = values[:, graph.index["best[0]"]].tolist()
    assert list(zip(sums, labels, strict=True)) == [tried(entries) for entries in lists.tolist()]


def test_ties_take_the_earlier_entry():
    assert solved([0, 0, 0]) == (0, [1, 2, 1])
    assert solved([3, 3]) == (3, [1, 2])
    assert solved([-1, -5]) == (0, [2, 2])


@settings(deadline=None, max_examples=60)
@given(entries=LISTS)
def test_the_shape(entries):
    graph = maximum_sum_graph(entries)
    length = len(entries)
    assert graph.input_values.tolist() == entries
    assert (len(graph), len(graph.steps), graph.depth) == (3 * length, 2 * length, 2 * length)
    wanted = {f"best[{at}]": length - at for at in range(length)}
    wanted |= {f"label[{at}]": length + at + 1 for at in range(length)}
    assert {graph.nodes[step].name: int(graph.depths[step]) for step in graph.steps} == wanted


@settings(deadline=None, max_examples=60)
@given(entries=LISTS)
def test_one_token_per_step(entries):
    graph = maximum_sum_graph(entries)
    pad = maximum_sum_scratchpad(graph)
    total, labels = tried(entries)
    assert pad.length == 2 * len(entries)
    assert pad.write()[len(entries) - 1 :] == (str(total), *map(str, labels))
    assert pad.read(pad.write()).tolist() == evaluate(graph).tolist()


def test_an_empty_list_is_refused():
    with pytest.raises(BadInput, match="list is empty"):
        maximum_sum_graph([])


def test_compiled_code_can_make_the_same_steps():
    import jax
    import jax.numpy as jnp

    graph = maximum_sum_graph([0] * 5)
    lists = np.random.default_rng(0).integers(-5, 6, (50, 5))

    def made(entries):
        known = list(entries)
        for step in graph.steps:
            known.append(graph.nodes[step].operation.apply(*(known[parent] for parent in graph.parents[step])))
        return jnp.stack(known)

    assert jax.jit(jax.vmap(made))(jnp.asarray(lists)).tolist() == evaluate(graph, lists).tolist()
