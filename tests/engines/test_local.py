"""A sweep does what is missing, goes on after failures, and loses nothing when it is stopped."""

from __future__ import annotations

import errno
import os

import jax
import numpy as np
import pytest

from recombine.engines.base import plan
from recombine.engines.local import LocalEngine
from recombine.errors import BadInput, StoreError
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.store.files import moved
from recombine.store.repair import Examination
from recombine.store.store import Store
from recombine.training import trainer as training
from recombine.training.progress import Progress
from recombine.training.trainer import Trainer, train

HUGE = 1e30
"""A learning rate at which the loss is not finite after the first step."""

SCORES = Scores(combinations=6, draws=2, samples=4)


class Watch(Progress):
    """Notes what a sweep reports, and stops it when told to."""

    def __init__(self, stop_after_runs: int | None = None, stop_after_looks: int | None = None) -> None:
        self.runs: list[str] = []
        self.looks = 0
        self.steps = 0
        self.measured: list[tuple[int, int]] = []
        self.expected = (0, 0)
        self._stop_after_runs, self._stop_after_looks = stop_after_runs, stop_after_looks

    def started(self, runs, steps):
        self.expected = (runs, steps)

    def stepped(self, steps, config, evaluation):
        self.looks += 1
        self.steps += steps
        if self._stop_after_looks is not None and self.looks >= self._stop_after_looks:
            raise KeyboardInterrupt

    def finished(self, outcome):
        # Ctrl-C between two runs: the runs before this one are stored, this one is not yet.
        if self._stop_after_runs is not None and len(self.runs) >= self._stop_after_runs:
            raise KeyboardInterrupt
        self.runs.append(outcome.config.run_id)

    def measuring(self, done, total):
        self.measured.append((done, total))


def weights(store: Store, config) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(store.load(config).network)]


def test_a_sweep_trains_only_what_is_missing(store, small):
    first = LocalEngine().run(store, [small(12), small(12, seed=1)])
    assert (first.trained, first.found, first.failed) == (2, 0, ())
    files = {path: path.stat().st_mtime_ns for path in store.path.glob("runs/*/*")}

    watch = Watch()
    second = LocalEngine().run(store, [small(12), small(20), small(12, seed=1)], progress=watch)
    assert (second.trained, second.found) == (1, 2)
    assert watch.expected == (1, 30) and watch.runs == [small(20).run_id]
    assert {path: path.stat().st_mtime_ns for path in files} == files

    third = LocalEngine().run(store, [small(12), small(20), small(12, seed=1)])
    assert (third.trained, third.found, third.compilations, third.train_seconds) == (0, 3, 0, 0.0)


@pytest.mark.usefixtures("fresh_programs")
def test_a_sweep_compiles_once_a_bucket(store, small):
    same = [small(12), small(20), small(12, seed=1), small(12, learning_rate=1e-3)]
    other = small(12, model=MLP(width=8, depth=1))
    sweep = LocalEngine().run(store, [*same, other])
    assert sweep.trained == 5 and sweep.compilations == 2
    assert sweep.compile_seconds > 0 and sweep.train_seconds > 0
    told = store.runs_df()["compile_seconds"]
    assert (told > 0).sum() == 2 and told.sum() == pytest.approx(sweep.compile_seconds)


def test_a_run_given_twice_is_done_once(store, small):
    sweep = LocalEngine().run(store, [small(), small(), small()])
    assert (sweep.trained, sweep.found) == (1, 0)


def test_the_stored_run_is_the_trained_one(store, small):
    LocalEngine().run(store, [small()])
    alone = train(small())
    for stored, trained in zip(weights(store, small()), jax.tree.leaves(alone.network), strict=True):
        np.testing.assert_allclose(stored, trained, atol=1e-5)
    assert not np.array_equal(weights(store, small())[0], jax.tree.leaves(alone.setting.network())[0])


