"""What the page says of people's labels is what the script prints, where the table lies beside this repository."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
TABLE = ROOT.parent / "shared/data/text_to_image_human.csv"
PAGE = ROOT / "docs/text-to-image-pipelines.md"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("human_labels", ROOT / "examples/human_labels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text(script):
    if not TABLE.exists():
        pytest.skip("the human-labelled table does not lie beside this repository")
    return "\n".join(script.lines(TABLE))


def test_the_page_is_what_the_script_prints(script, text):
    assert script.between(PAGE.read_text()) == text


def test_counts_are_those_of_the_table(script, text):
    frame = pd.read_csv(TABLE)
    for kind, (name, _) in script.KINDS.items():
        part = frame[frame.kind == kind]
        success = part.groupby("prompt").success.mean().mean()
        assert f"| {name} | {len(part)} | {part.prompt.nunique()} | " in text and f" | {success:.2f} [" in text


def test_a_page_without_marks_is_an_error(script):
    with pytest.raises(SystemExit, match="lacks the marks"):
        script.between("nothing")
