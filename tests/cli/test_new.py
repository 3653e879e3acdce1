"""`recombine new` writes components that work as they stand: lint, types, and their own tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import recombine
from recombine.cli.new import ROOMS

SOURCE = Path(recombine.__file__).parents[1]


def ran(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    given = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=given, check=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """One component of each kind, and what the command said."""
    folder = tmp_path_factory.mktemp("new")
    command = (sys.executable, "-m", "recombine", "new")
    return folder, {what: ran(*command, what, f"my-{what}", "--folder", folder, cwd=folder) for what in ROOMS}


def test_what_is_written_passes_lint_and_types(written):
    folder, answers = written
    assert {answer.returncode for answer in answers.values()} == {0}
    assert len(list(folder.glob("*.py"))) == 6
    chosen = ("--isolated", "--select", "E,F,W,I,B,UP,ANN")
    linted = ran(sys.executable, "-m", "ruff", "check", *chosen, ".", cwd=folder)
    assert linted.returncode == 0, linted.stdout
    formatted = ran(sys.executable, "-m", "ruff", "format", "--isolated", "--check", ".", cwd=folder)
    assert formatted.returncode == 0, formatted.stdout
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(SOURCE)], "typeCheckingMode": "standard"})
    )
    interpreter = ("--pythonpath", sys.executable)
    typed = ran(sys.executable, "-m", "basedpyright", "--level", "error", *interpreter, cwd=folder)
    assert typed.returncode == 0, typed.stdout


def test_its_tests_pass_and_its_name_works_on_the_command_line(written):
    folder, answers = written
    tested = ran(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".", cwd=folder)
    assert tested.returncode == 0 and "3 passed" in tested.stdout, tested.stdout
    for what, room in ROOMS.items():
        assert f"python -m pytest {folder / f'test_my_{what}.py'}" in answers[what].stdout
        then = answers[what].stdout.splitlines()[-1]
        assert f":My{what.capitalize()} recombine" in then and then.startswith("then: RECOMBINE_COMPONENTS=")
        place = then.split()[1].partition("=")[2]
        listed = ran(sys.executable, "-m", "recombine", "ls", room, "--json", cwd=folder, RECOMBINE_COMPONENTS=place)
        assert f"my-{what}" in [entry["name"] for entry in json.loads(listed.stdout)], listed.stderr


def test_nothing_is_overwritten(cli, tmp_path):
    assert cli("new", "probe", "my-probe").code == 0
    (tmp_path / "my_probe.py").write_text("mine")
    answer = cli("new", "probe", "my-probe")
    assert answer.code == 2 and "not overwritten" in answer.err
    assert (tmp_path / "my_probe.py").read_text() == "mine"
    (tmp_path / "test_other.py").write_text("mine")
    assert cli("new", "probe", "other").code == 2 and not (tmp_path / "other.py").exists()


@pytest.mark.parametrize("name", ["My-family", "1st", "a_b", "../evil", "class", "", "a--b", "-x", "naïve"])
def test_names_that_are_no_names_are_refused(cli, tmp_path, name):
    assert cli("new", "family", "--", name).code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_recombine_is_refused(cli, tmp_path):
    answer = cli("new", "family", "lookup")
    assert answer.code == 2 and "There is a family called 'lookup' already" in answer.err
    assert list(tmp_path.iterdir()) == []
