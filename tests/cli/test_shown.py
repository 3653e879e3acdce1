"""What is shown and written of data and records of others: nothing in it is obeyed by a terminal, a page or a spreadsheet."""

from __future__ import annotations

import csv

import pandas as pd
import pytest

from recombine.cli.output import table, verdict_table, without_formulas, write_tables
from recombine.cli.results import markdown

EVIL = (
    "\x1b[31mred\x1b]8;;http://x\x07 [link=http://y]z[/link] \u202e<script>alert(1)</script>\n# heading ![p](http://z)"
)

RECORD = {
    **{"study": "data-scaling", "claim": EVIL, "statement": EVIL, "note": EVIL, "answer": "holds", "role": "claim"},
    **{"primary": True, "effect": 0.1, "interval": [0.0, 0.2], "margin": 0.05, "direction": "greater"},
    **{"replicates": 3, "p_adjusted": 0.1, "p_portfolio": 0.1, "profile": "laptop", "version": 1},
}


@pytest.mark.parametrize("made", [verdict_table([RECORD]), table(EVIL, [EVIL, "n"], [(EVIL, 1)])])
def test_a_terminal_is_given_no_orders(made, capsys):
    from recombine.cli.output import say

    say(made)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
    assert "link" in out.replace("\n", ""), "markup is shown, not obeyed"


def test_markdown_holds_no_html_no_address_and_no_second_row():
    page = markdown([RECORD])
    assert "<script" not in page and "\x1b" not in page and "](http" not in page
    assert not any(line.startswith("# heading") for line in page.splitlines())
    assert "| **holds** |" in page and "[1 of 1](verdicts.md#data-scaling-laptop-profile)" in page


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"]


def test_texts_that_a_spreadsheet_would_run_are_made_harmless(tmp_path):
    frame = pd.DataFrame({"=colour": [*FORMULAS, "-1.5", "red"], "score": [-1.0] * 7, "text": ["+2", *"abcdef"]})
    write_tables({"t": frame}, tmp_path)
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["'=colour"] for row in rows] == [*(f"'{text}" for text in FORMULAS), "-1.5", "red"]
    assert rows[0]["score"] == "-1.0" and rows[0]["text"] == "+2", "numbers stay numbers"
    assert list(without_formulas(pd.DataFrame({"a": ["x"]}))["a"]) == ["x"]
