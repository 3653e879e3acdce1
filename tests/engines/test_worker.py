"""What a worker answers, whatever comes of a unit."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from recombine.engines.events import EventWriter
from recombine.engines.local import LocalEngine
from recombine.engines.work_units import WorkUnit
from recombine.engines.worker import WorkerOptions, answer, run_unit
from recombine.errors import BadInput, RecombineError, StoreError
from recombine.probes.scores import Scores


class Breaking(LocalEngine):
    def __init__(self, error):
        self.error = error

    def run(self, *_, **__):
        raise self.error


@pytest.mark.parametrize(
    "error, event",
    [
        (MemoryError(), {"event": "lost"}),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1600000000 bytes."), {"event": "lost"}),
        (BadInput("no", fix="so"), {"event": "refused", "kind": "input", "message": "no", "fix": "so"}),
        (StoreError("full"), {"event": "refused", "kind": "store", "message": "full"}),
        (RecombineError("too large", fix="less"), {"event": "broken", "why": "too large", "fix": "less"}),
        (ZeroDivisionError("by what"), {"event": "broken", "why": "ZeroDivisionError: by what"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_are_answers(store, small, error, event):
    said = run_unit(WorkUnit(configs=(small(),)), store, Breaking(error), lambda _: None)
    assert event.items() <= said.items()
    json.dumps(said)


def test_a_node_that_does_not_see_the_folder_says_so_and_makes_none(small, tmp_path):
    options = WorkerOptions(store=str(tmp_path / "nowhere"))
    said = answer(options, WorkUnit(configs=(small(),)).model_dump_json(), LocalEngine(), lambda _: None)
    assert said["event"] == "refused" and "There is no store" in said["message"]
    assert not (tmp_path / "nowhere").exists()


def test_reports_of_steps_are_rare_but_none_is_lost(small):
    said = []
    telling = EventWriter(said.append, interval=1000.0)
    telling.stepped(10, small(), {"step": 10})
    telling.stepped(10, small(), {"step": 20})
    telling.stepped(10, small(seed=1), {"step": 10})
    assert [event["evaluations"] for event in said] == [{small().run_id: {"step": 10}}]
    telling._flush()
    assert said[-1]["evaluations"] == {small().run_id: {"step": 20}, small(seed=1).run_id: {"step": 10}}


def test_a_worker_writes_events_and_nothing_else(store, small):
    unit = WorkUnit(configs=(small(),), measurements=(Scores(combinations=6, draws=2, samples=4),))
    command = [sys.executable, "-m", "recombine.engines.worker", WorkerOptions(store=str(store.path)).model_dump_json()]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    worker.stdin.write(unit.model_dump_json() + "\n")
    worker.stdin.flush()
    events = [json.loads(worker.stdout.readline())]
    while events[-1]["event"] != "done":
        events.append(json.loads(worker.stdout.readline()))
    rest, _ = worker.communicate(timeout=60)
    assert rest == "" and worker.returncode == 0
    assert {event["event"] for event in events} == {"compiling", "stepped", "finished", "measuring", "done"}
    assert events[-1]["stored"] == [small().run_id] and events[-1]["measured"] == 1
