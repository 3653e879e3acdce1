"""The weakest slices, which combinations can exist, and how often advice is right."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.audit.advising.simulation import CAUSES, advice_of, outcome, simulated_table
from recombine.audit.audit import audit_cells, audit_table
from recombine.audit.possible import asked_pairs
from recombine.audit.slices import value_slices, weakest_slices
from recombine.errors import BadInput

ROWS = list(itertools.product(range(6), range(6), range(4)))


def test_the_weakest_slice_is_first_and_means_are_those_of_pandas(make_cells):
    rng = np.random.default_rng(0)
    scores = np.array([0.2 if (a, b) == (1, 2) else 0.5 if a == 3 else 0.9 for a, b, _ in ROWS]) + 0.03 * rng.normal(
        size=len(ROWS)
    )
    cells = make_cells(ROWS, scores, trained=rng.random(len(ROWS)) < 0.5)
    found = weakest_slices(cells, 0)
    assert {each.name for each in found[:2]} == {"f0=3", "f0=1 + f1=2"} and found[0].certain
    table = pd.DataFrame(ROWS, columns=["f0", "f1", "f2"]).assign(score=scores, trained=cells.trained)
    values = {each.name: each for each in value_slices(cells, 0)}
    for name in ("f0", "f1", "f2"):
        for value, group in table.groupby(name):
            each = values[f"{name}={value}"]
            assert each.mean == pytest.approx(group.score.mean()) and each.trained == group.trained.sum()
            rest = table[table[name] != value].score
            assert each.worse.estimate == pytest.approx(rest.mean() - group.score.mean())
    assert values["f0=3"].worse.low > 0


def test_no_slice_is_certain_by_chance(make_cells):
    certain = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        cells = make_cells(ROWS, rng.integers(2, size=len(ROWS)).astype(float), binary=True)
        certain += any(each.certain for each in weakest_slices(cells, 0))
    assert certain <= stats.binom.ppf(0.999, 40, 0.05)


def test_slices_of_a_table_that_cannot_be_separated():
    table = pd.DataFrame({"a": [*"pqrst"] * 2, "b": [*"uvwxyuvwxy"], "s": [1, 1, 0, 1, 1, 1, 1, 0, 1, 1]})
    (score,) = audit_table(table, factors=["a", "b"], scores="s").scores
    assert score.parts.identification.identified is False and score.parts.verdict.startswith("Unknown.")
    assert len(score.values) == 0 or score.lowest[0].name == "r + w"


def test_a_quick_audit_takes_seconds(make_cells):
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 5, (20_000, 15)), axis=0)
    cells = make_cells(rows[:50], binary=True, scores=rng.integers(2, size=50).astype(float))
    from recombine.audit.cells import Cells, Factor

    names = [f"f{index}" for index in range(15)]
    factors = tuple(Factor(name, tuple("01234"), (name,)) for name in names)
    ok = rng.integers(2, size=(len(rows), 1)).astype(float)
    count = np.ones(len(rows), dtype=np.int64)
    parts = rows + 5 * np.arange(15)
    cells = Cells(factors, parts, tuple(names), ("s",), (True,), count, ok, 0 * ok, rng.random(len(rows)) < 0.5)
    begin = time.process_time()
    audit = audit_cells(cells, quick=True)
    assert time.process_time() - begin < 8, "1.5 s on a quiet machine"
    assert len(audit.scores[0].values) == 75


def frame() -> pd.DataFrame:
    """Clothes of the head are never worn on the feet."""
    places = {"head": ["hat", "cap"], "feet": ["shoe", "sock"]}
    rows = [
        (place, item, colour, "train" if (i + j) % 3 else "test", 1 - (i + j) % 5 * 0.2)
        for place, items in places.items()
        for i, item in enumerate(items)
        for j, colour in enumerate(["red", "blue", "green", "grey", "pink", "white", "black", "teal"])
    ]
    return pd.DataFrame(rows * 2, columns=["place", "item", "colour", "split", "score"])


COLUMNS = {"factors": ["place", "item", "colour"], "scores": "score", "split": ("split", "train")}
SPACE = """factors:
  place: [head, feet]
  item: [hat, cap, shoe, sock]
  colour: [red, blue, green, grey, pink, white, black, teal, gold]
