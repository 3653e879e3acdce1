"""What a table of facts covers by itself, from frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.audit.coverage_graph.audit import audit_coverage_graph, coverage_graph_tables
from recombine.audit.coverage_graph.facts import choose
from recombine.errors import BadInput

NAMES = ["a", "b", "c", "t"]


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (((), (), None), (("a", "b"), ("c",), "t")),
        (((("a", "b"),), (), None), (("a", "b"), ("c",), "t")),
        (((("b",),), (), "a"), (("b",), ("c", "t"), "a")),
        (((), ("a",), None), (("b", "c"), ("a",), "t")),
        (((("c", "a"),), ("b",), None), (("c", "a"), ("b",), "t")),
        (((("a",),), ("t",), "b"), (("a",), ("t",), "b")),
    ],
)
def test_what_is_not_named_is_chosen_by_position(given, chosen):
    found = choose(NAMES, *given, "facts.csv")
    assert (
        found.fragments[0],
        tuple(name for name in found.columns if name not in found.fragments[0]),
        found.outcome,
    ) == chosen
    assert [tuple(found.columns[place] for place in one) for one in found.positions] == [chosen[0]]


@pytest.mark.parametrize("given", [((("a",),), ("b",), None), ((("a", "b", "c"),), (), "t"), ((("x",),), (), None)])
def test_what_cannot_be_chosen(given):
    with pytest.raises(BadInput) as error:
        choose(NAMES, *given, "facts.csv")
    assert "a, b, c, t" in str(error.value)


def facts() -> pd.DataFrame:
    """p and q agree twice, and r with nobody; s is only ever asked one thing."""
    rows = [("p", 1, "x"), ("p", 2, "y"), ("p", 3, "z"), ("q", 1, "x"), ("q", 2, "y")]
    return pd.DataFrame([*rows, ("r", 1, "w"), ("s", 4, "v")], columns=["who", "asked", "said"])


def test_a_frame():
    found, looked = audit_coverage_graph(facts(), test=None)
    assert found.fragments == (("who",),) and found.outcome == "said" and found.sizes == ((4, 4),)
    assert {one.cutoff: one.combinations for one in found.cutoffs} == {0: 8, 2: 1}
    assert found.because == {
        "no other fragment is known to be equivalent to its own": 6,
        "no equivalent fragment was seen in its context": 2,
    }
    assert [one.fragment for one in found.thinnest[:2]] == [("r",), ("s",)]
    chain = found.chain
    assert chain is not None and chain.combination == ("q", "3") and chain.outcome == "z"
    assert [(one.before, one.after, one.shared) for one in chain.swaps] == [(("q",), ("p",), 2)]
    # (p, 4) and (q, 4) need one example; said "v" it would make s one of them, with all their answers.
    best = found.collect[0]
    assert best.combination in (("p", "4"), ("q", "4")) and best.sure == 2 and best.outcome == "v"
    assert best.at_best == 2 + 3
    tables = coverage_graph_tables(found, looked)
    assert tables["combinations"]["cutoff"].tolist() == [0] * 8 + [2]


def test_repeats_count_once():
    found, _ = audit_coverage_graph(pd.concat([facts(), facts()[:3]]))
    assert found.rows == 10 and found.examples == 7 and "3 rows repeat" in found.notes[0]


def test_nothing_is_held_out():
    full = pd.DataFrame([(a, c, a * c) for a in range(3) for c in range(3)], columns=["a", "c", "t"])
    found, looked = audit_coverage_graph(full)
    assert found.looked_at == 0 and found.collect == () and found.chain is None
    tables = coverage_graph_tables(found, looked)
    assert {name: len(table) for name, table in tables.items()} == {"combinations": 0, "fragments": 3, "collect": 0}


def test_a_finding_shows_itself_on_a_screen_and_in_a_notebook():
    table = facts().replace({"who": {"p": "<i>p\x1b[0m"}})
    finding, _ = audit_coverage_graph(table)
    lines = repr(finding).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    assert lines[1].startswith("11 % of 9 untrained combinations follow from the facts (k = 1); 8 do not.")
    page = finding._repr_html_()
    assert "<i>" not in page and "&lt;i&gt;p" in page and "\x1b" not in page + repr(finding)


def test_implied_outcomes_are_printed_and_graded():
    """a and b agree on 1 and 2, b and c on 2 and 3: chains through b lead to all of them."""
    known = {"a": {1: "x", 2: "y", 4: "u"}, "b": {1: "x", 2: "y", 3: "z"}, "c": {2: "y", 3: "z", 5: "v"}, "d": {6: "w"}}
    rows = [(who, asked, said) for who, answers in known.items() for asked, said in answers.items()]
    table = pd.DataFrame(rows, columns=["who", "asked", "said"])
    test = pd.DataFrame(
        [("a", 3, "z"), ("b", 4, "other"), ("c", 4, "u"), ("d", 1, "x"), ("a", 1, "x")], columns=table.columns
    )
    found, looked = audit_coverage_graph(table, test=test)
    implied = {each.combination: (each.outcome, each.true, each.cutoff) for each in found.implied}
    assert implied == {("a", "3"): ("z", "z", 2), ("b", "4"): ("u", "other", 2), ("c", "4"): ("u", "u", 2)}
    assert [(one.cutoff, one.combinations, one.right) for one in found.cutoffs] == [(0, 1, None), (2, 3, 2)]
    frame = coverage_graph_tables(found, looked)["combinations"]
    assert frame["implied said"].notna().sum() == 3 and set(frame["said"]) == {"z", "other", "u", "x"}
    plain, _ = audit_coverage_graph(table)
    assert all(one.right is None for one in plain.cutoffs) and ("a", "3") in {one.combination for one in plain.implied}


def test_chains_that_contradict_each_other_imply_nothing():
    """p equals q and q equals r, but p and r differ on 9: what q says of 9 does not follow."""
    rows = [("p", 1, "x"), ("q", 1, "x"), ("q", 2, "y"), ("r", 2, "y"), ("p", 9, "s"), ("r", 9, "t")]
    found, _ = audit_coverage_graph(pd.DataFrame(rows, columns=["who", "asked", "said"]))
    assert {one.combination: one.outcome for one in found.implied}["q", "9"] is None


@pytest.mark.parametrize("fragments", [[["a"]], [["a"], ["a", "b"]]])
def test_implied_outcomes_are_those_of_the_explanations(fragments):
    rng = np.random.default_rng(0)
    rows = {tuple(row): int(row[0] % 2 + 2 * row[1] % 3 + row[2]) for row in rng.integers(0, 4, (40, 3)).tolist()}
    table = pd.DataFrame([(*row, said) for row, said in rows.items()], columns=["a", "b", "c", "said"])
    found, looked = audit_coverage_graph(table, fragments=fragments, context=() if len(fragments) > 1 else ["b", "c"])
    assert found.implied
    for each in found.implied[:50]:
        tokens = [looked.facts.values[column].index(name) for column, name in enumerate(each.combination)]
        explained = looked.graph.explain(tokens)
        assert explained.cutoff == each.cutoff and explained.outcome is not None
        assert each.outcome in (None, looked.facts.outcome_values[explained.outcome])
