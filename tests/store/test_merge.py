"""Merging: the first wins, measurements are united, nothing is lost, and doing it again changes nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recombine.errors import BadInput, StoreError
from recombine.probes.base import Measured
from recombine.probes.scores import Scores
from recombine.store.files import sealed
from recombine.store.merge import merge
from recombine.store.requests import remember, requests
from recombine.store.store import Store
from recombine.store.tags import add_tag, tags

SEEDS = range(5)
PROBES = [Scores(combinations=6, draws=2, samples=n) for n in (3, 4, 5)]


@pytest.fixture(scope="session")
def runs(tmp_path_factory, ended, small):
    """One store for each of five runs, each with measurements of its own; to be copied together into others."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        Store(folder / str(seed)).commit(ended(small(seed=seed), failed_at=7 if seed == 4 else None))
    return folder


def measured(store, run_id, number):
    """The measurement of this number, made at a time of its own."""
    store.add_measurement(run_id, PROBES[number], Measured({"r2_in": float(number)}, {"a": [number]}))
    folder = store.folder(run_id) / "measurements"
    record = json.loads((folder / f"{PROBES[number].name}.json").read_text())
    record["provenance"]["time"] = f"2030-01-01T00:00:0{number}+00:00"
    (folder / f"{PROBES[number].name}.json").write_text(json.dumps(sealed(record)))
    for path in folder.glob(f"{PROBES[number].name}.*"):
        os.utime(path, ns=(10**18 + number, 10**18 + number))


def filled(path, runs, small, chosen):
    """A store with these runs: from seed to the numbers of its measurements."""
    store = Store(path)
    (path / "runs").mkdir()
    for seed, numbers in chosen.items():
        run_id = small(seed=seed).run_id
        shutil.copytree(runs / str(seed) / "runs" / run_id, store.folder(run_id))
        for number in numbers:
            measured(store, run_id, number)
    if chosen:
        add_tag(store, "all", store.run_ids())
    return store


def contents(path):
    return {
        one.relative_to(path).as_posix(): (one.read_bytes(), one.stat().st_mtime_ns if "runs" in one.parts else 0)
        for one in path.rglob("*")
        if one.is_file()
    }


def meaning(path):
    """What a store holds, but for the moments at which measurements were made."""
    store = Store(path, create=False)
    return {
        run_id: (
            (store.folder(run_id) / "manifest.json").read_bytes(),
            [record["measurement"] for _, record in store.measured(run_id)],
            store.summaries(run_id),
        )
        for run_id in store.run_ids()
    }, tags(store)


some = st.dictionaries(st.sampled_from(list(SEEDS)), st.sets(st.sampled_from(range(3))))
fixtures = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fixtures
@given(one=some, two=some)
def test_a_merge_holds_the_union_and_again_changes_nothing(runs, small, one, two):
    with tempfile.TemporaryDirectory() as folder:
        mine, other = (filled(Path(folder) / name, runs, small, chosen) for name, chosen in (("a", one), ("b", two)))
        theirs = contents(other.path)
        done = merge(mine, other.path)
        assert len(done.runs) == len(two.keys() - one.keys()) and done.known == len(one.keys() & two.keys())
        assert done.measurements == sum(len(two[seed] - one[seed]) for seed in one.keys() & two.keys())
        assert mine.run_ids() == sorted(small(seed=seed).run_id for seed in one.keys() | two.keys())
        for seed in one.keys() | two.keys():
            numbers = sorted(one.get(seed, set()) | two.get(seed, set()))
            run_id = small(seed=seed).run_id
            names = [path.stem for path, _ in mine.measured(run_id)]
            assert names == [PROBES[number].name for number in numbers], "in the order in which they were made"
        assert done.conflicts == done.problems == mine.problems == []
        once = contents(mine.path)
        again = merge(mine, other.path)
        assert (again.runs, again.measurements, again.records, again.tags) == ([], 0, [], 0)
        assert contents(mine.path) == once and contents(other.path) == theirs


@fixtures
@given(parts=st.lists(st.sets(st.sampled_from(list(SEEDS))), min_size=2, max_size=3))
def test_the_order_of_disjoint_stores_does_not_matter(runs, small, parts):
    taken = set()
    with tempfile.TemporaryDirectory() as folder:
        stores = []
        for index, part in enumerate(parts):
            chosen = {seed: {seed % 3} for seed in part - taken}
            taken |= part
            stores.append(filled(Path(folder) / str(index), runs, small, chosen))
        results = []
        for order in itertools.permutations(stores):
            target = Store(Path(folder) / f"merged-{len(results)}")
            for store in order:
                merge(target, store.path)
            results.append(contents(target.path))
        assert all(result == results[0] for result in results)
        assert len({name.split("/")[1] for name in results[0] if name.startswith("runs/")}) == len(taken)


@fixtures
@given(one=some, two=some)
def test_what_overlaps_means_the_same_in_either_order(runs, small, one, two):
    with tempfile.TemporaryDirectory() as folder:
        stores = [filled(Path(folder) / name, runs, small, chosen) for name, chosen in (("a", one), ("b", two))]
        results = []
        for order in (stores, stores[::-1]):
            target = Store(Path(folder) / f"merged-{len(results)}")
            for store in order:
                merge(target, store.path)
            results.append(meaning(target.path))
        assert results[0] == results[1]


