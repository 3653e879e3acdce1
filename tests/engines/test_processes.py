"""Several processes do what one does; one that dies takes nothing with it, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from recombine.engines import processes
from recombine.engines.local import LocalEngine
from recombine.engines.processes import ProcessEngine
from recombine.engines.worker_process import WorkerProcess
from recombine.errors import BadInput, RecombineError
from recombine.probes.scores import Scores
from recombine.recipes.paper import Paper
from recombine.store.provenance import threads
from recombine.store.store import Store
from recombine.training.progress import Progress

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")

SCORES = Scores(combinations=6, draws=2, samples=4)
LONG = Paper(learning_rate=0.01, steps=3000, tasks=8, samples=4)
"""A second or more: so that something can happen in the middle."""
ENDLESS = Paper(learning_rate=0.01, steps=10_000_000, tasks=8, samples=4)


class Watch(Progress):
    """Notes what is reported; calls `act` at every evaluation of a run."""

    def __init__(self, act=lambda config: None):
        self.started_with, self.steps, self.measured, self.runs, self.act = None, 0, [], {}, act

    def started(self, runs, steps):
        self.started_with = (runs, steps)

    def stepped(self, steps, config, evaluation):
        self.steps += steps
        self.act(config)

    def finished(self, outcome):
        self.runs[outcome.config.run_id] = outcome

    def measuring(self, done, total):
        self.measured.append((done, total))


@pytest.fixture
def children(monkeypatch) -> list[WorkerProcess]:
    """The worker processes that engines start."""
    started = []

    class Noted(WorkerProcess):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(processes, "WorkerProcess", Noted)
    return started


def weights(store: Store, config) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(store.load(config).network)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("small_units")
def test_two_processes_give_what_one_gives(store, small, tmp_path, children):
    configs = [small(12, seed=seed) for seed in range(3)] + [small(12, learning_rate=1e30)]
    watch = Watch()
    engine = ProcessEngine(2, threads())
    sweep = engine.run(store, [*configs, configs[0]], [SCORES], watch)
    assert (sweep.trained, sweep.found, sweep.measured) == (4, 0, 3)
    assert sweep.failed == (configs[3].run_id,)
    assert 1 <= sweep.compilations <= 2 and len(children) == 2
    # Progress is that of one sweep.
    assert watch.started_with == (4, 120) and watch.measured[-1] == (3, 3)
    assert watch.steps == sum(outcome.steps for outcome in watch.runs.values())
    assert set(watch.runs) == {config.run_id for config in configs}
    assert watch.runs[configs[3].run_id].failed_at is not None
    assert [point["step"] for point in watch.runs[configs[0].run_id].curves] == [10, 20, 30]

    # Equal plan, equal bits.
    local = Store(tmp_path / "local")
    LocalEngine().run(local, configs, [SCORES])
    for config in configs[:3]:
        assert weights(store, config) == weights(local, config)
        assert store.load(config).manifest["plan"] == local.load(config).manifest["plan"]
        assert store.summaries(config.run_id) == local.summaries(config.run_id)
    assert list((store.path / "temporary").glob("*")) == []

    again = engine.run(store, configs, [SCORES])
    assert (again.trained, again.found, again.measured, again.failed) == (0, 4, 0, sweep.failed)
    assert len(children) == 2, "no process is started for nothing"


@pytest.mark.usefixtures("small_units")
def test_cores_are_shared_out_and_written_down(store, small):
    engine = ProcessEngine(threads())
    assert engine.threads == 1 and ProcessEngine(10_000).threads == 1
    engine.run(store, [small()])
    assert store.load(small()).manifest["plan"]["threads"] == 1
    with pytest.raises(BadInput, match="0 processes"):
        ProcessEngine(0)


@pytest.mark.usefixtures("large_units")
def test_a_process_that_is_killed_loses_nothing(store, small, children):
    configs = [small(12, seed=seed, recipe=LONG, eval_every=50) for seed in range(3)]
    first = []

    def kill(config):
        if not first:
            first.append(config.run_id)
            os.kill(children[0].pid, signal.SIGKILL)

    watch = Watch(kill)
    sweep = ProcessEngine(1, 1).run(store, configs, [SCORES], watch)
    assert sweep.trained == 3 and sweep.measured == 3 and len(children) == 2
    assert watch.steps == 3 * LONG.steps, "what is done again is not counted again"
    assert sorted(store.run_ids()) == sorted(config.run_id for config in configs)


class Sleeper(WorkerProcess):
    """A process that does nothing, in the place of a worker."""

    def __init__(self, *_):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`.
        self._process = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says whether a process is stopped")
def test_a_worker_that_is_stopped_is_noticed_and_its_unit_is_given_to_another(store, monkeypatch):
    monkeypatch.setattr(processes, "WorkerProcess", Sleeper)
    monkeypatch.setattr(processes, "LOOK_SECONDS", 0.02)
    lost = []
    work = SimpleNamespace(lost=lambda number, why: lost.append((number, why)))
    workers = processes._Workers(None, {})
    workers.give(7, SimpleNamespace(model_dump_json=lambda: "{}"))
    worker = next(iter(workers.busy))
    try:
        workers.wait(work, store)
        assert store.problems == [] and lost == []
        os.kill(worker.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while not store.problems and time.monotonic() < deadline:
            workers.wait(work, store)
        assert f"kill -CONT {worker.pid}" in store.problems[0] and lost == []
        monkeypatch.setattr(processes, "STOPPED_SECONDS", 0.0)
        while not lost and time.monotonic() < deadline:
            workers.wait(work, store)
        assert lost[0][0] == 7 and "SIGKILL" in lost[0][1]
    finally:
        workers.stop()


@pytest.mark.usefixtures("large_units")
def test_a_run_that_kills_its_process_again_is_named_and_the_others_are_kept(store, small, children):
    victim = small(12, seed=1, recipe=ENDLESS)
    configs = [small(12), victim]

    def kill(config):
        if config == victim:
            os.kill(children[-1].pid, signal.SIGKILL)

    with pytest.raises(RecombineError, match=f"1 runs could not be finished.*{victim.run_id}.*SIGKILL") as error:
        ProcessEngine(1, 1).run(store, configs, progress=Watch(kill))
    assert error.value.exit_code == 1
    assert store.run_ids() == [small(12).run_id]
    assert not any(alive(worker.pid) for worker in children)


@pytest.mark.usefixtures("large_units")
def test_a_run_that_needs_more_memory_than_it_may_have_is_named(store, small):
    big = small(12, recipe=Paper(learning_rate=0.01, steps=10, tasks=512, samples=20_000))
    engine = ProcessEngine(1, 1, memory=800_000_000)
    with pytest.raises(RecombineError, match=f"{big.run_id}.*memory") as error:
        engine.run(store, [small(12), big])
    assert "memory" in error.value.fix
    assert store.run_ids() == [small(12).run_id]


@pytest.mark.usefixtures("large_units")
def test_ctrl_c_stops_the_processes_and_the_same_sweep_goes_on(store, small, children):
    configs = [small(12), small(12, seed=1, recipe=ENDLESS)]

    def interrupt(config):
        if config == configs[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ProcessEngine(1, 1).run(store, configs, progress=Watch(interrupt))
    assert not any(alive(worker.pid) for worker in children)
    assert store.run_ids() == [small(12).run_id] and store.problems == []
    assert list((store.path / "temporary").glob("*")) == []
    sweep = ProcessEngine(1, 1).run(store, [small(12), small(20)])
    assert (sweep.trained, sweep.found) == (1, 1)


PARENT = """
import sys
from recombine.engines import work_queue
from recombine.engines.work_units import WorkUnit
from recombine.engines.processes import ProcessEngine
from recombine.store.store import Store
unit = WorkUnit.model_validate_json(sys.argv[1])
work_queue.MIN_UNIT_SECONDS = 0.0
ProcessEngine(2, 1).run(Store(sys.argv[2]), unit.configs)
"""


def test_a_killed_parent_leaves_no_process_behind(store, small):
    from recombine.engines.work_units import WorkUnit

    unit = WorkUnit(configs=tuple(small(12, seed=seed, recipe=ENDLESS) for seed in range(2)))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, unit.model_dump_json(), str(store.path)])
    try:
        deadline = time.monotonic() + 120
        pids: list[int] = []
        while len(pids) < 2:
            assert parent.poll() is None and time.monotonic() < deadline
            tasks = Path(f"/proc/{parent.pid}/task").glob("*/children")
            pids = [int(pid) for path in tasks for pid in path.read_text().split()]
            time.sleep(0.1)
        time.sleep(1)
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.1)