def test_a_failed_run_is_recorded_with_its_step_and_the_sweep_goes_on(store, small):
    configs = [small(12), small(12, learning_rate=HUGE), small(12, seed=1), small(20, learning_rate=HUGE), small(20)]
    sweep = LocalEngine().run(store, configs, [SCORES])
    assert sweep.trained == 5
    assert set(sweep.failed) == {small(12, learning_rate=HUGE).run_id, small(20, learning_rate=HUGE).run_id}
    assert sweep.measured == 3, "what failed is not measured"
    for config in configs:
        failed = config.recipe.learning_rate == HUGE
        assert store.status(config.run_id) == ("failed" if failed else "complete")
        assert store.has_measurement(config.run_id, SCORES) is not failed
    step = store.load(small(12, learning_rate=HUGE)).manifest["failed_at"]
    # The first loss is that of the network before the first update.
    assert 1 <= step < 10
    frame = store.runs_df().set_index("run")
    assert frame.loc[list(sweep.failed), "r2_in"].isna().all()
    assert frame.drop(index=list(sweep.failed))["r2_in"].notna().all()

    again = LocalEngine().run(store, configs, [SCORES])
    assert (again.trained, again.measured, set(again.failed)) == (0, 0, set(sweep.failed))


def test_ctrl_c_between_runs_keeps_those_that_ended_and_a_second_sweep_does_the_rest(store, small):
    configs = [small(12, seed=seed) for seed in range(4)]
    with pytest.raises(KeyboardInterrupt):
        LocalEngine().run(store, configs, [SCORES], Watch(stop_after_runs=2))
    kept = store.run_ids()
    assert len(kept) == 2 and store.problems == []
    assert list((store.path / "temporary").glob("*")) == []

    watch = Watch()
    sweep = LocalEngine().run(store, configs, [SCORES], watch)
    assert (sweep.trained, sweep.found, sweep.measured) == (2, 2, 4)
    assert set(watch.runs) == {config.run_id for config in configs} - set(kept)


def test_a_stopped_run_goes_on_from_its_checkpoint_and_ends_the_same(store, small, tmp_path, monkeypatch):
    whole = Store(tmp_path / "whole")
    LocalEngine().run(whole, [small()])

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    with pytest.raises(KeyboardInterrupt):
        LocalEngine().run(store, [small()], progress=Watch(stop_after_looks=3))
    assert store.run_ids() == []
    assert [path.stem for path in store.checkpoints.iterdir()] == [small().run_id]

    watch = Watch()
    LocalEngine().run(store, [small()], progress=watch)
    # The checkpoint's 20 steps are reported at once, then the ten that were left.
    assert (watch.looks, watch.steps) == (2, 30)
    for stopped, straight in zip(weights(store, small()), weights(whole, small()), strict=True):
        assert stopped.tobytes() == straight.tobytes()
    assert store.curves_df()["step"].tolist() == [10, 20, 30]
    assert list(store.checkpoints.iterdir()) == [], "the checkpoint of a stored run is dropped"


def test_a_damaged_checkpoint_costs_time_but_not_the_run(store, small):
    store.checkpoints.mkdir()
    (store.checkpoints / f"{small().run_id}.safetensors").write_bytes(b"half")
    sweep = LocalEngine().run(store, [small()])
    assert sweep.trained == 1 and store.status(small().run_id) == "complete"


def test_ctrl_c_between_measurements_keeps_those_that_were_made(store, small):
    configs = [small(12, seed=seed) for seed in range(3)]
    LocalEngine().run(store, configs)

    class Stop(Progress):
        def measuring(self, done, total):
            if done == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LocalEngine().run(store, configs, [SCORES], Stop())
    assert sum(store.has_measurement(config.run_id, SCORES) for config in configs) == 2
    assert LocalEngine().run(store, configs, [SCORES]).measured == 1


def test_a_damaged_run_is_trained_again(store, small):
    LocalEngine().run(store, [small(), small(seed=1)])
    before = weights(store, small())
    (store.folder(small().run_id) / "weights.safetensors").write_bytes(b"")
    sweep = LocalEngine().run(Store(store.path), [small(), small(seed=1)])
    assert (sweep.trained, sweep.found) == (1, 1)
    for one, two in zip(before, weights(store, small()), strict=True):
        assert one.tobytes() == two.tobytes(), "equal plan, equal bits"
    assert len(moved(store.path)) == 1


