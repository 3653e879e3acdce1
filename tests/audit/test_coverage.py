"""What training covers of a table, against brute force and against the certificate of a support."""

from __future__ import annotations

import itertools
import time

import networkx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.audit.coverage import SHOWN, pairs_in_all, support_finding, training_groups, unmet_pairs
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.certificate import certify
from recombine.supports.listed import Listed


def interactions(cells, chosen, strength):
    """All sets of so many (place, value) in the chosen combinations, one by one."""
    values = [value for factor in cells.factors for value in factor.values]
    found = set()
    for cell in np.nonzero(chosen)[0]:
        held = [(p, values[part]) for p, part in zip(cells.slots, cells.constituents[cell], strict=True) if part >= 0]
        found |= {frozenset(one) for one in itertools.combinations(held, strength)}
    return found


def check(cells):
    """Everything that a finding counts, by brute force."""
    found = support_finding(cells)
    trained, evaluated = cells.trained, cells.evaluated
    for strength in (1, 2, 3):
        target, source = (interactions(cells, chosen, strength) for chosen in (evaluated, trained))
        if target:
            assert found.difference[strength] == pytest.approx(len(target - source) / len(target))
        else:
            assert strength not in found.difference
    lacking = interactions(cells, evaluated, 2) - interactions(cells, trained, 2)
    assert found.unmet_count == len(lacking)
    named = {frozenset(f"{place}={value}" for place, value in pair) for pair in lacking}
    assert {frozenset(pair) for pair in found.unmet} <= named
    assert len(found.unmet) == min(SHOWN, len(lacking))
    parts = [{int(part) for part in cells.constituents[chosen].ravel() if part >= 0} for chosen in (evaluated, trained)]
    assert set(found.unseen) == {cells.labels[part] for part in parts[0] - parts[1]}
    graph = networkx.Graph()
    for row in cells.constituents[trained]:
        held = [int(part) for part in row if part >= 0]
        graph.add_nodes_from(held)
        graph.add_edges_from(itertools.combinations(held, 2))
    groups = {frozenset(cells.labels[part] for part in one) for one in networkx.connected_components(graph)}
    assert {frozenset(group) for group in found.groups} == groups
    assert [len(group) for group in found.groups] == sorted(map(len, groups), reverse=True)
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_roles_and_sets_against_brute_force(make_cells, data):
    kind = data.draw(st.sampled_from(["values", "roles", "sets"]))
    number = st.integers(0, 3)
    one = st.frozensets(number, min_size=1, max_size=3).map(sorted).map(tuple)
    one = one if kind == "sets" else st.tuples(number, number, number)
    rows = data.draw(st.lists(one, min_size=1, max_size=12, unique=True))
    trained = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    scores = [data.draw(st.floats(0, 1)) if not seen or data.draw(st.booleans()) else np.nan for seen in trained]
    more = {"sets": True} if kind == "sets" else {"roles": ("f1", "f2")} if kind == "roles" else {}
    check(make_cells(rows, scores, trained=trained, **more))


def test_agrees_with_the_certificate_of_a_product():
    from recombine.audit.cells import Cells, Factor

    space = ProductSpace(factors={"colour": 5, "shape": 4, "size": 3})
    everything = space.enumerate()
    rng = np.random.default_rng(0)
    for number in (4, 12, 40):
        chosen = np.zeros(len(everything), dtype=bool)
        chosen[rng.choice(len(everything), number, replace=False)] = True
        support = certify(Listed(space, everything[chosen]))
        cells = Cells(
            tuple(Factor(name, values, (name,)) for name, values in space.factors),
            everything.astype(np.int64),
            ("colour", "shape", "size"),
            ("score",),
            (False,),
            np.ones(len(everything), dtype=np.int64),
            rng.random((len(everything), 1)),
            np.zeros((len(everything), 1)),
            chosen,
        )
        found = support_finding(cells)
        assert found is not None
        assert found.size == support.size
        assert {cells.labels.index(label) for label in found.unseen} == set(support.unseen)
        assert found.pair_coverage == pytest.approx(support.coverage_of(2).share)
        # All of the space is evaluated, so what training lacks is what the certificate says is not covered.
        for strength in (1, 2, 3):
            assert found.difference[strength] == pytest.approx(1 - support.coverage_of(strength).share)
        assert len(found.groups) == support.groups - len(support.unseen)