forbid:
  - place=head and item in {shoe, sock}
  - place=feet and item in {hat, cap}
"""


def test_pairs_that_never_occur_are_asked_about_and_not_proposed(make_cells):
    table = pd.concat([frame()] * 1)
    audit = audit_table(table, quick=True, **COLUMNS)
    rows = [tuple(row) for row in table[["place", "item", "colour"]].drop_duplicates().to_numpy()]
    many = [(*row, extra) for row in rows for extra in "pqr"]
    cells = make_cells(many, np.linspace(0, 1, len(many)), trained=np.arange(len(many)) % 3 > 0)
    asked = asked_pairs(cells)
    assert len(asked) == 4, "head with shoe and sock, feet with hat and cap"
    found = audit_cells(cells)
    advice = {each.rule: each for each in found.scores[0].advice}
    assert "Can these occur together?" in advice["possible-pairs"].sentence
    impossible = [("f0=head", "f1=shoe"), ("f0=head", "f1=sock"), ("f0=feet", "f1=hat"), ("f0=feet", "f1=cap")]
    for each in advice.values():
        assert not [pair for row in each.collect for pair in impossible if set(pair) <= set(row)]
    assert audit.support is not None


def test_a_stated_space_counts_possible_pairs_only(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    table = frame()
    audit = audit_table(table, space=tmp_path / "space.yaml", **COLUMNS)
    trained = table[table["split"] == "train"]
    met = sum(
        len(trained[[one, two]].drop_duplicates())
        for one, two in itertools.combinations(["place", "item", "colour"], 2)
    )
    possible = 4 + 2 * 9 + 4 * 9
    assert audit.support.possible_pairs == possible and audit.support.pair_coverage == pytest.approx(met / possible)
    assert audit.support.asked_count == 0
    for advice in audit.scores[0].advice:
        for row in advice.collect:
            assert ("item=hat" in row or "item=cap" in row) == ("place=head" in row)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("colour", "hue", "has the factors"),
        ("[hat, cap,", "[cap,", "has no value 'hat' of item"),
        ("factors:", "factor:", "no key"),
    ],
)
def test_a_space_of_another_table_is_refused(tmp_path, old, new, words):
    (tmp_path / "space.yaml").write_text(
        SPACE.replace(old, new, 1).replace("{hat, cap}", "{cap}") if "hat" in old else SPACE.replace(old, new, 1)
    )
    with pytest.raises(BadInput, match=words) as error:
        audit_table(frame(), space=tmp_path / "space.yaml", quick=True, **COLUMNS)
    assert error.value.fix
    subsets = tmp_path / "subsets.yaml"
    subsets.write_text("subsets: [5, 2]\n")
    with pytest.raises(BadInput, match="describes subsets"):
        audit_table(frame(), space=subsets, quick=True, **COLUMNS)


def test_a_table_that_breaks_the_constraint_gets_a_note(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE + "  - colour=red\n")
    audit = audit_table(frame(), space=tmp_path / "space.yaml", quick=True, **COLUMNS)
    assert any("forbids" in note and "red" in note for note in audit.notes)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_first_remedy_is_that_of_the_cause(cause):
    """A few tables of each cause; benchmarks/advice.py has 100, and docs/methods-audit.md its figures."""
    tables = [simulated_table(cause, seed) for seed in (1000, 1001)]
    outcomes = [outcome(cause, advice_of(table, draws=19)) for table in tables]
    assert "right" in outcomes or cause == "none"
    assert "wrong" not in outcomes
