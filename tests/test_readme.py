"""The README's Python example works as it stands."""

import re
from pathlib import Path

from recombine.component import kinds

README = Path(__file__).parent.parent / "README.md"


def test_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "curves.html").stat().st_size > 1000
    assert len(names["store"].runs_df()) == 1  # type: ignore[attr-defined]


def test_first_example_is_short():
    block = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)[0]
    assert len([line for line in block.splitlines() if line.strip()]) <= 18


def test_the_table_is_that_of_the_recorded_results():
    """By `make results`; written by hand it would soon be another."""
    import runpy

    script = runpy.run_path(str(README.parent / "docs" / "results" / "into_readme.py"))
    assert script["between"](README.read_text(encoding="utf-8")) == script["table"]()


def test_every_study_has_recorded_results_or_is_said_to_have_none():
    results = README.parent / "docs" / "results"
    recorded = {path.parent.name for path in results.glob("*/verdicts.json")}
    line = re.search(
        r"^Not yet run at laptop size.*: (.*)\.$", (results / "README.md").read_text(), re.MULTILINE
    )
    missing = set(re.findall(r"`([a-z-]+)`", line[1])) if line else set()
    assert not recorded & missing
    assert recorded | missing == set(kinds("studies"))
