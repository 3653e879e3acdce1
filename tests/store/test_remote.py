"""Runs go to an object store and come back, whole or not at all."""

from __future__ import annotations

import uuid

import pytest

from recombine.errors import BadInput, StoreError
from recombine.probes.base import Measured
from recombine.store.remote import Remote, UploadingStore
from recombine.store.store import Store

MEASURED = Measured(summary={"score_in": 0.5}, columns={"region": ["train"], "r2": [0.5]})


@pytest.fixture(params=["file", "memory"])
def remote(request, tmp_path) -> Remote:
    return Remote(f"file://{tmp_path}/bucket" if request.param == "file" else f"memory://{uuid.uuid4().hex}")


def content(store: Store, run_id: str) -> dict[str, bytes]:
    folder = store.folder(run_id)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def test_a_run_and_its_measurement_come_back_as_they_were(remote, tmp_path, ended, small_scores):
    sender = UploadingStore(tmp_path / "sender", remote)
    outcome = ended()
    run_id = outcome.config.run_id
    assert remote.manifest(run_id) is None
    sender.commit(outcome)
    assert remote.manifest(run_id) is not None

    store = Store(tmp_path / "store")
    assert remote.fetch(store, [run_id, "0" * 16]) == 1
    assert content(store, run_id) == content(sender, run_id)
    assert store.load(run_id).manifest == sender.load(run_id).manifest
    assert not store.has_measurement(run_id, small_scores)

    sender.add_measurement(run_id, small_scores, MEASURED)
    assert remote.fetch(store, [run_id]) == 0, "it is there: only the measurement comes"
    assert store.has_measurement(run_id, small_scores) and content(store, run_id) == content(sender, run_id)
    assert list((store.path / "temporary").glob("*")) == []


def test_a_run_without_a_manifest_is_not_there_and_is_sent_again(remote, tmp_path, ended):
    sender = UploadingStore(tmp_path / "sender", remote)
    outcome = ended()
    run_id = outcome.config.run_id
    sender.commit(outcome)
    place = remote._place(run_id, "manifest.json")
    for half in (None, b'{"run": "'):
        remote._files.rm_file(place)
        if half is not None:
            remote._files.pipe_file(place, half)
        store = Store(tmp_path / f"store-{half is None}")
        assert remote.manifest(run_id) is None and remote.fetch(store, [run_id]) == 0
        assert store.run_ids() == []
        remote.send(sender, run_id)
        assert remote.fetch(store, [run_id]) == 1


def test_the_first_run_of_a_name_stays(remote, tmp_path, ended):
    first, second = UploadingStore(tmp_path / "first", remote), UploadingStore(tmp_path / "second", remote)
    first.commit(ended(shift=0.5))
    second.commit(ended(shift=0.7))
    run_id = ended().config.run_id
    store = Store(tmp_path / "store")
    remote.fetch(store, [run_id])
    assert content(store, run_id) == content(first, run_id)


def test_a_file_that_was_cut_short_is_refused(remote, tmp_path, ended):
    sender = UploadingStore(tmp_path / "sender", remote)
    sender.commit(ended())
    run_id = ended().config.run_id
    remote._files.pipe_file(remote._place(run_id, "weights.safetensors"), b"half")
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match=r"weights\.safetensors is not"):
        remote.fetch(store, [run_id])
    assert store.run_ids() == [] and list((store.path / "temporary").glob("*")) == []


def test_addresses_that_mean_nothing_are_refused():
    with pytest.raises(BadInput, match="not the address"):
        Remote("runs")
    with pytest.raises(BadInput, match="cannot be opened"):
        Remote("nosuch://bucket/runs")
