"""The example of docs/planning.md is what the page says it is."""

from __future__ import annotations

import re
from pathlib import Path

from recombine.plan.planner import make_plan
from recombine.plan.spec import read_spec

PAGE = (Path(__file__).parents[2] / "docs" / "planning.md").read_text()


def test_the_kitchen(tmp_path):
    blocks = re.findall(r"<!-- tested by tests/plan/test_docs.py -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    for name, text in zip(("kitchen.yaml", "done.csv"), blocks, strict=True):
        (tmp_path / name).write_text(text)
    spec = read_spec(tmp_path / "kitchen.yaml")
    plan = make_plan(spec.space, collected=tmp_path / "done.csv", forbid=spec.forbid, require=spec.require)
    assert f"collect {len(plan.combinations)} combinations" in PAGE
    told = f"{plan.covered_before} of {plan.coverable}    {plan.covered} of {plan.coverable}"
    assert f"allowed pairs covered       {told}" in PAGE
    assert plan.notes[0] in PAGE


def test_the_python_of_the_page_runs():
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(text, names)
    assert names["plan"].covered == names["plan"].coverable == 5
