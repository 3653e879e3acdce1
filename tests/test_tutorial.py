"""The tutorial tells what its script does: the script runs, and what the page shows is what it printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "examples" / "collect_next.py"
PAGE = ROOT / "docs" / "tutorial.md"
PRINTED = ROOT / "docs" / "tutorial"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("tutorial") / "collect_next"
    done = subprocess.run([sys.executable, str(SCRIPT), "--out", str(out), "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def blocks():
    """What the page quotes, by the file that it quotes."""
    return re.findall(r"<!-- from tutorial/(\w+\.txt) -->\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)


def covers(text):
    """The sentences on coverage, without the scores among them."""
    part = text[text.index("What training covers") : text.index("\nsuccess")]
    joined = " ".join(part.split())
    return re.sub(r" Lowest scores: .*?\)\.", "", joined)


def test_the_audit_finds_the_hole_and_the_plan_closes_it(folder):
    before, after = ((folder / f"audit_{name}.txt").read_text() for name in ("before", "after"))
    assert "5 evaluated pairs never met" in covers(before)
    assert "object=drill with" in before
    assert "collect-pairs" in before
    assert "All evaluated pairs met" in covers(after)
    assert "collect-pairs" not in after
    next_ = pd.read_csv(folder / "next.csv")
    assert len(next_) == 6 and set(next_.object[:3]) == {"drill"}
    assert re.search(r"pairs covered +94\.6 % +100 %", (folder / "plan.txt").read_text())
    assert (folder / "audit_before.html").stat().st_size > 10_000


def test_scenes_of_the_hole_are_worse_before_than_after(folder):
    evaluated = {name: pd.read_csv(folder / f"evaluation_{name}.csv") for name in ("before", "after")}
    trained = pd.read_csv(folder / "trained_after.csv")
    means = {}
    for name, frame in evaluated.items():
        held_out = frame.merge(trained, how="left", indicator=True).query("_merge == 'left_only'")
        means[name] = held_out[held_out.object == "drill"].success.mean()
    assert means["after"] > means["before"] + 0.05
    score = pd.read_csv(folder / "comparison.csv").set_index("added").drill
    assert score["planned"] > score["nothing"] + 0.05


def test_coverage_and_plan_on_the_page_are_those_of_the_script(folder):
    """They follow from the scenes alone. Scores may differ in the last digits from machine to machine."""
    assert (folder / "plan.txt").read_text() == (PRINTED / "plan.txt").read_text()
    for name in ("audit_before.txt", "audit_after.txt"):
        assert covers((folder / name).read_text()) == covers((PRINTED / name).read_text())
    assert (folder / "scenes.yaml").read_text() in PAGE.read_text()


def test_the_page_quotes_what_was_printed():
    """Lines may be left out of a block where it has dots; none may be another."""
    quoted = blocks()
    assert {name for name, _ in quoted} == {path.name for path in PRINTED.glob("*.txt")}
    for name, block in quoted:
        printed = iter((PRINTED / name).read_text().splitlines())
        for line in block.splitlines():
            if line.strip() not in ("", "..."):
                assert any(line.rstrip() == one.rstrip() for one in printed), f"{name}: {line}"


def test_numbers_in_the_text_are_in_what_was_printed():
    """Scores that the page repeats in its sentences stand in one of the outputs."""
    page = PAGE.read_text()
    for _, block in blocks():
        page = page.replace(block, "")
    printed = " ".join(path.read_text() for path in PRINTED.glob("*.txt"))
    for number in re.findall(r"(?<![\d.])[+-]?0?\.\d\d(?!\d)", page):
        digits = number.lstrip("+-0")
        assert re.search(rf"(?<!\d)0?{re.escape(digits)}(?!\d)", printed), number
