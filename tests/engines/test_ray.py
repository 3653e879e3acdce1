"""A real cluster of two Ray nodes on this host: what one process does, they do; and one of them may die."""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

from recombine.engines.local import LocalEngine
from recombine.engines.ray import RayEngine
from recombine.errors import BadInput
from recombine.probes.scores import Scores
from recombine.recipes.paper import Paper
from recombine.store.provenance import threads
from recombine.store.store import Store
from recombine.training.progress import Progress

# Not imported here: Ray reads how it keeps strangers out when it is loaded, and the cluster's fixture says that first.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or not Path("/proc/self/task").exists(),
    reason="needs Ray, and looks at processes in /proc",
)

SCORES = Scores(combinations=6, draws=2, samples=4)
LONG = Paper(learning_rate=0.01, steps=3000, tasks=8, samples=4)
"""A second or more: so that a node dies in the middle."""

QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""A dead node is found in seconds, not in half a minute; a slow one still has ten to answer."""


class Watch(Progress):
    def __init__(self, act=lambda config: None):
        self.started_with, self.steps, self.runs, self.measured, self.act = None, 0, set(), [], act

    def started(self, runs, steps):
        self.started_with = (runs, steps)

    def stepped(self, steps, config, evaluation):
        self.steps += steps
        self.act(config)

    def finished(self, outcome):
        self.runs.add(outcome.config.run_id)

    def measuring(self, done, total):
        self.measured.append((done, total))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator:
    """A head without cores, so that all work is done on the two nodes, which have one core each."""
    # A token of its own, outside the home folder: nobody else on the network may use the cluster, and nothing stays.
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    given = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        from ray.cluster_utils import Cluster

        size = {"object_store_memory": 80 * 1024 * 1024}
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": QUICK, **size})
        try:
            made.nodes = [made.add_node(num_cpus=1, **size) for _ in range(2)]
            made.wait_for_nodes(timeout=120)
            yield made
        finally:
            made.shutdown()


def weights(store: Store, config) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(store.load(config).network)]


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for worker in path.read_text().split():
            found += family(int(worker))
    return found


def cut_the_power(node) -> None:
    """SIGKILL to all processes of a node, as many at once as can be."""
    pids = [
        pid for processes in node.all_processes.values() for process in processes for pid in family(process.process.pid)
    ]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.usefixtures("small_units")
def test_results_travel_through_an_object_store_where_nodes_share_no_folder(cluster, small, tmp_path):
    remote = f"file://{tmp_path}/bucket"
    engine = RayEngine(cluster.address, remote=remote)
    configs = [small(12, seed=seed) for seed in range(2)]
    store = Store(tmp_path / "here")
    assert engine.run(store, configs, [SCORES]).trained == 2

    # Another machine finds all of it there, and a run of its own is measured where the workers are.
    other = Store(tmp_path / "elsewhere")
    LocalEngine().run(other, [small(20)])
    sweep = RayEngine(cluster.address, remote=remote).run(other, [*configs, small(20)], [SCORES])
    assert (sweep.trained, sweep.found, sweep.measured) == (0, 3, 1)
    for config in configs:
        assert weights(store, config) == weights(other, config)
        assert store.summaries(config.run_id) == other.summaries(config.run_id)

    # A line of runs: the oldest is in the object store, the others are trained there, parents first.
    child = configs[0].replace(parents=(configs[0],))
    line = child.replace(parents=(child,))
    third, local = Store(tmp_path / "third"), Store(tmp_path / "local")
    sweep = RayEngine(cluster.address, remote=remote).run(third, [line], [SCORES])
    assert (sweep.trained, sweep.measured, sweep.failed) == (2, 1, ())
    LocalEngine().run(local, [line], [SCORES])
    assert third.run_ids() == local.run_ids() and len(third.run_ids()) == 3
    for config in (configs[0], child, line):
        assert weights(third, config) == weights(local, config)
    assert third.summaries(line.run_id) == local.summaries(line.run_id)

    with pytest.raises(BadInput, match="has room for a worker with 1 cores, 1 GPUs"):
        RayEngine(cluster.address, gpus=1).run(other, [small(20, seed=3)])


@pytest.mark.usefixtures("small_units")
def test_a_cluster_gives_what_one_process_gives_though_a_node_dies(cluster, store, small, tmp_path):
    first = [small(12, seed=seed) for seed in range(2)]
    long = [small(12, seed=seed, recipe=LONG, eval_every=50) for seed in range(4)]
    engine = RayEngine(cluster.address, cpus=1, threads=threads())

    # A sweep that nothing disturbs.
    watch = Watch()
    sweep = engine.run(store, first, [SCORES], watch)
    assert (sweep.trained, sweep.found, sweep.measured, sweep.failed) == (2, 0, 2, ())
    assert watch.started_with == (2, 60) and watch.steps == 60 and len(watch.runs) == 2
    assert watch.measured[-1] == (2, 2)
    before = {path: path.stat().st_mtime_ns for path in store.path.glob("runs/*/*")}

    # A node dies when its worker is in the middle of a run. What was stored is not done again.
    killed: list[str] = []

    def kill(config):
        if not killed:
            killed.append(config.run_id)
            cut_the_power(cluster.nodes[0])

    watch = Watch(kill)
    sweep = engine.run(store, [*first, *long], [SCORES], watch)
    assert killed and (sweep.trained, sweep.found, sweep.measured, sweep.failed) == (4, 2, 4, ())
    # What a dying node had told and nobody had taken is missing from the progress; nothing is counted twice.
    assert watch.started_with == (4, 4 * LONG.steps) and 0 < watch.steps <= 4 * LONG.steps
    assert {path: path.stat().st_mtime_ns for path in before} == before

    # No run is lost or there twice, nothing is left lying about, and every bit is that of one process.
    local = Store(tmp_path / "local")
    LocalEngine().run(local, [*first, *long], [SCORES])
    store = Store(store.path)
    assert store.names() == store.run_ids() == sorted(config.run_id for config in [*first, *long])
    assert store.problems == [] and not (store.path / "set-aside").exists()
    assert list((store.path / "temporary").glob("*")) == []
    for config in [*first, *long]:
        assert weights(store, config) == weights(local, config)
        assert store.load(config).manifest["plan"] == local.load(config).manifest["plan"]
        assert store.summaries(config.run_id) == local.summaries(config.run_id)
