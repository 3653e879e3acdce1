"""Bad input: each with a clear message, the right exit code, and nothing lost."""

from __future__ import annotations

import errno
import json
import os

import pytest

from recombine.store.store import Store

NAMES = [
    ("rnu data-scaling", "rnu", "run"),
    ("verdict", "verdict", "verdicts"),
    ("run data-scalng", "no study called 'data-scalng'", "data-scaling"),
    ("run data-scaling --profile lptop", "no profile 'lptop'", "laptop"),
    ("run data-scaling --prfile smoke", "--prfile", "--profile"),
    ("run data-scaling numbrs=1,2", "nothing called 'numbrs'", "numbers"),
    ("train hyperteachr", "no family called 'hyperteachr'", "hyperteacher"),
    ("train hyperteacher widht=3", "nothing called 'widht'", "width"),
    ("train hyperteacher model.widht=3", "nothing called 'model.widht'", "model.width"),
    ("train hyperteacher recipe=fsat", "no recipe called 'fsat'", "fast"),
    ("train hyperteacher family=lokup", "no family called 'lokup'", "lookup"),
    ("train hyperteacher space=subst", "no space called 'subst'", "subset"),
    ("ls famlies", "no list of 'famlies'", "families"),
    ("show hyperteachr", "nothing called 'hyperteachr'", "hyperteacher"),
]


@pytest.mark.parametrize(("line", "says", "means"), NAMES)
def test_unknown_names_get_a_did_you_mean(cli, tmp_path, line, says, means):
    answer = cli(*line.split())
    assert answer.code == 2 and answer.out == ""
    assert says in answer.err and "did you mean" in answer.err.lower() and means in answer.err
    assert list(tmp_path.iterdir()) == [], "no folder is made"


@pytest.mark.parametrize("line", [line for line, _, _ in NAMES if line.startswith(("run", "train", "ls"))])
def test_errors_are_one_document_too(cli, line):
    answer = cli(*line.split(), "--json")
    assert answer.code == 2
    assert set(answer.document) == {"error", "fix", "exit_code"} and answer.document["exit_code"] == 2


VALUES = [
    ("width=abc", "model.width = 'abc'"),
    ("width=0", "model.width = 0"),
    ("width=1.5", "model.width = 1.5"),
    ("width", "not an override"),
    ("=3", "not an override"),
    ("learning_rate=0", "recipe.learning_rate = 0"),
    ("target=2", "target = 2"),
    ("modules=2 max_active=3", "max_active=3 is more than modules=2"),
    ("modules=0", "space.modules = 0"),
    ("held_out=1.5", "support.held_out = 1.5"),
    ("held_out=0.9999", "combinations is left to train on"),
    ("held_out=0.0001", "validation and test need at least one combination each"),
    ("held_out=0.99", "connected combinations contain at most"),
    ("number=696", "validation and test need at least one combination each"),
    ("number=1000", "is not possible"),
    ("number=5", "connected combinations contain at most"),
    ("support=missing-part part=99", "the space has 16 constituents"),
    ("seeds.init=-1", "seeds.init = -1"),
    ("coefficients=some", "family.coefficients = 'some'"),
]


@pytest.mark.parametrize(("overrides", "says"), VALUES)
def test_values_that_cannot_be_are_refused_before_anything_is_made(cli, tmp_path, overrides, says):
    for more in ((), ("--dry-run",)):
        answer = cli("train", "hyperteacher", *overrides.split(), *more)
        assert answer.code == 2 and answer.out == ""
        assert says in answer.err and "Traceback" not in answer.err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ("modules=2", "max_active=3 is more than modules=2"),
        ("numbers=40,800", "is not possible"),
        ("numbers=40,696", "validation and test need at least one combination each"),
        ("numbers=3,40", "connected combinations contain at most"),
        ("numbers=40,40", "two different sizes"),
        ("numbers=none held_out=0.99,0.995", "Fewer than two"),
        ("numbers=none held_out=0.5,1.5", "less than 1"),
        ("family=lookup", "another family"),
        ("replicates=0", "replicates = 0"),
        ("inputs=3", "base.family.inputs or control.inputs"),
    ],
)
def test_studies_that_cannot_be_are_refused_before_anything_is_made(cli, tmp_path, overrides, says):
    answer = cli("run", "data-scaling", "--profile", "smoke", *overrides.split())
    assert answer.code == 2 and answer.out == ""
    assert says in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_held_out_share_that_leaves_nothing_to_test_on_by_chance(cli, small_run):
    # One combination is held out on each side at best; whichever is missing is named.
    answer = cli("train", "hyperteacher", *small_run, "number=20", "reserve=1")
    assert answer.code == 2 and "held_out" in answer.err


READERS = [("ls",), ("show", "abc"), ("verdicts",), ("report",), ("doctor",)]


@pytest.mark.parametrize("command", READERS)
def test_a_store_that_is_not_there(cli, tmp_path, command):
    answer = cli(*command, "--store", tmp_path / "nowhere")
    assert answer.code == 2 and ("no store at" in answer.err or "nothing called" in answer.err)
    assert not (tmp_path / "nowhere").exists()


WRITERS = [("train", "hyperteacher"), ("run", "data-scaling", "--profile", "smoke")]


