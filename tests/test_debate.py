"""The page of the debate: its rows stand on recorded answers, and its commands exist."""

from __future__ import annotations

import copy
import importlib.util
import shlex
import tomllib
from pathlib import Path

import pytest

from recombine.cli.main import app
from recombine.component import find

RESULTS = Path(__file__).parents[1] / "docs" / "results"
ROWS = [
    row for part in tomllib.loads((RESULTS / "debate.toml").read_text(encoding="utf-8"))["part"] for row in part["row"]
]
COMMANDS = sorted({row["large"] for row in ROWS if row["large"].startswith("recombine ")})


@pytest.fixture(scope="module")
def debate():
    spec = importlib.util.spec_from_file_location("debate", RESULTS / "debate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_row_has_the_recorded_answers(debate):
    assert debate.stale(ROWS, debate.recorded(RESULTS)) == []


def test_the_page_is_the_one_that_the_rows_make(debate):
    parts = tomllib.loads((RESULTS / "debate.toml").read_text(encoding="utf-8"))["part"]
    made = debate.page(parts, debate.recorded(RESULTS))
    assert (RESULTS / "debate.md").read_text(encoding="utf-8") == made, "run `python docs/results/debate.py`"


def test_a_row_whose_evidence_changed_or_is_gone_is_named(debate):
    verdicts = copy.deepcopy(debate.recorded(RESULTS))
    verdicts["data-scaling/rises"]["answer"] = "does not hold"
    del verdicts["model-scaling/width-helps"]
    gone, changed = sorted(debate.stale(ROWS, verdicts), key=lambda text: "is not recorded" not in text)
    assert "data-scaling/rises" in changed and "does not hold" in changed
    assert "model-scaling/width-helps is not recorded" in gone


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_exists(command):
    words = shlex.split(command)[1:]
    app.parse_args(words, exit_on_error=False, print_error=False)
    if words[0] == "run":
        study = find("studies", words[1])
        if "--profile" in words:
            assert words[words.index("--profile") + 1] in study.profiles
