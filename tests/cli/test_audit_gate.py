"""`recombine audit compare` and the gate of `recombine audit`."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

ASKED = ("--factors", "colour,shape", "--score", "success", "--split", "split=train")


@pytest.fixture
def tables(tmp_path):
    """An old and a new table; the new one has lost the colour r."""
    for name, worse in (("old", ""), ("new", "r")):
        rng = np.random.default_rng(0)
        rows = [
            (a, b, "train" if (ord(a) + ord(b)) % 3 else "test", int(rng.random() < (0.1 if a == worse else 0.9)))
            for a, b in itertools.product("rgbc", "uvwx")
            for _ in range(5)
        ]
        frame = pd.DataFrame(rows, columns=["colour", "shape", "split", "success"])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_compare(cli, tables):
    answer = cli("audit", "compare", "old.csv", "new.csv", *ASKED, "--report", "compare.html")
    assert answer.code == 0, answer.err
    assert "Lost" in answer.out and "colour=r" in answer.out
    assert "<html" in (tables / "compare.html").read_text(encoding="utf-8")
    document = cli("audit", "compare", "old.csv", "new.csv", *ASKED, "--json").document
    assert document["scores"][0]["lost"] and document["shared"] == 16


def test_a_gate_fails_with_one_line_and_leaves_its_files(cli, tables):
    (tables / "audit.json").write_text(cli("audit", "old.csv", *ASKED, "--json").out)
    gate = ("--baseline", "audit.json", "--allow-drop", "0.02", "--fail-if", "lost.combinations > 0")
    passed = cli("audit", "old.csv", *ASKED, *gate)
    assert passed.code == 0, passed.err
    failed = cli("audit", "new.csv", *ASKED, *gate, "--junit", "audit.xml", "--report", "audit.html")
    assert failed.code == 1
    # Slow machines print progress before it.
    assert failed.err.count("The gate failed: ") == 1 and "lost.combinations is" in failed.err.splitlines()[-1]
    assert "lost.combinations is" in failed.err and " r + " in failed.err.splitlines()[-1]  # A lost combination.
    page = (tables / "audit.html").read_text(encoding="utf-8")
    assert "The gate failed: " in page and "success: combinations lost" in page
    root = ElementTree.parse(tables / "audit.xml").getroot()
    assert int(root.attrib["failures"]) == len(root.findall(".//failure")) > 0
    document = cli("audit", "new.csv", *ASKED, *gate, "--json").document
    assert document["gate"]["passed"] is False


def test_the_workflow_of_the_docs(cli, tables):
    page = (Path(__file__).parents[2] / "docs/audit-a-model.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(# \.github.*?)```", page, re.DOTALL)
    workflow = yaml.safe_load(block)
    (line,) = [step["run"] for step in workflow["jobs"]["audit"]["steps"] if "recombine audit" in step.get("run", "")]
    program, *words = shlex.split(line)
    renamed = {"shape": "object"}
    old, new = (pd.read_csv(tables / f"{name}.csv").rename(columns=renamed) for name in ("old", "new"))
    old.to_csv(tables / "results.csv", index=False)
    plain = words[: words.index("--baseline")]
    (tables / "audit.json").write_text(cli(*plain, "--json").out)
    assert program == "recombine" and cli(*words).code == 0
    new.to_csv(tables / "results.csv", index=False)
    failed = cli(*words)
    assert failed.code == 1 and (tables / "audit.html").exists() and (tables / "audit.xml").exists()
    lost = pd.read_csv(tables / "audit" / "lost.csv")
    assert (
        {"colour", "object"} < {*lost} and "r" in set(lost.colour) and all(lost.before >= 0.5) and all(lost.after < 0.5)
    )


def test_options_that_do_not_go_together(cli, tables):
    for options in (
        ("--allow-drop", "0.1"),
        ("--baseline", "old.csv"),
        ("--junit", "x.xml"),
        ("--fail-if", "nonsense"),
    ):
        assert cli("audit", "old.csv", *ASKED, *options).code == 2


def test_a_gate_that_cannot_be_judged_is_found_before_the_audit(cli, tables, monkeypatch):
    monkeypatch.setattr("recombine.audit.audit.audit_cells", lambda *_, **__: pytest.fail("the audit was run"))
    (tables / "broken.json").write_text('{\n  "scores"')
    broken = cli("audit", "old.csv", *ASKED, "--baseline", "broken.json", "--allow-drop", "0.1")
    assert broken.code == 2 and "broken.json is not the whole JSON document" in broken.err
    unknown = cli("audit", "old.csv", *ASKED, "--fail-if", "all_pair_met.score < .8")
    assert unknown.code == 2 and "did you mean 'all_pairs_met'?" in unknown.err
    alone = cli("audit", "old.csv", *ASKED, "--fail-if", "lost.combinations > 0")
    assert alone.code == 2 and "needs a baseline" in alone.err
