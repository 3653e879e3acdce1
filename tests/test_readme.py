"""The examples of the README work as they stand, and the table of verdicts is that of the recorded results."""

import json
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from recombine.cli.main import main
from recombine.cli.results import write_verdicts
from recombine.component import find, kinds

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "docs" / "results"


def blocks(language: str) -> list[str]:
    """The code blocks of the README in a language; without one, those for the terminal."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    return [code for name, code in fenced if name == language]


def test_python_example_runs_and_is_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert len(names["result"].verdicts) > 5  # type: ignore[attr-defined]


def test_audit_and_plan_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    colours, things = ("red", "blue", "green"), ("cup", "ball", "box")
    trained = [(c, t) for c in colours for t in things if (c, t) not in (("red", "box"), ("blue", "cup"))]
    Path("trained.csv").write_text("colour,object\n" + "".join(f"{c},{t}\n" for c, t in trained))
    rows = [(c, t, int((c, t) in trained or n == 0)) for c in colours for t in things for n in range(4)]
    Path("results.csv").write_text("colour,object,success\n" + "".join(f"{c},{t},{s}\n" for c, t, s in rows))
    Path("space.yaml").write_text(f"factors:\n  colour: [{', '.join(colours)}]\n  object: [{', '.join(things)}]\n")
    commands = [line for line in "".join(blocks("")).splitlines() if line.startswith("recombine ")]
    assert [command.split()[1] for command in commands] == ["audit", "plan"]
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[1:])
        assert not ended.value.code, capsys.readouterr().err
    assert Path("audit.html").exists()
    assert capsys.readouterr().out.endswith("colour,object\nred,box\nblue,cup\n"), "the two that are missing"


def test_it_is_short():
    assert len(README.split()) <= 650


def test_the_table_of_verdicts_is_that_of_the_recorded_results(tmp_path):
    for path in RESULTS.rglob("*"):
        if path.name in ("verdicts.json", "note.md"):
            copy = tmp_path / path.relative_to(RESULTS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    again = "stale: run python docs/results/into_page.py"
    assert (RESULTS / "verdicts.md").read_text() == write_verdicts(tmp_path).read_text(), again
    script = runpy.run_path(str(RESULTS / "into_page.py"))
    assert script["between"]((RESULTS / "README.md").read_text(encoding="utf-8")) == script["table"](), again


def test_every_study_has_recorded_results_or_is_said_to_have_none():
    recorded = {path.parent.name for path in RESULTS.glob("*/verdicts.json")}
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    line = re.search(r"^Not yet run at laptop size.*: (.*)\.$", page, re.MULTILINE)
    missing = set(re.findall(r"`([a-z-]+)`", line[1])) if line else set()
    assert not recorded & missing
    assert recorded | missing == set(kinds("studies"))


@pytest.mark.parametrize("path", sorted(RESULTS.glob("**/verdicts.json")), ids=lambda path: path.parent.name)
def test_recorded_results_are_about_the_claims_of_today(path):
    """Version, words and margin of each recorded claim are those of the study: else run the study again and export it."""
    records = json.loads(path.read_text(encoding="utf-8"))
    study = find("studies", records[0]["study"]).profile(records[0]["profile"])
    today = {stated.name: stated.of(study.kind) for stated in study.design.claims}
    assert {record["claim"] for record in records} == set(today)
    for record in records:
        claim = today[record["claim"]]
        recorded = tuple(record[name] for name in ("version", "role", "primary", "direction", "margin", "statement"))
        assert recorded == (claim.version, claim.role, claim.primary, claim.direction, claim.margin, claim.statement)
        assert tuple(record["needs"]) == claim.needs
        assert [scale["scale"] for scale in record.get("scales", ())] == [name for name, _ in claim.scales]
