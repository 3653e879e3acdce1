"""What a table identifies, against ranks by singular values, graphs by networkx, and the human-judged table."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.audit.crossed.design import design_of, pairs_of
from recombine.audit.crossed.identification import components, identify, rank

HUMAN = Path(__file__).parents[3] / "shared" / "data" / "text_to_image_human.csv"


def rank_by_svd(cells):
    matrix = design_of(cells, 0).matrix.toarray()
    return np.linalg.matrix_rank(np.column_stack([np.ones(len(matrix)), matrix]))


@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_rank_and_groups_of_any_table(make_cells, seed, places, sets):
    rng = np.random.default_rng(seed)
    levels, number = rng.integers(1, 7, size=places), int(rng.integers(1, 25))
    drawn = {tuple(int(rng.integers(top)) for top in levels) for _ in range(number)}
    combinations = sorted({tuple(sorted({f"{value:02}" for value in row})) for row in drawn}) if sets else sorted(drawn)
    cells = make_cells(combinations, np.linspace(0, 1, len(combinations)), sets=sets)
    assert rank(design_of(cells, 0)) == rank_by_svd(cells)
    graph = nx.Graph()
    for index, row in enumerate(combinations):
        graph.add_edges_from((("cell", index), value if sets else (slot, value)) for slot, value in enumerate(row))
    found = identify(cells, 0)
    assert found.connected == nx.number_connected_components(graph)
    assert found.residual == len(combinations) - rank_by_svd(cells)


def test_empty_roles_and_sets_of_one_size(make_cells):
    cells = make_cells([("a", "x"), ("a",), ("b", "x"), ("b",), ("b", "y")], [0, 0.5, 1, 1, 0.3], rows=4)
    found = identify(cells, 0)
    assert found.parameters == 1 + 1 + 2 and found.rank == 4 and found.residual == 1
    fixed = make_cells(
        [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "d")], [0, 1, 0, 1, 0, 1], sets=True
    )
    assert identify(fixed, 0).parameters == identify(fixed, 0).rank == 4
    mixed = make_cells([("a", "b"), ("a",), ("b", "c"), ("c",), ("a", "b", "c")], [0, 1, 0, 1, 0], sets=True)
    assert identify(mixed, 0).parameters == identify(mixed, 0).rank == 4


@pytest.mark.parametrize(
    "kind, columns, roles, numbers",
    [
        ("colors", ["object", "colour"], [], (19, 25)),
        ("counting", ["object", "count"], [], (17, 19)),
        ("two_object", ["object", "object_2"], ["object", "object_2"], (18, 29)),
        ("color_attr", ["object", "colour", "object_2", "colour_2"], ["object", "object_2"], (13, 38)),
        ("position", ["object", "object_2", "relation"], ["object", "object_2"], (20, 38)),
    ],
)
def test_the_human_judged_table_identifies_nothing(make_cells, kind, columns, roles, numbers):
    if not HUMAN.exists():
        pytest.skip("the table of judged images is not here")
    import pandas as pd

    judged = pd.read_csv(HUMAN)
    mean = judged[judged["kind"] == kind].groupby(columns)["success"].agg(["mean", "size"]).reset_index()
    rows = mean[columns].astype(str).to_numpy().tolist()
    cells = make_cells(
        rows, mean["mean"].tolist(), columns=columns, roles=roles, rows=mean["size"].tolist(), binary=True
    )
    found = identify(cells, 0)
    assert (found.combinations, found.parameters) == numbers
    assert found.residual == 0 and not found.identified
    assert f"{numbers[0]} combinations are too few for the {numbers[1]} parameters" in found.reasons[0]
    assert f"Collect {2 * numbers[1] - numbers[0]} more" in found.advice[0]


def test_what_is_advised_makes_it_answerable(make_cells):
    rows = [(f"o{index}", f"c{index}") for index in range(6)]  # A diagonal: every value once.
    found = identify(make_cells(rows, np.linspace(0.1, 0.9, 6), rows=3, binary=True), 0)
    assert not found.identified and found.connected == 6 and found.parameters == 11
    more = [tuple(label.split("=")[1] for label in one) for one in found.collect]
    assert len(set(more)) == len(more) == 16 and not set(more) & set(rows)
    after = identify(make_cells(rows + more, np.linspace(0.1, 0.9, 22), rows=3, binary=True), 0)
    assert after.identified and after.connected == 1 and after.residual == 11
    assert not after.advice


def test_no_value_is_advised_in_two_roles_of_one_combination(make_cells):
    rows = [("dog", "cat"), ("cat", "cow"), ("cow", "dog")]
    found = identify(make_cells(rows, [0, 1, 0.5], columns=["object", "object_2"], roles=["object", "object_2"]), 0)
    assert set(found.collect) == {
        ("object=cat", "object_2=dog"),
        ("object=cow", "object_2=cat"),
        ("object=dog", "object_2=cow"),
    }
    assert any("Add more values" in sentence for sentence in found.advice)


def test_real_scores_need_rows_that_repeat(make_cells):
    rows = [(a, b) for a in range(4) for b in range(4)]
    once = identify(make_cells(rows, np.arange(16.0)), 0)
    assert not once.identified and "only one row" in once.reasons[0]
    assert identify(make_cells(rows, np.arange(16.0), rows=2), 0).identified


def test_groups_that_never_meet_are_noted_even_if_each_is_identified(make_cells):
    rows = [(a + 4 * group, b + 4 * group) for group in range(2) for a in range(4) for b in range(4)]
    found = identify(make_cells(rows, np.linspace(0, 1, 32), rows=5, binary=True), 0)
    assert found.identified and found.connected == 2 and found.residual == 18
    assert any("2 groups that never meet" in sentence for sentence in found.advice)
    assert len({label[0][-1] for label in found.collect}) >= 1


@pytest.mark.parametrize("value", [0.0, 1.0, 0.25])
def test_equal_scores_and_too_little(make_cells, value):
    rows = [(a, b) for a in range(3) for b in range(3)]
    found = identify(make_cells(rows, [value] * 9, rows=4, binary=True), 0)
    assert not found.identified and "no difference to explain" in found.reasons[0]
    assert "only one combination" in identify(make_cells([("a", "b")], [0.5]), 0).reasons[0]
    assert "only one value" in identify(make_cells([("a",), ("b",)], [0.5, 0.2]), 0).reasons[0]
    nothing = dataclasses.replace(make_cells(rows, [np.nan] * 9), count=np.zeros(9, dtype=np.int64))
    assert "No combination has a score" in identify(nothing, 0).reasons[0]


def test_thousands_of_values(make_cells):
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(4000, size=(12_000, 2))})
    found = identify(make_cells(pairs, rng.random(len(pairs)), rows=2), 0)
    assert found.identified and found.rank < found.parameters
    triples = sorted({tuple(int(v) for v in row) for row in rng.integers((2000, 300, 100), size=(6000, 3))})
    wide = identify(make_cells(triples, rng.random(len(triples)), rows=2), 0)
    assert wide.rank <= wide.parameters and wide.residual == len(triples) - wide.rank
    assert time.perf_counter() - started < 20


def test_pairs_are_those_that_differ_from_their_parts(make_cells):
    cells = make_cells(
        [("a", "x", "1"), ("a", "x", "2"), ("a", "y", "1"), ("b", "x", "1"), ("c", "z", "1")], [0, 1, 0, 1, 0]
    )
    design = design_of(cells, 0)
    found = pairs_of(design)
    names = {tuple(design.labels[column] for column in pair) for pair in found.members.tolist()}
    assert names == {("f0=a", "f1=x"), ("f0=a", "f2=1"), ("f1=x", "f2=1")}
    assert found.inside.sum(1).tolist() == [2, 2, 2]
    assert components(design).max() == 0