@pytest.fixture
def pair(tmp_path):
    return Store(tmp_path / "mine"), Store(tmp_path / "other")


def test_other_weights_under_the_same_name_are_kept_out_with_their_measurements(pair, ended, small):
    mine, other = pair
    mine.commit(ended(small(), shift=0.5))
    other.commit(ended(small(), shift=0.25))
    measured(other, small().run_id, 0)
    before = contents(mine.path)
    for _ in range(2):
        done = merge(mine, other.path)
        assert len(done.conflicts) == 1 and small().run_id in done.conflicts[0]
        assert "other weights" in done.conflicts[0]
        assert contents(mine.path) == before


def test_equal_weights_in_another_file_are_the_same_run(pair, ended, small):
    mine, other = pair
    mine.commit(ended(small(), seconds=1.0))
    other.commit(ended(small(), seconds=2.0, stack_size=4))
    assert merge(mine, other.path).known == 1
    assert mine.load(small()).manifest["seconds"] == 1.0


def test_a_run_that_failed_here_and_ended_there_is_a_conflict(pair, ended, small):
    mine, other = pair
    mine.commit(ended(small(), failed_at=3))
    other.commit(ended(small()))
    done = merge(mine, other.path)
    assert len(done.conflicts) == 1 and "ended otherwise" in done.conflicts[0]
    assert mine.status(small().run_id) == "failed"


def test_a_damaged_run_there_is_reported_and_the_others_are_taken(pair, ended, small):
    mine, other = pair
    for seed in range(2):
        other.commit(ended(small(seed=seed)))
    (other.folder(small().run_id) / "weights.safetensors").unlink()
    done = merge(mine, other.path)
    assert done.runs == [small(seed=1).run_id] and len(done.problems) == 1


def test_a_damaged_run_here_is_set_aside_for_a_sound_one(pair, ended, small):
    mine, other = pair
    mine.commit(ended(small()))
    (mine.folder(small().run_id) / "weights.safetensors").write_bytes(b"")
    other.commit(ended(small()))
    assert merge(mine, other.path).runs == [small().run_id]
    assert mine.status(small().run_id) == "complete" and list((mine.path / "set-aside").iterdir())


def test_a_damaged_measurement_here_gives_way_and_one_there_is_not_taken(pair, ended, small):
    mine, other = pair
    for store in pair:
        store.commit(ended(small()))
        measured(store, small().run_id, 0)
    measured(other, small().run_id, 1)
    folder = Path("runs") / small().run_id / "measurements"
    (mine.path / folder / f"{PROBES[0].name}.parquet").write_bytes(b"")
    (other.path / folder / f"{PROBES[1].name}.parquet").write_bytes(b"")
    assert merge(mine, other.path).measurements == 1
    assert mine.has_measurement(small().run_id, PROBES[0])
    assert not mine.has_measurement(small().run_id, PROBES[1])
    assert list((mine.path / "set-aside").iterdir())


def test_killed_in_the_middle_of_a_run_leaves_none_of_it(pair, ended, small, monkeypatch):
    mine, other = pair
    other.commit(ended(small()))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        merge(mine, other.path)
    monkeypatch.undo()
    assert mine.names() == [] and mine.problems == []
    assert merge(mine, other.path).runs == [small().run_id]


def test_records_are_united_and_differences_reported(pair):
    mine, other = pair
    base = {"request": "sweep", "runs": [], "measurements": [], "time": "now"}
    remember(mine, base | {"name": "both"})
    remember(other, base | {"name": "both", "time": "later"})
    remember(mine, base | {"name": "grid", "runs": ["1"]})
    remember(other, base | {"name": "grid", "runs": ["2"]})
    remember(other, base | {"name": "new"})
    (other.path / "requests" / "sweep-bad.json").write_text("{")
    done = merge(mine, other.path)
    assert done.records == ["sweep-new"] and len(done.conflicts) == 1 and "sweep-grid" in done.conflicts[0]
    assert {one["name"]: one["runs"] for one in requests(mine)} == {"both": [], "grid": ["1"], "new": []}
    assert len(done.problems) == 1 and "sweep-bad" in done.problems[0]


def test_places_that_cannot_be(pair, tmp_path):
    mine, _ = pair
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "main.tex").write_text("mine")
    for path, says in (("nowhere", "no store or archive"), ("mine", "the store itself"), ("thesis", "no store at")):
        with pytest.raises(BadInput, match=says):
            merge(mine, tmp_path / path)
    assert contents(mine.path) == {"recombine.json": (mine.path.joinpath("recombine.json").read_bytes(), 0)}


def test_a_store_of_a_later_recombine_is_refused(pair, ended, small):
    mine, other = pair
    other.commit(ended(small()))
    (other.path / "recombine.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(StoreError, match="has format 2"):
        merge(mine, other.path)
    assert mine.run_ids() == []
