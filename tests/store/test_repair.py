"""The doctor: whatever is damaged, the rest is read, what can be mended is, nothing is deleted, and a sweep restores the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from recombine.engines.local import LocalEngine
from recombine.errors import StoreError
from recombine.store.files import NOTE, moved, read_record, sealed, temporary_path
from recombine.store.repair import Examination
from recombine.store.store import Store

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Each example copies a store and sweeps it: a smaller one would take minutes to find."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory, small, small_scores):
    """A store as a sweep leaves it: two runs, measured, and the record of a study."""
    store = Store(tmp_path_factory.mktemp("sound") / "store")
    LocalEngine().run(store, [small(seed=seed) for seed in range(2)], [small_scores])
    record = dict.fromkeys(("study", "profile", "config", "runs", "effects", "provenance"))
    store.write_study("a-study", record)
    return store.path


@pytest.fixture
def store(sound, tmp_path):
    return Store(shutil.copytree(sound, tmp_path / "store"))


@pytest.fixture
def run(store, small):
    return store.folder(small().run_id)


def contents(path: Path) -> dict[str, bytes]:
    """What counts in a store: all files but set-aside ones, and of records but when and how fast they were made."""
    found = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if not file.is_file() or name.startswith("set-aside/"):
            continue
        if file.suffix == ".json":
            record = json.loads(file.read_text())
            for changing in ("seconds", "compile_seconds", "provenance", "seal"):
                record.pop(changing, None)
            found[name] = json.dumps(record, sort_keys=True).encode()
        else:
            found[name] = file.read_bytes()
    return found


def all_bytes(path: Path) -> set[bytes]:
    return {file.read_bytes() for file in path.rglob("*") if file.is_file()}


def flip(path: Path, place: int = -20) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


def test_a_sound_store_has_no_findings_and_is_not_changed(store):
    before = {file: file.stat().st_mtime_ns for file in store.path.rglob("*")}
    told = []
    examination = Examination(store.path, step=lambda done, total: told.append((done, total)))
    assert examination.run() == [] and examination.runs == 2
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert {file: file.stat().st_mtime_ns for file in store.path.rglob("*")} == before


@pytest.mark.parametrize("name", ["weights.safetensors", "curves.parquet"])
def test_changed_bits_are_seen_though_the_length_is_right(store, run, name, small):
    flip(run / name)
    reading = Store(store.path)
    assert reading.status(run.name) == "complete", "lists look at lengths alone"
    if name == "weights.safetensors":
        with pytest.raises(StoreError, match=r"damaged|cannot be read"):
            _ = reading.load(small()).network
    else:
        assert set(reading.curves_df()["run"]) == {small(seed=1).run_id} and len(reading.problems) == 1
    (finding,) = Examination(store.path).run()
    assert name in finding.place + finding.problem and not finding.remains


def test_changed_bits_in_a_measurement_are_not_read_as_numbers(store, run, small):
    (table,) = run.glob("measurements/*.parquet")
    flip(table, 40)
    assert set(store.combinations_df()["run"]) == {small(seed=1).run_id}
    assert len(store.problems) == 1


def test_a_record_whose_seal_has_another_name_is_damaged(tmp_path):
    place = tmp_path / "record.json"
    place.write_text(json.dumps(sealed({"name": "a", "sha": "0" * 64})).replace("seal", "sea,"))
    with pytest.raises(StoreError, match="not what was written"):
        read_record(place)
    place.write_text(json.dumps({"name": "a", "sha": "0" * 64}))
    assert read_record(place)["name"] == "a"


def test_a_changed_digit_in_a_record_is_seen(store, run):
    for place in (run / "manifest.json", *run.glob("measurements/*.json"), *store.path.glob("studies/*")):
        text = place.read_text()
        digit = next(index for index, sign in enumerate(text) if sign.isdigit() or sign == "u")
        changed = "7" if text[digit] != "7" else "8"
        place.write_text(text[:digit] + changed + text[digit + 1 :])
    reading = Store(store.path)
    assert run.name not in reading.run_ids() and reading.studies() == []
    findings = Examination(store.path).run()
    assert len(findings) == 3 and not any(finding.remains for finding in findings)


def test_curves_and_manifest_are_made_anew_from_the_weights(store, run, sound, small):
    before = contents(sound)
    (run / "curves.parquet").unlink()
    (finding,) = Examination(store.path).run()
    assert "made anew" in finding.done and contents(store.path) == before
    assert store.load(small()).manifest["seconds"] > 0

    (run / "manifest.json").write_text("{")
    flip(run / "curves.parquet")
    (finding,) = Examination(store.path).run()
    assert "made anew" in finding.done
    assert contents(store.path) == before
    manifest = store.load(small()).manifest
    assert manifest["seconds"] is None and "made_anew" in manifest["provenance"]
    names = {path.name.split(".")[0] for path in moved(store.path)}
    assert names == {f"{run.name}-manifest", f"{run.name}-curves"}
    assert Examination(store.path).run() == []


def test_a_damaged_measurement_is_set_aside_alone(store, run, small_scores):
    (run / "measurements" / f"{small_scores.name}.parquet").unlink()
    (finding,) = Examination(store.path).run()
    assert "the run is kept" in finding.done
    assert len(Store(store.path).run_ids()) == 2
    assert not store.has_measurement(run.name, small_scores)
    assert [path.name.rpartition("-")[0] for path in moved(store.path)] == [f"{run.name}-{small_scores.name}.json"]


def test_a_table_without_its_record_may_be_another_process_at_work(store, run, small_scores):
    (run / "measurements" / f"{small_scores.name}.json").unlink()
    table = run / "measurements" / f"{small_scores.name}.parquet"
    other = temporary_path(store.path / "temporary")
    other.touch()
    assert Examination(store.path).run() == []
    other.unlink()
    (finding,) = Examination(store.path).run()
    assert "without its record" in finding.problem and not table.exists()


def test_foreign_folders_are_set_aside_and_newer_ones_left_alone(store, run):
    (store.path / "runs" / "holiday").mkdir()
    (store.path / "runs" / "holiday" / "photo.jpg").write_bytes(b"jpg")
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(sealed(manifest | {"format": 99, "run": "other"})))
    reading = Store(store.path)
    assert len(reading.run_ids()) == 1
    assert any("newer recombine" in problem for problem in reading.problems)
    newer, foreign = sorted(Examination(store.path).run(), key=lambda finding: not finding.remains)
    assert "newer" in newer.problem and newer.place == f"runs/{run.name}" and run.exists()
    assert foreign.problem == "not a run" and not foreign.remains
    (aside,) = moved(store.path)
    assert (aside / "photo.jpg").read_bytes() == b"jpg"
    note = json.loads(aside.with_name(aside.name + NOTE).read_text())
    assert note["what"] == "runs/holiday" and note["why"] == "not a run" and note["when"]


def test_a_newer_store_is_looked_at_and_not_touched(store, run):
    (store.path / "recombine.json").write_text('{"format": 2}')
    (run / "weights.safetensors").unlink()
    before = all_bytes(store.path)
    findings = Examination(store.path).run()
    assert len(findings) == 2 and all(finding.remains for finding in findings)
    assert all_bytes(store.path) == before and run.exists()


@pytest.mark.parametrize("marker", ["{", "[]", None])
def test_the_marker_is_written_anew(store, marker):
    place = store.path / "recombine.json"
    place.unlink() if marker is None else place.write_text(marker)
    (finding,) = Examination(store.path).run()
    assert finding.done == "written anew"
    assert len(Store(store.path).run_ids()) == 2 and len(moved(store.path)) == (marker is not None)


@pytest.mark.parametrize(("old", "new"), [('"format": 1', '"format": 3'), ('"seal"', '"sea,"')])
def test_one_changed_bit_in_the_marker_is_damage_and_no_newer_format(store, old, new):
    place = store.path / "recombine.json"
    place.write_text(place.read_text().replace(old, new))
    with pytest.raises(StoreError, match="is damaged"):
        Store(store.path)
    (finding,) = Examination(store.path).run()
    assert finding.done == "written anew" and len(Store(store.path).run_ids()) == 2


def test_damaged_checkpoints_and_records_are_set_aside(store):
    store.checkpoints.mkdir(exist_ok=True)
    (store.checkpoints / "abc.safetensors").write_bytes(b"half")
    for folder in ("studies", "requests", "tags"):
        (store.path / folder).mkdir(exist_ok=True)
        (store.path / folder / "x.json").write_text('{"study": ')
    findings = Examination(store.path).run()
    assert [finding.place for finding in findings] == [
        "studies/x.json",
        "requests/x.json",
        "tags/x.json",
        "checkpoints/abc.safetensors",
    ]
    assert len(moved(store.path)) == 4 and Examination(store.path).run() == []


def test_only_looking_changes_nothing(store, run):
    (run / "weights.safetensors").unlink()
    (store.path / "recombine.json").unlink()
    flip(next(store.path.glob("runs/*/measurements/*.parquet")))
    before = {file: file.stat().st_mtime_ns for file in store.path.rglob("*")}
    findings = Examination(store.path, repair=False).run()
    assert len(findings) >= 2 and all(finding.remains for finding in findings)
    assert {file: file.stat().st_mtime_ns for file in store.path.rglob("*")} == before


def test_runs_of_older_versions_have_no_hashes_and_are_read_all_the_same(store, run, small, small_scores):
    for place in (run / "manifest.json", *run.glob("measurements/*.json")):
        record = json.loads(place.read_text())
        for new in ("seal", "sha256", "format"):
            record.pop(new, None)
        place.write_text(json.dumps(record))
    assert Examination(store.path).run() == [] and len(Store(store.path).run_ids()) == 2
    (table,) = run.glob("measurements/*.parquet")
    table.write_bytes(b"\xff" * table.stat().st_size)
    weights = store.folder(small(seed=1).run_id) / "weights.safetensors"
    weights.write_bytes(b"\xff" * weights.stat().st_size)
    assert len(Examination(store.path).run()) == 2
    assert Store(store.path).run_ids() == [run.name]
    assert not store.has_measurement(run.name, small_scores)


def test_names_never_collide(store, run, monkeypatch):
    import recombine.store.files as module

    class Same:
        hex = "0" * 32

    names = iter([Same(), Same()])
    real = module.uuid.uuid4
    monkeypatch.setattr(module.uuid, "uuid4", lambda: next(names, None) or real())
    first = module.set_aside(store.path, run / "curves.parquet", "x", "why")
    second = module.set_aside(store.path, run / "weights.safetensors", "x", "why")
    assert first != second and first.exists() and second.exists()


@settings(max_examples=15, deadline=None, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_damaged_a_sweep_brings_the_store_back(sound, tmp_path_factory, small, small_scores, data):
    path = Path(shutil.copytree(sound, tmp_path_factory.mktemp("damaged") / "store"))
    files = sorted(file for file in path.rglob("*") if file.is_file())
    for _ in range(data.draw(st.integers(1, 3), label="damages")):
        file = data.draw(st.sampled_from(files), label="file")
        kind = data.draw(st.sampled_from(["delete", "cut", "noise"]), label="damage")
        if not file.exists() or not (size := file.stat().st_size):
            continue
        first = data.draw(st.integers(0, size - 1), label="from")
        if kind == "delete":
            file.unlink()
        elif kind == "cut":
            file.write_bytes(file.read_bytes()[:first])
        else:
            old = file.read_bytes()
            noise = data.draw(st.binary(min_size=1, max_size=64), label="noise")[: size - first]
            file.write_bytes(old[:first] + noise + old[first + len(noise) :])
    before = all_bytes(path)

    # Reading never raises.
    reading = Store(path, create=False)
    for _ in reading.runs():
        pass
    frames = reading.runs_df(), reading.curves_df(), reading.combinations_df(), reading.studies()
    assert all(frame is not None for frame in frames)

    Examination(path).run()
    assert before <= all_bytes(path), "nothing is deleted"
    assert Examination(path, repair=False).run() == []
    mended = Store(path)
    for run in mended.runs():
        _ = run.network
        assert set(mended.curves_df([run.run_id])["run"]) == {run.run_id}
    mended.combinations_df()
    assert mended.problems == []

    LocalEngine().run(mended, [small(seed=seed) for seed in range(2)], [small_scores])
    wanted, found = contents(sound), contents(path)
    # A study's record comes from the study, which this sweep is not.
    for both in (wanted, found):
        both.pop("studies/a-study.json", None)
    assert found == wanted