def test_agrees_with_the_certificate_of_subsets(make_cells):
    space = SubsetSpace(modules=6, max_active=3)
    everything = space.enumerate()
    chosen = np.random.default_rng(1).random(len(everything)) < 0.2
    support = certify(Listed(space, everything[chosen]))
    cells = make_cells([space.constituents(row) for row in everything], sets=True, trained=chosen)
    found = support_finding(cells)
    assert found.pair_coverage == pytest.approx(support.coverage_of(2).share)
    for strength in (1, 2, 3):
        assert found.difference[strength] == pytest.approx(1 - support.coverage_of(strength).share)


def test_a_known_hole_is_named_worst_first(make_cells):
    rows = list(itertools.product(["red", "blue", "green"], ["cube", "ball", "cone"]))
    hole = {("red", "cube"), ("blue", "ball")}
    scores = [0.1 if row == ("blue", "ball") else 0.4 if row == ("red", "cube") else 0.9 for row in rows]
    cells = make_cells(rows, scores, columns=["colour", "shape"], trained=[row not in hole for row in rows])
    found = support_finding(cells)
    assert found.unmet == (("colour=blue", "shape=ball"), ("colour=red", "shape=cube"))
    assert found.pair_coverage == pytest.approx(7 / 9)
    text = " ".join(found.sentences)
    assert "2 evaluated pairs never met" in text and "colour=blue with shape=ball (0.10)" in text
    assert "Every evaluated value was trained on." in text
    unmet = unmet_pairs(cells)
    np.testing.assert_allclose(unmet.score, [0.1, 0.4])
    np.testing.assert_array_equal(unmet.combinations, [1, 1])


def test_a_value_in_a_new_role_is_seen_but_its_pairs_are_not(make_cells):
    cells = make_cells(
        [("dog", "cat"), ("cat", "cow"), ("cow", "dog"), ("dog", "cow")],
        [0.9, 0.9, 0.2, 0.3],
        columns=["object", "object_2"],
        roles=("object", "object_2"),
        trained=[True, True, False, False],
    )
    found = check(cells)
    assert found.unseen == ()
    # cow stands first and dog second for the first time.
    assert found.difference[1] == pytest.approx(2 / 6)
    assert found.unmet[0] == ("object=cow", "object_2=dog")
    assert any("never in this role" in sentence for sentence in found.sentences)
    # 3 values in 2 roles; none ever meets itself.
    assert pairs_in_all(cells) == 6 and found.pair_coverage == pytest.approx(2 / 6)


def test_groups_that_never_meet(make_cells):
    rows = [("a", "x"), ("b", "x"), ("c", "y"), ("a", "y")]
    cells = make_cells(rows, [1, 1, 1, 0], trained=[True, True, True, False])
    assert [len(group) for group in training_groups(cells)] == [3, 2]
    assert any("2 groups that never meet" in sentence for sentence in support_finding(cells).sentences)


def test_without_training_combinations_there_is_no_gap(make_cells):
    assert support_finding(make_cells([("a", "x"), ("b", "x")])) is None


def test_nothing_trained_and_nothing_held_out(make_cells):
    rows = [("a", "x"), ("b", "y")]
    none = support_finding(make_cells(rows, trained=[False, False]))
    assert none.size == 0 and none.groups == () and none.pair_coverage == 0 and none.difference[1] == 1
    everything = support_finding(make_cells(rows, trained=[True, True]))
    assert everything.difference == {1: 0, 2: 0} and everything.unmet == ()


def test_thousands_of_values_take_seconds():
    from recombine.audit.cells import Cells, Factor

    rng = np.random.default_rng(0)
    levels, number = 5000, 60_000
    parts = np.unique(rng.integers(levels, size=(number, 3)) + np.arange(3) * levels, axis=0)
    names = tuple(str(value) for value in range(levels))
    cells = Cells(
        tuple(Factor(name, names, (name,)) for name in "abc"),
        parts,
        ("a", "b", "c"),
        ("score",),
        (False,),
        np.ones(len(parts), dtype=np.int64),
        rng.random((len(parts), 1)),
        np.zeros((len(parts), 1)),
        rng.random(len(parts)) < 0.5,
    )
    begin = time.monotonic()
    found = support_finding(cells)
    assert time.monotonic() - begin < 10
    assert found is not None and found.pair_coverage < 0.01 and found.difference[3] > 0.4
