"""A damaged folder is reported and set aside: never a crash, never deleted."""

from __future__ import annotations

import json

import pytest

from recombine.errors import StoreError
from recombine.store.files import NOTE, moved, sealed
from recombine.store.store import Store


@pytest.fixture
def two(store, ended, small):
    """A store with two runs; the tests damage the first."""
    for seed in range(2):
        store.commit(ended(small(seed=seed)))
    return store


def cut(path, share=0.5):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def rewrite(path, **changes):
    value = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (value | changes).items() if v != "absent"}))


DAMAGES = {
    "manifest cut short": lambda folder: cut(folder / "manifest.json"),
    "manifest empty": lambda folder: (folder / "manifest.json").write_bytes(b""),
    "manifest not text": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "manifest a list": lambda folder: (folder / "manifest.json").write_text("[1, 2]"),
    "manifest missing": lambda folder: (folder / "manifest.json").unlink(),
    "manifest of another run": lambda folder: rewrite(folder / "manifest.json", run="0" * 16),
    "manifest without configuration": lambda folder: rewrite(folder / "manifest.json", config="absent"),
    "weights missing": lambda folder: (folder / "weights.safetensors").unlink(),
    "weights cut short": lambda folder: cut(folder / "weights.safetensors"),
    "curves cut short": lambda folder: cut(folder / "curves.parquet", 0.9),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_and_the_others_are_read(two, small, damage):
    folder = two.folder(small().run_id)
    DAMAGES[damage](folder)
    kept = sorted(path.name for path in folder.iterdir())

    store = Store(two.path)
    assert store.run_ids() == [small(seed=1).run_id]
    assert list(store.runs_df()["run"]) == store.run_ids()
    assert set(store.curves_df()["run"]) == set(store.run_ids())
    assert store.combinations_df().empty and store.probes_df().empty
    assert small() not in store and small(seed=1) in store
    assert len(store.problems) == 1 and small().run_id in store.problems[0]
    with pytest.raises(StoreError):
        store.load(small())
    assert sorted(path.name for path in folder.iterdir()) == kept


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_moved_when_its_run_is_made_again(two, ended, small, damage):
    folder = two.folder(small().run_id)
    DAMAGES[damage](folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    store = Store(two.path)
    store.commit(ended(small(), steps=29))
    assert store.load(small()).manifest["steps"] == 29
    (aside,) = moved(store.path)
    note = json.loads(aside.with_name(aside.name + NOTE).read_text())
    assert note["what"] == f"runs/{small().run_id}" and note["when"] and small().run_id in note["why"]
    assert aside.name.startswith(small().run_id)
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == before
    assert any("moved to" in problem and str(aside) in problem for problem in store.problems)
    assert Store(store.path).run_ids() == sorted([small().run_id, small(seed=1).run_id])


def test_weights_of_the_right_length_that_cannot_be_read_are_an_error_of_the_store(two, small):
    path = two.folder(small().run_id) / "weights.safetensors"
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(StoreError, match="cannot be read"):
        _ = Store(two.path).load(small()).network


def test_curves_of_the_right_length_that_cannot_be_read_are_reported(two, small):
    path = two.folder(small().run_id) / "curves.parquet"
    path.write_bytes(b"\xff" * path.stat().st_size)
    store = Store(two.path)
    assert set(store.curves_df()["run"]) == {small(seed=1).run_id}
    assert len(store.problems) == 1 and "curves.parquet" in store.problems[0]


def test_foreign_folders_and_files_among_the_runs_are_left_alone(two, small):
    (two.path / "runs" / "holiday").mkdir()
    (two.path / "runs" / "holiday" / "photo.jpg").write_bytes(b"jpg")
    (two.path / "runs" / "notes.txt").write_text("mine")
    store = Store(two.path)
    assert len(store.run_ids()) == 2
    assert len(store.problems) == 1 and "holiday" in store.problems[0]
    assert (two.path / "runs" / "holiday" / "photo.jpg").exists()
    assert (two.path / "runs" / "notes.txt").exists()


def test_a_file_in_the_place_of_a_run_is_moved_too(store, ended, small):
    place = store.folder(small().run_id)
    place.parent.mkdir()
    place.write_text("mine")
    assert small() not in store
    store.commit(ended(small()))
    assert store.status(small().run_id) == "complete"
    (aside,) = moved(store.path)
    assert aside.read_text() == "mine"


def test_one_problem_is_reported_once(two, small, caplog):
    cut(two.folder(small().run_id) / "weights.safetensors")
    store = Store(two.path)
    for _ in range(3):
        store.runs_df()
        store.run_ids()
    assert len(store.problems) == 1
    assert len(caplog.records) == 1 and "weights.safetensors" in caplog.text


def test_a_configuration_of_an_unknown_component_is_still_listed(two, small):
    folder = two.folder(small().run_id)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["family"] = {"kind": "from-a-plugin"}
    manifest = sealed(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    store = Store(two.path)
    assert "from-a-plugin" in set(store.runs_df()["family"])
    with pytest.raises(StoreError, match="not understood"):
        _ = store.load(small().run_id).config


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"study": "x"}'])
def test_damaged_records_of_studies_are_reported(store, text):
    (store.path / "studies").mkdir()
    (store.path / "studies" / "data-scaling-smoke.json").write_text(text)
    assert store.studies() == []
    assert len(store.problems) == 1
