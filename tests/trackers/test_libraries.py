"""The four trackers write with their real libraries what can be read back. No network is used."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import recombine as rc
from recombine.figures.base import Figure
from recombine.trackers.tracking import Tracking, trackers_of


def logged(tracker, tmp_path: Path) -> None:
    """Give a tracker one run and a study, as `Tracking` does."""
    import altair as alt
    import pandas as pd

    frame = pd.DataFrame({"claim": ["rises"], "effect": [0.5]})
    figure = Figure("lines", "Lines", "", alt.Chart(frame).mark_point().encode(x="effect:Q"))
    with Tracking(trackers_of(tracker), "study-demo") as tracking:
        for step in (20, 10):  # Out of order, as workers report.
            tracking._give("run-one", lambda run, step=step: run.curve(step, {"loss": step / 10, "score_in": 0.5}))
        tracking._give("run-one", lambda run: run.summary(20, {"r2_held_out": 0.75, "status": "complete"}))
        tracking.group_table("verdicts", frame, {"rises": 0.5})
        tracking.figures(lambda: [figure])


def events(folder: Path):
    """The values in a folder of TensorBoard events: records of (length, checksum, event, checksum)."""
    from tensorboardX.proto.event_pb2 import Event

    (file,) = folder.iterdir()
    data, place = file.read_bytes(), 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        event = Event.FromString(data[place + 12 : place + 12 + length])
        yield from ((event.step, value) for value in event.summary.value)
        place += 16 + length


def test_tensorboard(tmp_path, caplog):
    logged(rc.trackers.TensorBoard(folder=str(tmp_path)), tmp_path)
    found = {(value.tag, step): value for step, value in events(tmp_path / "study-demo" / "run-one")}
    assert found["loss", 10].simple_value == 1 and found["loss", 20].simple_value == 2
    assert found["summary/r2_held_out", 20].simple_value == 0.75
    whole = {value.tag: value for _, value in events(tmp_path / "study-demo" / "study-demo")}
    image = whole["figures/lines"].image
    assert image.encoded_image_string.startswith(b"\x89PNG") and 100 < image.width < 5000 and 100 < image.height < 5000
    assert any("verdicts" in tag for tag in whole) and not caplog.records


def test_mlflow(tmp_path, monkeypatch, caplog):
    from mlflow.tracking import MlflowClient

    logged(rc.trackers.MLflow(uri=str(tmp_path / "mlruns")), tmp_path)
    assert not caplog.records
    client = MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("study-demo")
    assert experiment is not None
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    run = runs["run-one"]
    history = client.get_metric_history(run.info.run_id, "loss")
    assert sorted((point.step, point.value) for point in history) == [(10, 1.0), (20, 2.0)]
    assert run.data.metrics["summary/r2_held_out"] == 0.75 and run.data.tags["status"] == "complete"
    assert run.info.status == "FINISHED"
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert "lines.png" in files and "verdicts.csv" in files


def test_wandb_offline(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    logged(rc.trackers.WandB(mode="offline", folder=str(tmp_path)), tmp_path)
    assert not [record for record in caplog.records if "tracker" in record.getMessage()]
    files = list((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2, "the run and the study"
    text = b"".join(path.read_bytes() for path in files)
    assert b"run-one" in text and b"study-demo" in text and b"r2_held_out" in text and b"score_in" in text
    assert list((tmp_path / "wandb").rglob("lines*.png"))


TRACKIO = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import recombine as rc
from test_libraries import logged
logged(rc.trackers.Trackio(folder=sys.argv[1]), Path(sys.argv[1]))
import json
from trackio.sqlite_storage import SQLiteStorage
print(json.dumps({run: SQLiteStorage.get_logs("recombine", run) for run in ("run-one", "study-demo")}, default=str))
"""


def test_trackio(tmp_path):
    """In a process of its own: trackio reads its folder when it is imported. It prints nothing beside our answer."""
    command = [sys.executable, "-c", TRACKIO, str(tmp_path), str(Path(__file__).parent)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    logs = json.loads(ran.stdout)
    points = {entry["step"]: entry["loss"] for entry in logs["run-one"] if "loss" in entry}
    assert points == {10: 1.0, 20: 2.0}
    assert any(entry.get("summary/r2_held_out") == 0.75 for entry in logs["run-one"])
    assert list(tmp_path.rglob("*.png")) and any("figures/lines" in entry for entry in logs["study-demo"])


@pytest.mark.parametrize("value", ["online", "offline"])
def test_wandb_follows_its_environment_and_asks_for_no_key(monkeypatch, value):
    monkeypatch.setenv("WANDB_MODE", value)
    assert rc.trackers.WandB()._mode() == value
    assert rc.trackers.WandB(mode="offline")._mode() == "offline"
