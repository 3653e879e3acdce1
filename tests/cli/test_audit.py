"""`recombine audit`: a table in, a screen, a document, tables and a page out."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data" / "text_to_image_human.csv"
LINES = 50
"""The most lines of a table that cannot be separated; with training combinations there are more sections."""


@pytest.fixture
def table(tmp_path):
    """A table with a hole in its training data: two colours were never seen with two shapes."""
    rng = np.random.default_rng(0)
    rows = []
    for a, b, c in itertools.product(range(6), range(6), range(3)):
        colour, shape, size = "rgbcmy"[a], "uvwxyz"[b], "sml"[c]
        hole = colour in "rg" and shape in "uv"
        split = "train" if not hole and (a + b + c) % 3 else "test"
        rows += [(colour, shape, size, split, int(rng.random() < (0.3 if hole else 0.9))) for _ in range(4)]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows, columns=["colour", "shape", "size", "split", "success"]).to_csv(path, index=False)
    return path


ASKED = ("--factors", "colour,shape,size", "--score", "success")
SPLIT = ("--split", "split=train")


def test_a_screen(cli, table, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    answer = cli("audit", table, *ASKED, *SPLIT)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert len(lines) <= LINES + 20 and max(map(len, lines)) <= 80
    for words in (
        "432 rows, 108 of 108 combinations",
        "4 evaluated pairs never met",
        "some pairs unmet",
        "collect-pairs:",
    ):
        assert words in answer.out
    assert "observational" in answer.out


def test_one_document(cli, table):
    answer = cli("audit", table, *ASKED, *SPLIT, "--json")
    document = answer.document
    assert document["support"]["unmet_count"] == 4
    assert document["scores"][0]["score"] == "success"
    rules = [one["rule"] for one in document["scores"][0]["advice"]]
    assert "collect-pairs" in rules


def test_tables(cli, table, tmp_path):
    answer = cli("audit", table, *ASKED, *SPLIT, "--tables", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    assert {Path(name).name for name in answer.document["tables"]} >= {"combinations.csv", "advice.csv"}
    assert len(pd.read_csv(tmp_path / "out" / "combinations.csv")) == 108


def test_a_page(cli, table, tmp_path):
    pytest.importorskip("recombine.report.audit.page")
    answer = cli("audit", table, *ASKED, *SPLIT, "--report", tmp_path / "audit.html", "--json")
    assert answer.code == 0, answer.err
    assert answer.document["report"] == str(tmp_path / "audit.html")
    assert "<html" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_names_from_data_are_told_and_not_obeyed(cli, tmp_path):
    nasty = ["\x1b[31mred\x1b[0m", "<script>alert(1)</script>", "[bold]x[/bold]", "שלום\u202eabc", "蓝色"]
    rows = [
        (a, b, "train" if index % 2 else "test", 1 - index % 3 // 2)
        for index, (a, b) in enumerate(itertools.product(nasty, "uvwxyz"))
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows, columns=["colour", "shape", "split", "success"]).to_csv(path, index=False)
    answer = cli("audit", path, "--factors", "colour,shape", "--score", "success", *SPLIT)
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out + answer.err and "\u202e" not in answer.out
    asked = ("--factors", "colour,shape", "--score", "success", "--json")
    assert cli("audit", path, *asked, *SPLIT).code == 0


BAD = [
    ("--factors colour,shap --score success", "shap"),
    ("--factors colour,shape --score succes", "succes"),
    ("--factors colour,shape --score split", "split"),
    ("--factors colour,shape", "score"),
    ("--score success", "factor"),
    ("--factors colour,shape --score success --split split", "--split"),
    ("--factors colour --roles shape --score success", "--roles"),
    ("--factors colour,shape --score success --key size", "--key"),
    ("--factors colour,shape --score success --train none.csv", "none.csv"),
    ("--factors colour,shape --score success --report none/audit.html", "none"),
    ("--factors colour,shape --score success --activations none.npz", "none.npz"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input(cli, table, line, says):
    answer = cli("audit", table, *line.split())
    assert answer.code == 2 and answer.out == "", answer.out + answer.err
    assert says in answer.err and "Traceback" not in answer.err
    document = cli("audit", table, *line.split(), "--json").document
    assert document["exit_code"] == 2


KINDS = {
    "colors": ("--factors", "object,colour"),
    "counting": ("--factors", "object,count"),
    "two_object": ("--roles", "object=object,object_2"),
    "color_attr": ("--roles", "object=object,object_2", "--roles", "colour=colour,colour_2"),
    "position": ("--factors", "relation", "--roles", "object=object,object_2"),
}


@pytest.mark.skipif(not SHARED.exists(), reason="the table of human judgements is not here")
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_human_judgements(cli, monkeypatch, kind):
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("audit", SHARED, *KINDS[kind], "--where", f"kind = '{kind}'", "--score", "success")
    answer = cli(*arguments)
    assert answer.code == 0, answer.err
    assert len(answer.out.splitlines()) <= LINES
    assert "cannot be separated" in answer.out
    document = cli(*arguments, "--json").document
    found = document["scores"][0]["parts"]["identification"]
    assert not found["identified"] and found["advice"]
    rules = {one["rule"] for one in document["scores"][0]["advice"]}
    assert {"cannot-tell", "no-training-information"} <= rules
    assert os.path.basename(document["source"]) == SHARED.name
