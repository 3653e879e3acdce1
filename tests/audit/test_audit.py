"""The whole audit, on tables in which the truth is known."""

from __future__ import annotations

import inspect
import itertools
import json

import numpy as np
import pandas as pd
import pytest

import recombine as rc
from recombine.audit.audit import audit_cells, audit_table, read
from recombine.audit.tables import audit_tables
from recombine.errors import BadInput

COLOURS, SHAPES = (["red", "blue", "green", "pink", "grey", "teal"], ["cube", "ball", "cone", "ring", "disc", "star"])
HOLE = {(colour, shape) for colour in COLOURS[:2] for shape in SHAPES[:2]}


def frame(seed=0, rows=6):
    """Colours x shapes x sizes; the pairs of the hole were never trained on, and fail."""
    rng = np.random.default_rng(seed)
    made = []
    for a, b, c in itertools.product(range(6), range(6), range(3)):
        colour, shape, size = COLOURS[a], SHAPES[b], "sml"[c]
        hole = (colour, shape) in HOLE
        seen = not hole and (a + b + c) % 3 != 0
        success = rng.random(rows) < (0.3 if hole else 0.9)
        made += [
            {"colour": colour, "shape": shape, "size": size, "split": "train" if seen else "test", "success": int(one)}
            for one in success
        ]
    return pd.DataFrame(made)


ASKED = {"factors": ["colour", "shape", "size"], "scores": ["success"]}


def test_a_known_hole_is_found():
    said: list[str] = []
    found = audit_table(frame(), **ASKED, split=("split", "train"), progress=lambda what, done=None: said.append(what))
    assert said[0] == "reading the table" and any("parts or combination" in one for one in said)
    assert (found.combinations, found.space_size, found.rows) == (108, 108, 648)
    assert found.factors == {"colour": 6, "shape": 6, "size": 3}
    assert found.support.unmet_count == 4
    pairs = {tuple(label.split("=")[1] for label in pair) for pair in found.support.unmet}
    assert pairs == HOLE
    score = found.scores[0]
    rules = {one.rule: one for one in score.advice}
    assert "collect-pairs" in rules and "memorises" not in rules
    collected = {tuple(label.split("=")[1] for label in one[:2]) for one in rules["collect-pairs"].collect}
    assert collected == HOLE
    assert [one.name for one in score.gap.strata] == ["trained", "all pairs met", "some pairs unmet"]
    assert {one.name.split(" + ")[0] for one in score.lowest[:4]} <= {"red", "blue"}
    json.dumps(found.record())


def test_the_same_bits_again():
    first, second = (audit_table(frame(), **ASKED, split=("split", "train")).record() for _ in range(2))
    assert first == second


def test_tables_hold_every_combination():
    cells, _ = read(frame(), **ASKED, split=("split", "train"))
    tables = audit_tables(audit_cells(cells), cells)
    assert {"combinations", "parts", "unmet_pairs", "strata", "advice"} <= set(tables)
    combinations = tables["combinations"].set_index(["colour", "shape", "size"])
    expected = frame().groupby(["colour", "shape", "size"])["success"].mean()
    pd.testing.assert_series_equal(combinations["mean success"].sort_index(), expected.sort_index(), check_names=False)
    assert len(tables["unmet_pairs"]) == 4 and len(tables["parts"]) == 15
    assert set(tables["combinations"]["stratum"]) == {"trained", "all pairs met", "some pairs unmet"}


def test_several_scores_without_training_information():
    table = frame().assign(other=lambda one: 10 * one["success"] + 1)
    found = audit_table(table, factors=ASKED["factors"], scores=["success", "other"])
    assert [one.score for one in found.scores] == ["success", "other"] and found.support is None
    assert all("no-training-information" in {one.rule for one in score.advice} for score in found.scores)
    cells, _ = read(table, factors=ASKED["factors"], scores=["success", "other"])
    assert "unmet_pairs" not in audit_tables(found, cells)


def test_activations_go_along():
    table = frame(rows=2)
    codes = table["colour"].astype("category").cat.codes.to_numpy()
    rng = np.random.default_rng(0)
    layers = {
        "first": np.eye(6)[codes] + rng.normal(0, 0.1, (len(table), 6)),
        "noise": rng.normal(size=(len(table), 6)),
    }
    found = audit_table(table, **ASKED, split=("split", "train"), activations=layers)
    inside = found.scores[0].decodability
    assert inside is not None and {site.layer for site in inside.sites} == {"first", "noise"}
    assert inside.chosen["colour"] == "first"


def test_one_combination_is_nothing_to_compare():
    with pytest.raises(BadInput, match="one combination"):
        audit_table(frame().head(6), **ASKED)


def test_an_audit_shows_itself_on_a_screen_and_in_a_notebook():
    nasty = "<b>&\x1b[31m\u202e" + "long " * 40
    table = frame(rows=1).rename(columns={"size": nasty}).assign(other=1.0, third=0.0)
    audit = audit_table(table, factors=["colour", "shape", nasty], scores=["success", "other", "third"])
    lines = repr(audit).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    assert lines[0].startswith("Audit of DataFrame: 108 rows, 108 of 108 combinations")
    assert "no-training-information: State which combinations" in repr(audit)
    page = audit._repr_html_()
    for text in (repr(audit), page):
        assert "\x1b" not in text and "\u202e" not in text
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    assert page.count("<li>") >= 3 and page.startswith("<div") and page.endswith("</div>")


def test_one_score_may_be_named_alone():
    alone, listed = (audit_table(frame(), factors=ASKED["factors"], scores=s) for s in ("success", ["success"]))
    assert alone.record() == listed.record()


def test_audits_of_tables_and_models_share_their_arguments():
    """No argument hides behind **kwargs, so that completion shows all; what both take has one name."""
    table, model, ask = (
        inspect.signature(function).parameters for function in (audit_table, rc.audit_model, rc.ask_model)
    )
    assert {"scores", "train", "seed", "progress"} <= set(table) & set(model)
    assert set(model) - set(ask) == {"progress"} and not set(ask) - set(model)
    kinds = {parameter.kind for parameters in (table, model, ask) for parameter in parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
