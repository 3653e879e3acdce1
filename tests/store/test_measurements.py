"""Measurements stand beside the run: they can be added later, and a damaged one costs nothing but itself."""

from __future__ import annotations

import json

import pytest

from recombine.engines.local import LocalEngine
from recombine.probes.base import Measured
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.store.files import moved
from recombine.store.store import Store
from recombine.training.trainer import Trainer

RESULT = Measured({"r2_in": 0.5, "r2_held_out": 0.25}, {"a": [1, 2], "b": ["x", "y"]})


@pytest.fixture
def measured(store, ended, small, small_scores):
    store.commit(ended(small()))
    store.add_measurement(small().run_id, small_scores, RESULT)
    return store


def places(store, run_id, measurement):
    folder = store.folder(run_id) / "measurements"
    return folder / f"{measurement.name}.json", folder / f"{measurement.name}.parquet"


def test_a_measurement_comes_back(measured, small, small_scores):
    store = Store(measured.path)
    assert store.has_measurement(small().run_id, small_scores)
    assert not store.has_measurement(small().run_id, Scores(combinations=7))
    assert store.summaries(small().run_id) == RESULT.summary
    record = json.loads(places(store, small().run_id, small_scores)[0].read_text())
    assert record["measurement"] == small_scores.model_dump(mode="json")
    assert set(record["provenance"]) == {"time", "versions", "machine"}


def test_parameters_and_version_name_a_measurement(small_scores, monkeypatch):
    names = {small_scores.name, Scores().name, Decodability().name}
    monkeypatch.setattr(Scores, "version", Scores.version + 1)
    assert len(names | {small_scores.name}) == 4


def test_measurements_are_added_later_without_training(store, ended, small, small_scores, monkeypatch):
    store.commit(ended(small()))
    folder = store.folder(small().run_id)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}

    def train(self, configs, stack_size=None):
        assert list(configs) == []
        return iter(())

    monkeypatch.setattr(Trainer, "train", train)
    sweep = LocalEngine().run(store, [small()], [small_scores])
    assert (sweep.trained, sweep.found, sweep.measured, sweep.compilations) == (0, 1, 1, 0)
    assert {"r2_in", "r2_held_out"} <= set(store.summaries(small().run_id))
    later = LocalEngine().run(store, [small()], [small_scores, Scores(combinations=6, draws=1, samples=4)])
    assert later.measured == 1
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("*.*")}
    assert after == before


def test_a_second_sweep_measures_nothing(measured, small, small_scores):
    places_before = [path.stat().st_mtime_ns for path in places(measured, small().run_id, small_scores)]
    sweep = LocalEngine().run(measured, [small()], [small_scores])
    assert sweep.measured == 0
    assert [path.stat().st_mtime_ns for path in places(measured, small().run_id, small_scores)] == places_before


DAMAGES = {
    "table cut short": lambda record, table: table.write_bytes(table.read_bytes()[:100]),
    "table missing": lambda record, table: table.unlink(),
    "record cut short": lambda record, table: record.write_text(record.read_text()[:40]),
    "record a list": lambda record, table: record.write_text("[]"),
    "record without summary": lambda record, table: record.write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_measurement_is_reported_set_aside_and_made_again(measured, small, small_scores, damage):
    record, table = places(measured, small().run_id, small_scores)
    DAMAGES[damage](record, table)
    kept = {path.read_bytes() for path in (record, table) if path.exists()}

    store = Store(measured.path)
    assert not store.has_measurement(small().run_id, small_scores)
    assert store.summaries(small().run_id) == {}
    assert store.combinations_df().empty
    assert store.run_ids() == [small().run_id], "the run itself is sound"
    assert len(store.problems) == 1 and small_scores.name in store.problems[0]

    store.add_measurement(small().run_id, small_scores, RESULT)
    assert store.summaries(small().run_id) == RESULT.summary
    assert {path.read_bytes() for path in moved(store.path)} == kept


def test_a_table_of_the_right_length_that_cannot_be_read_is_reported(measured, small, small_scores):
    _, table = places(measured, small().run_id, small_scores)
    table.write_bytes(b"\xff" * table.stat().st_size)
    store = Store(measured.path)
    assert store.combinations_df().empty
    assert len(store.problems) == 1 and table.name in store.problems[0]


def test_a_crash_before_the_record_leaves_no_measurement(store, ended, small, small_scores, monkeypatch):
    import recombine.store.measurements as module

    store.commit(ended(small()))

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "sealed", crash)
    with pytest.raises(KeyboardInterrupt):
        store.add_measurement(small().run_id, small_scores, RESULT)
    assert not store.has_measurement(small().run_id, small_scores)
    assert store.problems == []


def test_of_two_measurements_the_newer_counts_in_numbers_and_tables(measured, small):
    other = Scores(combinations=1)
    for value, measurement in ((0.1, other), (0.2, Scores(combinations=2)), (0.3, other)):
        summary, columns = {"r2_in": value}, {"value": [value]}
        measured.add_measurement(small().run_id, measurement, Measured(summary, columns))
    assert measured.runs_df()["r2_in"].item() == 0.3
    chosen = [Scores(combinations=2)]
    assert measured.runs_df(chosen=chosen)["r2_in"].item() == 0.2
    assert "r2_held_out" not in measured.runs_df(chosen=chosen).columns


def test_unreadable_weights_cost_only_their_own_run(store, ended, small, small_scores):
    for seed in range(2):
        store.commit(ended(small(seed=seed)))
    weights = store.folder(small().run_id) / "weights.safetensors"
    weights.write_bytes(b"\xff" * weights.stat().st_size)
    sweep = LocalEngine().run(store, [small(), small(seed=1)], [small_scores])
    assert (sweep.trained, sweep.measured) == (1, 2), "it is noticed before training, and made again"
    assert store.has_measurement(small(seed=1).run_id, small_scores)
    (aside,) = moved(store.path)
    assert (aside / "weights.safetensors").exists()
    assert any("not the file that was written" in problem for problem in store.problems)


def test_a_measurement_may_be_a_summary_and_nothing_else(store, ended, small, small_scores):
    store.commit(ended(small()))
    store.add_measurement(small().run_id, small_scores, Measured({"r2_in": 0.5}, {}))
    assert len(store.probes_df(kind="scores")) == 0
    assert store.summaries(small().run_id) == {"r2_in": 0.5}
    assert not store.problems