def refuse(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_store_that_cannot_be_written_is_found_before_training(store, small, monkeypatch):
    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Trainer, "train", lambda *_: pytest.fail("trained for nothing"))
    with pytest.raises(StoreError, match="no space left"):
        LocalEngine().run(store, [small()])


def test_a_disk_that_fills_up_during_training_is_explained(store, small, monkeypatch):
    LocalEngine().run(store, [small()])

    class Fill(Watch):
        def stepped(self, steps, config, evaluation):
            monkeypatch.setattr(os, "fsync", refuse)

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    with pytest.raises(StoreError, match="no space left"):
        LocalEngine().run(store, [small(seed=1)], progress=Fill())
    monkeypatch.undo()
    assert store.run_ids() == [small().run_id] and store.problems == []
    assert LocalEngine().run(store, [small(), small(seed=1)]).trained == 1


def test_progress_counts_every_step_and_measurement(store, small):
    watch = Watch()
    LocalEngine().run(store, [small(), small(seed=1)], [SCORES], watch)
    assert watch.expected == (2, 60) and watch.steps == 60
    assert watch.measured[0] == (0, 2) and watch.measured[-1] == (2, 2)


def test_the_plan_says_what_is_left_and_makes_nothing(store, small):
    configs = [small(12), small(20), small(12, learning_rate=HUGE)]
    ahead = plan(None, [*configs, small(12)], [SCORES])
    assert (ahead.runs, ahead.done, ahead.failed, ahead.buckets) == (3, 0, 0, 1)
    assert (ahead.steps, ahead.measurements) == (90, 3)
    assert plan(store, configs, [SCORES]) == ahead

    LocalEngine().run(store, configs[:1], [SCORES])
    LocalEngine().run(store, configs[2:])
    between = plan(store, configs, [SCORES])
    assert (between.done, between.failed, between.steps, between.measurements) == (1, 1, 30, 1)
    LocalEngine().run(store, configs, [SCORES])
    after = plan(store, configs, [SCORES])
    assert (after.done, after.failed, after.buckets, after.steps, after.measurements) == (2, 1, 0, 0, 0)


def test_a_run_that_does_not_allow_a_measurement_keeps_no_other_from_it(store, small, monkeypatch):
    """It is written down and not tried again; tables and plans go on without it."""
    measure = Scores.measure

    def choosy(self, setting, network):
        if setting.config.seeds.init == 1:
            raise BadInput("There is nothing here to measure.", fix="hold out more")
        return measure(self, setting, network)

    monkeypatch.setattr(Scores, "measure", choosy)
    picky = Scores(combinations=6, draws=2, samples=4)
    configs = [small(12, seed=seed) for seed in range(3)]
    sweep = LocalEngine().run(store, configs, [picky])
    assert (sweep.trained, sweep.measured, sweep.failed) == (3, 3, ())
    assert any("nothing here to measure" in problem for problem in store.problems)
    again = LocalEngine().run(store, configs, [picky])
    assert again.measured == 0 and plan(store, configs, [picky]).measurements == 0
    fresh = Store(store.path)
    assert set(fresh.combinations_df()["run"]) == {configs[0].run_id, configs[2].run_id}
    scores = fresh.runs_df().set_index("run")["r2_held_out"]
    assert np.isnan(scores[configs[1].run_id]) and np.isfinite(scores[configs[0].run_id])
    assert fresh.problems == [] and Examination(store.path, repair=False).run() == []


def test_summary_numbers_that_a_measurement_does_not_declare_are_a_mistake(store, small, monkeypatch):
    """Studies check their claims against the declared columns, so a measurement must declare all of them."""
    monkeypatch.setattr(Scores, "summary_columns", lambda self, config: frozenset({"r2_in"}))
    with pytest.raises(TypeError, match=r"'scores' does not declare .*r2_held_out"):
        LocalEngine().run(store, [small(12)], [SCORES])