@pytest.mark.parametrize("command", [*READERS, *WRITERS])
def test_a_store_that_is_a_file(cli, tmp_path, command):
    (tmp_path / "file").write_text("mine")
    answer = cli(*command, "--store", tmp_path / "file", "--json")
    assert answer.code == 2 and "is a file, not a folder" in answer.document["error"]
    assert answer.document["fix"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", WRITERS)
def test_a_foreign_folder_is_not_taken_for_a_store(cli, tmp_path, command):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "main.tex").write_text("mine")
    for more in ((), ("--dry-run",)):
        answer = cli(*command, "--store", tmp_path / "thesis", *more)
        assert answer.code == 2
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["main.tex"]


def test_a_store_of_a_later_recombine(cli, copy):
    (copy / "recombine.json").write_text(json.dumps({"format": 2}))
    listed = cli("ls", "--store", copy)
    assert listed.code == 0 and "format 2" in listed.err
    before = sorted(path.name for path in copy.rglob("*"))
    written = cli("train", "hyperteacher", "steps=1", "--store", copy)
    assert written.code == 2 and "format 2" in written.err
    assert sorted(path.name for path in copy.rglob("*")) == before


def refusing(code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.mark.parametrize(
    ("code", "function", "says"),
    [
        (errno.EACCES, "mkdir", "permission denied"),
        (errno.EROFS, "mkdir", "read-only"),
        (errno.ENOSPC, "fsync", "no space left"),
    ],
)
def test_a_store_that_cannot_be_written(cli, tmp_path, monkeypatch, small_run, code, function, says):
    monkeypatch.setattr(os, function, refusing(code))
    answer = cli("train", "hyperteacher", *small_run, "--store", tmp_path / "store", "--json")
    assert answer.code == 2 and says in answer.document["error"] and answer.document["fix"]


def test_a_store_that_is_full_keeps_what_it_has(cli, copy, monkeypatch, small_run):
    before = Store(copy).run_ids()
    monkeypatch.setattr(os, "fsync", refusing(errno.ENOSPC))
    answer = cli("train", "hyperteacher", *small_run, "seeds.init=9", "--store", copy)
    assert answer.code == 2 and "no space left" in answer.err and "what was stored is kept" in answer.err
    monkeypatch.undo()
    monkeypatch.chdir(copy.parent)
    assert Store(copy).run_ids() == before and Store(copy).problems == []
    assert cli("train", "hyperteacher", *small_run, "seeds.init=9", "--store", copy).code == 0


def test_a_report_that_cannot_be_written_is_found_before_training(cli, tmp_path):
    command = ("run", "data-scaling", "--profile", "smoke", "--store", tmp_path / "store")
    missing = cli(*command, "--report", tmp_path / "no" / "page.html")
    assert missing.code == 2 and "does not exist" in missing.err
    folder = cli(*command, "--report", tmp_path)
    assert folder.code == 2 and "is a folder" in folder.err
    assert Store(tmp_path / "store").run_ids() == []


def test_a_report_of_what_has_not_run(cli, tmp_path):
    Store(tmp_path / "store")
    answer = cli("report", "--store", tmp_path / "store")
    assert answer.code == 2 and "holds no results" in answer.err
    named = cli("report", "data-scalng", "--store", tmp_path / "store")
    assert named.code == 2 and "did you mean 'data-scaling'" in named.err


def test_a_run_that_is_not_there(cli, copy):
    answer = cli("show", "0000000000", "--store", copy)
    assert answer.code == 2 and "nothing called '0000000000'" in answer.err
    near = cli("show", "hyperteachr", "--store", copy)
    assert near.code == 2 and "did you mean 'hyperteacher'" in near.err


def test_a_loss_that_is_not_finite_fails_the_run_with_its_step(cli, small_run):
    arguments = ("train", "hyperteacher", *small_run, "learning_rate=1e30")
    answer = cli(*arguments, "--json")
    assert answer.code == 1
    step = answer.document["failed_at"]
    assert answer.document["status"] == "failed" and step >= 1
    assert f"not finite at step {step}" in answer.err and "stored as failed" in answer.err
    assert "r2_in" not in answer.document or answer.document["r2_in"] is None

    again = cli(*arguments)
    assert again.code == 1 and "nothing to train" in again.err and f"at step {step}" in again.err
    (listed,) = cli("ls", "--json").document
    assert listed["status"] == "failed" and listed["failed_at"] == step
    shown = cli("show", listed["run"])
    assert shown.code == 0 and "failed" in shown.out and str(step) in shown.out
    assert f"at step {step}" in " ".join(cli("ls").out.split())


def test_a_sweep_in_which_runs_fail_goes_on_and_says_so(cli, tmp_path, small_study):
    arguments = (
        "run",
        "data-scaling",
        "--profile",
        "smoke",
        *small_study,
        "learning_rate=1e30",
        "--store",
        tmp_path / "s",
    )
    answer = cli(*arguments, "--json")
    assert answer.code == 1
    assert len(answer.document["sweep"]["failed"]) == answer.document["sweep"]["trained"] == 8
    assert {verdict["verdict"] for verdict in answer.document["verdicts"]} == {"inconclusive"}
    assert "8 runs failed" in answer.err
    words = cli(*arguments)
    assert words.code == 1 and "inconclusive" in words.out and "8 runs failed" in words.err
