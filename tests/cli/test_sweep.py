"""`recombine sweep` and `recombine resume`."""

from __future__ import annotations

import contextlib
import json

import pandas as pd
import pytest

from recombine.component import kinds
from recombine.store.requests import remember, requests
from recombine.store.store import Store
from recombine.training.trainer import Trainer

FILE = """
base:
  family: hyperteacher
  space: {kind: subset, modules: 8, max_active: 2}
  model: {kind: mlp, width: 8, depth: 1}
  recipe: {kind: paper, learning_rate: 0.01, steps: 30, tasks: 8, samples: 4}
  support.reserve: 12
  eval_every: 10
  validation_tasks: 8
grid:
  support.number: [12, 20]
replicates: 2
measure: [{kind: scores, combinations: 6, draws: 2, samples: 4}]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "grid.yaml").write_text(FILE)
    return tmp_path / "grid.yaml"


@contextlib.contextmanager
def interrupted_after(number):
    """Ctrl-C comes when so many runs are stored."""
    real = Store.commit
    done = []

    def commit(self, outcome):
        if len(done) == number:
            raise KeyboardInterrupt
        real(self, outcome)
        done.append(outcome)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        yield


def test_a_sweep_trains_measures_and_prints_means(cli, file):
    answer = cli("sweep", file, "--json", "--out", "runs.csv")
    assert answer.code == 0 and answer.err == ""
    document = answer.document
    assert document["name"] == "grid" and document["problems"] == []
    assert (document["sweep"]["trained"], document["sweep"]["measured"]) == (4, 4)
    frame = pd.read_csv("runs.csv")
    assert len(frame) == 4 and {"run", "support.number", "replicate", "status", "score_in"} <= set(frame)
    for cell in document["cells"]:
        own = frame[frame["support.number"] == cell["support.number"]]
        assert (cell["n"], cell["failed"]) == (2, 0)
        for name in ("score_in", "score_held_out"):
            assert cell[name] == pytest.approx(own[name].mean())

    again = cli("sweep", file)
    assert again.code == 0 and "nothing to train, nothing to measure" in again.err
    assert "means over 2 replicates" in again.out and "score_held_out" in again.out
    assert "Nothing to resume: grid is complete." in cli("resume").out

    (listed,) = cli("ls", "sweeps", "--json").document
    assert (listed["name"], listed["cells"], listed["done"], listed["complete"]) == ("grid", 2, 4, True)
    words = cli("ls")
    assert "4 runs in" in words.out and "grid" in words.out and "4 of 4" in words.out


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_sweep_is_exported_in_other_forms(cli, file, ending):
    assert cli("sweep", file, "replicates=1", "--out", f"runs.{ending}").code == 0
    read = pd.read_parquet if ending == "parquet" else lambda name: pd.read_json(name, lines=True)
    frame = read(f"runs.{ending}")
    assert sorted(frame["support.number"]) == [12, 20] and frame["score_in"].notna().all()


def test_a_dry_run_shows_the_cells_and_makes_no_folder(cli, file, tmp_path):
    answer = cli("sweep", file, "--dry-run", "--json")
    assert answer.code == 0 and answer.document["runs"] == 4
    assert answer.document["cells"] == [{"support.number": 12}, {"support.number": 20}]
    words = cli("sweep", file, "--dry-run")
    assert words.code == 0 and "2 cells" in words.out and "about" in words.out
    assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"]


def test_an_interrupted_sweep_is_resumed_without_its_file(cli, file):
    with interrupted_after(1):
        assert cli("sweep", file).code == 130
    file.unlink()
    (listed,) = cli("ls", "sweeps", "--json").document
    assert (listed["done"], listed["runs"], listed["complete"]) == (1, 4, False)
    assert "1 of 4" in cli("resume", "--dry-run").out
    assert "`recombine resume` finishes" in cli("store", "ls").out
    answer = cli("resume")
    assert answer.code == 0 and "1 of 4" in answer.out
    assert "grid is done: 3 runs trained, 4 measurements made." in answer.out
    document = cli("resume", "--json").document
    assert document["complete"] == ["grid"] and document["resumed"] == []


def test_a_killed_study_is_resumed_with_its_settings(cli, small_study):
    with interrupted_after(3):
        assert cli("run", "data-scaling", "--profile", "smoke", *small_study).code == 130
    assert Store("runs").studies() == []
    (request,) = requests(Store("runs"))
    assert request["profile"] == "smoke" and request["overrides"] == small_study

    document = cli("resume", "data-scaling", "--json").document
    (resumed,) = document["resumed"]
    assert (resumed["found"], resumed["trained"], resumed["name"]) == (3, 5, request["name"])
    (record,) = Store("runs").studies()
    assert record["overrides"] == small_study and record["runs"] == request["runs"]
    ran = cli("run", "data-scaling", "--profile", "smoke", *small_study, "--json").document
    assert ran["sweep"]["trained"] == 0 and ran["verdicts"] == cli("verdicts", "--json").document
    assert len(requests(Store("runs"))) == 1


def test_a_study_killed_before_its_claims_were_decided_is_resumed(cli, copy):
    (path,) = (copy / "studies").iterdir()
    before = json.loads(path.read_text())["effects"]
    path.unlink()
    answer = cli("resume", "--store", copy, "--json")
    assert answer.code == 0 and answer.document["resumed"][0]["trained"] == 0
    assert json.loads(path.read_text())["effects"] == before


def test_all_studies_are_written_down_before_the_first_trains(cli, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train", interrupted)
    assert cli("run", "all", "--profile", "smoke").code == 130
    assert {one["study"] for one in requests(Store("runs"))} == set(kinds("studies"))


def test_nothing_to_resume(cli, tmp_path):
    assert cli("resume").code == 2
    assert not (tmp_path / "runs").exists()
    Store(tmp_path / "runs")
    answer = cli("resume")
    assert answer.code == 0 and "nothing to resume" in answer.out
    assert cli("resume", "--json").document["incomplete"] == []
    named = cli("resume", "grid")
    assert named.code == 2 and "No study or sweep called 'grid'" in named.err


def test_what_is_no_longer_understood_is_told_and_the_rest_is_finished(cli, file):
    assert cli("sweep", file, "replicates=1").code == 0
    store = Store("runs")
    (request,) = requests(store)
    remember(store, request | {"name": "strange", "file": request["file"] | {"base": {"widht": 1}}})
    answer = cli("resume", "--json")
    assert answer.code == 1 and answer.document["complete"] == [request["name"]]
    assert "'strange' is not understood" in answer.document["problems"][0]
    assert "cannot be resumed" in answer.err
    words = cli("resume")
    assert words.code == 1 and "widht" in words.err


def test_overrides_make_a_sweep_of_their_own(cli, file):
    for more in ((), ("replicates=1",)):
        assert cli("sweep", file, *more, "--dry-run").code == 0
    first = cli("sweep", file, "replicates=1", "--json").document
    assert first["name"].startswith("grid-") and len(first["cells"]) == 2
    second = cli("sweep", file, "--json").document
    assert second["name"] == "grid" and second["sweep"]["found"] == 2
    assert len(cli("ls", "sweeps", "--json").document) == 2


def test_runs_that_fail_are_counted_and_the_exit_code_says_so(cli, file):
    answer = cli("sweep", file, "learning_rate=1e30", "--json")
    assert answer.code == 1 and [cell["failed"] for cell in answer.document["cells"]] == [2, 2]
    assert [cell["n"] for cell in answer.document["cells"]] == [0, 0]
    assert cli("sweep", file, "learning_rate=1e30").code == 1
    assert cli("resume").code == 0, "failed runs are not tried again"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("grd.yaml", "grid.yaml"),
        ("grid.yaml widht=3", "did you mean 'width'"),
        ("grid.yaml number=12", "the sweep varies 'support.number'"),
        ("grid.yaml number", "not an override"),
        ("grid.yaml --out table.xls", ".parquet"),
        ("grid.yaml --out no/table.csv", "does not exist"),
        ("grid.yaml modules=3", "grid.yaml: cell support.number=12: Training on 12 of 6"),
        ("grid.yaml --engine rey", "did you mean 'ray'"),
        ("grid.yaml replicates=0", "replicates = 0"),
    ],
)
def test_bad_input_is_refused_before_anything_is_made(cli, file, tmp_path, arguments, says):
    for more in ((), ("--json",)):
        answer = cli("sweep", *arguments.split(), *more)
        assert answer.code == 2 and says in answer.err and "Traceback" not in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"]


def test_what_cannot_be_finished_does_not_keep_the_others_back(cli, file):
    # With one combination in reserve, either validation or test has none: that is seen only when it is drawn.
    assert cli("sweep", file, "reserve=1", "name=bad", "replicates=1").code == 2
    with interrupted_after(1):
        assert cli("sweep", file, "name=good", "replicates=1").code == 130
    answer = cli("resume", "--json")
    assert answer.code == 1 and "held_out" in answer.document["problems"][0]
    assert [one["name"][:4] for one in answer.document["resumed"]] == ["good"]
    assert {one["name"][:4]: one["complete"] for one in cli("ls", "sweeps", "--json").document} == {
        "bad-": False,
        "good": True,
    }
