"""Where a store can be and where it cannot: files, foreign folders, no rights, no space."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from recombine.errors import BadInput, StoreError
from recombine.store import files
from recombine.store.store import Store, load_store
from recombine.writers import boot, own_name


def test_a_store_is_made_with_the_folders_above_it(tmp_path):
    store = Store(tmp_path / "a" / "b")
    assert json.loads((store.path / "recombine.json").read_text())["format"] == 1
    assert Store(store.path).run_ids() == []


def test_an_empty_folder_becomes_a_store(tmp_path):
    assert Store(tmp_path).run_ids() == []


def test_a_store_that_is_a_file(tmp_path):
    place = tmp_path / "store"
    place.write_text("mine")
    with pytest.raises(StoreError, match="is a file, not a folder") as caught:
        Store(place)
    assert caught.value.exit_code == 2 and caught.value.fix
    assert place.read_text() == "mine"


def test_a_store_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="a part of the path is a file"):
        Store(tmp_path / "file" / "store")


def test_a_foreign_folder_is_not_taken_over(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StoreError, match="not empty and not a store"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_store_that_is_only_read_is_not_made(tmp_path):
    with pytest.raises(StoreError, match="There is no store at"):
        Store(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("marker", ['{"format": 99}', "{}", "[]", '"text"', '{"form', None])
def test_a_store_whose_marker_is_newer_or_damaged_is_read_and_not_written(store, ended, marker):
    outcome = ended()
    store.commit(outcome)
    place = store.path / "recombine.json"
    place.unlink() if marker is None else place.write_text(marker)
    with pytest.raises(StoreError, match=r"format|cannot be read|is damaged") as caught:
        Store(store.path)
    assert ("version" if "99" in str(marker) else "recombine doctor") in (caught.value.fix or "")
    reading = Store(store.path, create=False)
    assert reading.run_ids() == [outcome.config.run_id] and len(reading.problems) == ("99" not in str(marker))
    assert place.exists() == (marker is not None)


def test_a_marker_that_is_cut_short_is_a_clear_error(store):
    (store.path / "recombine.json").write_text('{"form')
    with pytest.raises(StoreError, match=r"recombine\.json cannot be read"):
        Store(store.path)


def test_a_process_that_died_while_making_the_store_does_not_block_it(tmp_path):
    (tmp_path / "recombine.json.1234abcd.part").write_text('{"fo')
    assert Store(tmp_path).run_ids() == []


def test_many_may_make_the_same_store_at_once(tmp_path):
    gate, failures = threading.Barrier(8), []

    def make():
        gate.wait()
        try:
            Store(tmp_path / "store")
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "read-only",
    errno.ENOSPC: "no space left",
    errno.EDQUOT: "quota",
}


def refusing(code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.mark.parametrize("code", REASONS)
def test_a_place_that_cannot_be_written_is_explained_when_the_store_is_made(tmp_path, monkeypatch, code):
    monkeypatch.setattr(os, "mkdir", refusing(code))
    with pytest.raises(StoreError, match=REASONS[code]) as caught:
        Store(tmp_path / "store")
    assert caught.value.exit_code == 2 and caught.value.fix


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize("function", ["mkdir", "fsync", "replace", "rename"])
def test_a_commit_that_fails_is_explained_and_loses_nothing(store, ended, small, monkeypatch, code, function):
    store.commit(ended(small(seed=1)))
    monkeypatch.setattr(os, function, refusing(code))
    with pytest.raises(StoreError, match=REASONS[code]) as caught:
        store.commit(ended(small()))
    assert caught.value.exit_code == 2 and caught.value.fix
    monkeypatch.undo()
    assert store.run_ids() == [small(seed=1).run_id] and store.problems == []
    store.commit(ended(small()))
    assert small() in store


@pytest.mark.parametrize("code", REASONS)
def test_a_store_can_be_tried_before_hours_of_training(store, monkeypatch, code):
    store.check_writable()
    monkeypatch.setattr(os, "fsync", refusing(code))
    with pytest.raises(StoreError, match=REASONS[code]):
        store.check_writable()
    assert list((store.path / "temporary").iterdir()) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a quarter of a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.fail("This test mounts a small tmpfs: run the slow tests as root, with the command `mount`.")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(path):
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.slow
def test_a_full_disk(small_disk, ended, small):
    store = Store(small_disk / "store")
    first = ended(small())
    store.commit(first)
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    with pytest.raises(StoreError, match="no space left"):
        store.check_writable()
    with pytest.raises(StoreError, match="no space left") as caught:
        store.commit(ended(small(seed=1)))
    assert caught.value.exit_code == 2
    again = Store(store.path)
    assert again.run_ids() == [small().run_id] and again.problems == []
    weight = again.load(small()).network.layers[0].weight
    assert np.array_equal(weight, first.network.layers[0].weight)
    filler.unlink()
    again.commit(ended(small(seed=1)))
    assert len(again.run_ids()) == 2


def test_folders_of_dead_processes_are_reclaimed_and_those_of_living_ones_kept(store):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    temporary = store.path / "temporary"
    names = {
        "dead": f"{process.pid}-{boot()}-abc",
        "impossible": f"{10**30}-{boot()}-abc",
        # In a container that was started again: not by this process, though it has the same number.
        "namesake": f"{os.getpid()}-{boot()}-abc",
        "mine": own_name(),
        "alive": f"{os.getppid()}-{boot()}-abc",
        "elsewhere": f"{process.pid}-0other-abc",
        "foreign": "mine-abc",
        "plain": "notes",
    }
    for name in names.values():
        (temporary / name).mkdir(parents=True)
        (temporary / name / "weights.safetensors").write_bytes(b"half")
    (temporary / f"{process.pid}-{boot()}-abc.probe").write_bytes(b"")
    parts = [store.path / "recombine.json", store.path / "checkpoints" / "x.safetensors"]
    parts = [path.with_name(f"{path.name}.{process.pid}-{boot()}-abc.part") for path in parts]
    store.checkpoints.mkdir()
    for part in parts:
        part.write_bytes(b"half")
    Store(store.path, create=False)
    assert len(list(temporary.iterdir())) == 9 and all(part.exists() for part in parts)
    Store(store.path)
    assert {path.name for path in temporary.iterdir()} == {
        names[key] for key in ("mine", "alive", "elsewhere", "foreign", "plain")
    }
    assert not any(part.exists() for part in parts)


def test_the_checkpoint_of_a_stored_run_is_dropped_at_the_next_start(store, ended, small):
    store.commit(ended(small()))
    store.checkpoints.mkdir()
    for seed in range(2):
        (store.checkpoints / f"{small(seed=seed).run_id}.safetensors").write_bytes(b"state")
    Store(store.path, create=False)
    assert len(list(store.checkpoints.iterdir())) == 2
    Store(store.path)
    assert [path.stem for path in store.checkpoints.iterdir()] == [small(seed=1).run_id]


def test_complete_runs_are_never_reclaimed(store, ended):
    store.commit(ended())
    (store.path / "runs" / store.run_ids()[0]).rename(store.path / "runs" / "1-abc")
    Store(store.path)
    assert (store.path / "runs" / "1-abc" / "weights.safetensors").exists()


def test_numbers_that_json_cannot_hold_become_nothing():
    values = {"a": [float("nan"), 1.0, (float("inf"), "x")], "b": None, "c": True, "d": np.float64("nan")}
    assert files.finite(values) == {"a": [None, 1.0, [None, "x"]], "b": None, "c": True, "d": None}


def test_a_json_file_is_replaced_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    files.write_json(path, {"old": 1})
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(path, {"new": float("nan")})
    assert json.loads(path.read_text()) == {"old": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_loading_a_store_that_does_not_exist_says_so_and_creates_nothing(tmp_path, store, ended):
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, state in ((tmp_path / "none", "does not exist"), (empty, "has no recombine.json")):
        with pytest.raises(BadInput, match=f"There is no store at .*: the folder {state}") as caught:
            load_store(path)
        assert caught.value.exit_code == 2 and "--store" in (caught.value.fix or "")
    assert not (tmp_path / "none").exists() and list(empty.iterdir()) == []
    outcome = ended()
    store.commit(outcome)
    assert load_store(str(store.path)).run_ids() == [outcome.config.run_id]
