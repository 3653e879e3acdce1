"""The Python of the tutorials runs as it stands, and commands on the pages are commands."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from recombine import component

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(page: str, code: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    for block in code:
        exec(compile(block, page, "exec", dont_inherit=True), names)
    return names


def test_every_page_with_python_has_a_test():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    # The landing page of the site quotes two lines of the README.
    assert not [
        page.name for page in PAGES if blocks(page) and page.name not in {"index.md"} and page.name not in tests
    ]


def test_how_verdicts_are_made(capsys):
    page = ROOT / "docs" / "how-verdicts-are-made.md"
    run(page.name, blocks(page))
    assert f"```\n{capsys.readouterr().out}```" in page.read_text(encoding="utf-8"), (
        "the page shows what its code prints"
    )


def test_the_models_of_the_page_are_audited(capsys):
    """All of audit-a-model.md but its first block, which is a form, and the one that needs a model."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    _, *code = blocks(ROOT / "docs" / "audit-a-model.md")
    names = run("audit-a-model.md", [block for block in code if "# not run here" not in block])
    assert sorted(names["audit"].collect.itertuples(index=False, name=None)) == [("blue", "ball"), ("red", "ring")]
    said = capsys.readouterr().out
    assert "4 of 64 calls failed" in said and "selectivity" in said


def test_the_family_and_the_study_of_the_page(tmp_path, monkeypatch, capsys):
    """As an installed file, which is what the page says."""
    page = (ROOT / "docs" / "your-own-family.md").read_text(encoding="utf-8")
    family, *code = blocks(ROOT / "docs" / "your-own-family.md")
    name, target = re.findall(r'^([a-z-]+) = "(\w+:\w+)"$', page, re.MULTILINE)[0]
    (tmp_path / "two_parts.py").write_text(family)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    points = {"families": {name: EntryPoint(name, target, "recombine.families")}}
    monkeypatch.setattr(component, "_entry_points", lambda room: points.get(room, {}))
    cached = (component.kinds, component.find, component.summary, component._report_shadows)
    try:
        for function in cached:
            function.cache_clear()
        result = run("your-own-family.md", code)["result"]
    finally:
        sys.modules.pop("two_parts", None)
        for function in cached:
            function.cache_clear()
    assert set(result.verdicts["answer"]) == {"holds"}
    (written,) = re.findall(r"^page: (.*)$", capsys.readouterr().err, re.MULTILINE)
    assert Path(written).stat().st_size > 10_000


def commands() -> list[str]:
    """The commands of recombine in the blocks of all pages, with lines that a backslash joins."""
    found = []
    for page in PAGES:
        text = re.sub(r"\\\n *", "", page.read_text(encoding="utf-8"))
        for fenced, indented in re.findall(r"^```\w*\n(.*?)^```$|((?:^    [^\n]*\n)+)", text, re.DOTALL | re.MULTILINE):
            lines = (fenced + indented).splitlines()
            found += [line.strip().removeprefix("$ ") for line in lines if re.match(r"(\$ | {4})?recombine ", line)]
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_commands_on_the_pages_are_understood(line):
    """Their names and options exist. What comes after two spaces is a remark."""
    from recombine.cli.main import app

    words = shlex.split(re.split(r" {2,}|\t", line)[0], comments=True)[1:]
    _command, _bound, left_over = app.parse_known_args(words)[:3]
    assert not [word for word in left_over if word.startswith("-")], left_over
