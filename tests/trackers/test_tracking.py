"""Trackers receive every point, every score and every verdict, and cannot end, delay or change a run."""

from __future__ import annotations

import inspect
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import recombine as rc
from recombine.component import kinds
from recombine.errors import BadInput, MissingPackage
from recombine.trackers import tracking
from recombine.trackers.tracking import Tracking, trackers_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trackers.md"


def swept(tmp_path, settings, name="store", **more):
    return rc.sweep(settings, grid={"number": [12, 20]}, replicates=1, store=tmp_path / name, quiet=True, **more)


def test_a_tracker_receives_what_the_store_has(tmp_path, settings, remembering):
    result = swept(tmp_path, settings, track=remembering)
    store = rc.load_store(tmp_path / "store")
    assert len(result.runs) == 2
    for run_id in result.runs["run"]:
        own = [entry[1:] for entry in remembering.given if entry[0] == run_id]
        assert own[0][:2] == ("open", "sweep") and own[0][2]["model.width"] == 8 and own[-1] == ("close",)
        points = {entry[1]: entry[2] for entry in own if entry[0] == "curve"}
        frame = store.curves_df([run_id]).set_index("step").drop(columns="run")
        assert points == frame.to_dict("index") and sorted(points) == [10, 20, 30]
        (summary,) = [entry[1:] for entry in own if entry[0] == "summary"]
        scores = store.summaries(run_id)
        assert summary[0] == 30 and summary[1]["status"] == "complete"
        assert summary[1]["r2_held_out"] == scores["r2_held_out"]
    ((_, _, name, cells),) = [entry for entry in remembering.given if entry[1] == "table"]
    assert name == "cells" and cells.equals(result.cells)


def test_workers_report_to_trackers_too(tmp_path, settings, remembering):
    result = swept(tmp_path, settings, track=remembering, engine=rc.engines.ProcessEngine(2, threads=1))
    for run_id in result.runs["run"]:
        own = [entry for entry in remembering.given if entry[0] == run_id]
        assert sorted(entry[2] for entry in own if entry[1] == "curve") == [10, 20, 30]
        assert [entry[1] for entry in own][-2:] == ["summary", "close"]


def test_a_tracker_is_no_part_of_a_run(tmp_path, settings, remembering):
    plain = swept(tmp_path, settings, "plain")
    tracked = swept(tmp_path, settings, "tracked", track=remembering)
    assert list(plain.runs["run"]) == list(tracked.runs["run"])
    for run_id in plain.runs["run"]:
        weights = [(tmp_path / name / "runs" / run_id / "weights.safetensors") for name in ("plain", "tracked")]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize("fails", ["open", "curve", "summary", "close"])
def test_a_tracker_that_fails_is_reported_once_and_ends_nothing(tmp_path, settings, remembering, caplog, fails):
    result = swept(tmp_path, settings, track=[remembering.replace(fails=fails)])
    assert len(result.runs) == 2 and result.runs["score_held_out"].notna().all()
    said = [record.getMessage() for record in caplog.records if "tracker" in record.getMessage()]
    assert len(said) == 1 and "'remembering' failed" in said[0] and "the work goes on" in said[0]


def test_the_end_does_not_wait_for_a_tracker_that_hangs(remembering, monkeypatch, caplog):
    monkeypatch.setattr(tracking, "WAIT_SECONDS", 0.05)
    hangs = threading.Event()
    with Tracking((remembering,), "group") as tracked:
        tracked._give("group", lambda run: hangs.wait(30) and None)
        begin = time.monotonic()
    assert time.monotonic() - begin < 10 and "still busy" in caplog.text
    hangs.set()


def test_a_study_gives_its_verdicts_and_figures(tmp_path, remembering):
    settings = {"modules": 8, "max_active": 2, "width": 8, "depth": 1, "recipe": "paper", "learning_rate": 0.01}
    settings |= {"steps": 30, "tasks": 8, "samples": 4, "eval_every": 10, "validation_tasks": 8}
    settings |= {"numbers": [12, 20], "replicates": 2}
    result = rc.run(
        "data-scaling", profile="smoke", store=tmp_path / "store", quiet=True, track=remembering, **settings
    )
    whole = [entry for entry in remembering.given if entry[0].startswith("data-scaling-smoke")]
    ((_, _, name, verdicts),) = [entry for entry in whole if entry[1] == "table"]
    assert name == "verdicts" and list(verdicts["claim"]) == list(result.verdicts["claim"])
    figures = {entry[2]: entry[3] for entry in whole if entry[1] == "figure"}
    assert set(figures) == {figure.name for figure in result.figures} and figures
    assert set(figures.values()) == {b"\x89PNG\r\n\x1a\n"}
    # What is in the store already is not sent again; verdicts are.
    remembering.given.clear()
    rc.run("data-scaling", profile="smoke", store=tmp_path / "store", quiet=True, track=remembering, **settings)
    assert {entry[0] for entry in remembering.given} == {whole[0][0]}


def test_trackers_are_given_by_name_by_json_or_as_components():
    assert trackers_of(None) == ()
    assert [tracker.kind for tracker in trackers_of(["tensorboard,wandb", "trackio"])] == [
        *("tensorboard", "wandb", "trackio")
    ]
    (made,) = trackers_of('{"kind": "tensorboard", "folder": "events"}')
    assert made == rc.trackers.TensorBoard(folder="events") and trackers_of(made) == (made,)
    assert kinds("trackers") == ("mlflow", "tensorboard", "trackio", "wandb")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tensorbord", "did you mean 'tensorboard'"),
        ("{kind: tensorboard}", "is not JSON"),
        ('{"kind": "tensorboard", "file": "x"}', "nothing called 'file'"),
        ('{"folder": "x"}', "no tracker called ''"),
    ],
)
def test_bad_trackers_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        trackers_of(given)


@pytest.mark.parametrize("kind", ["mlflow", "tensorboard", "trackio", "wandb"])
def test_a_tracker_that_is_not_installed_is_refused_before_training(tmp_path, settings, monkeypatch, kind):
    package = {"tensorboard": "tensorboardX"}.get(kind, kind)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf'pip install "recombine\[{kind}\]"'):
        swept(tmp_path, settings, track=kind)
    assert not (tmp_path / "store").exists()


def test_the_python_of_the_page_names_what_exists(monkeypatch):
    """docs/trackers.md, without training: the calls are recorded, and their trackers are made."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    calls: list[tuple[str, dict[str, Any]]] = []
    for name in ("run", "sweep"):
        real = inspect.signature(getattr(rc, name))
        monkeypatch.setattr(
            rc,
            name,
            lambda *given, name=name, real=real, **named: calls.append((name, real.bind(*given, **named).arguments)),
        )
    exec(compile(code, PAGE.name, "exec", dont_inherit=True), {"rc": rc})
    assert [name for name, _ in calls] == ["run", "sweep"]
    kinds_given = [[tracker.kind for tracker in trackers_of(given["track"])] for _, given in calls]
    assert kinds_given == [["tensorboard"], ["wandb", "mlflow"]]
