"""Archives: what goes in comes out bit for bit, and what does not belong there never comes out."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recombine.errors import BadInput, RecombineError
from recombine.probes.base import Measured
from recombine.store import archive as module
from recombine.store.archive import archive, files_of
from recombine.store.merge import merge
from recombine.store.requests import remember, requests
from recombine.store.store import Store
from recombine.store.tags import add_tag, tags

ENDINGS = [".zip", ".tar.gz", ".tgz"]


@pytest.fixture
def three(store, ended, small, small_scores):
    """A store with three runs (one failed), a measurement, a sweep of two of them, and a tag."""
    run_ids = [small(seed=seed).run_id for seed in range(3)]
    for seed in range(3):
        store.commit(ended(small(seed=seed), failed_at=5 if seed == 2 else None))
    store.add_measurement(run_ids[0], small_scores, Measured({"r2_in": 0.5}, {"a": [1, 2]}))
    request = {"request": "sweep", "name": "grid", "measurements": [], "time": "now"}
    remember(store, request | {"runs": run_ids[:2]})
    add_tag(store, "mine", run_ids[1:])
    return store


def run_files(path):
    return {
        one.relative_to(path).as_posix(): (one.read_bytes(), one.stat().st_mtime_ns)
        for one in (path / "runs").rglob("*")
        if one.is_file()
    }


def temporary_is_empty(store):
    return not (store.path / "temporary").exists() or not list((store.path / "temporary").iterdir())


@pytest.mark.parametrize("ending", ENDINGS)
def test_everything_comes_back(three, tmp_path, ending):
    file = tmp_path / f"all{ending}"
    made = archive(three, file, three.run_ids())
    assert set(made.runs) == set(three.run_ids()) and made.bytes == file.stat().st_size
    assert (made.asked, made.left_out, made.changed) == ((("sweep", "grid"),), (), ())
    other = Store(tmp_path / "other")
    merged = merge(other, file)
    assert sorted(merged.runs) == three.run_ids() and merged.conflicts == merged.problems == []
    assert run_files(other.path) == run_files(three.path)
    assert requests(other) == requests(three) and tags(other) == tags(three)
    assert temporary_is_empty(other) and temporary_is_empty(three)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([file.name, "other", "store"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ending=st.sampled_from(ENDINGS))
def test_any_selection_round_trips(three, data, ending):
    chosen = data.draw(st.lists(st.sampled_from(three.run_ids()), min_size=1, unique=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"some{ending}"
        made = archive(three, file, chosen)
        other = Store(Path(folder) / "other")
        merge(other, file)
        assert other.run_ids() == sorted(chosen)
        everything = run_files(three.path)
        wanted = {name: one for name, one in everything.items() if name.split("/")[1] in chosen}
        assert run_files(other.path) == wanted
        # A sweep goes along when all of its runs do.
        whole = set(requests(three)[0]["runs"]) <= set(chosen)
        assert bool(made.asked) == whole == bool(requests(other))
        assert tags(other).get("mine", []) == sorted(set(tags(three)["mine"]) & set(chosen))


@pytest.mark.parametrize("ending", ENDINGS)
def test_unpacked_by_hand_it_is_a_store(three, tmp_path, ending):
    archive(three, tmp_path / f"all{ending}", three.run_ids())
    if ending == ".zip":
        with zipfile.ZipFile(tmp_path / f"all{ending}") as file:
            names = file.namelist()
            file.extractall(tmp_path / "hand")
    else:
        with tarfile.open(tmp_path / f"all{ending}") as file:
            names = file.getnames()
            file.extractall(tmp_path / "hand", filter="data")
    assert Store(tmp_path / "hand", create=False).run_ids() == three.run_ids()
    assert names[-1] == "archive.json"
    for run_id in three.run_ids():
        own = [name for name in names if name.startswith(f"runs/{run_id}/")]
        assert own[-1] == f"runs/{run_id}/manifest.json"


def test_what_says_that_others_are_there_comes_last(three, small):
    names = [path.name for path in files_of(three.folder(small().run_id))]
    assert names[-1] == "manifest.json" and names[-2].startswith("scores-") and names[-2].endswith(".json")


def test_damaged_runs_are_left_out_and_half_written_files_too(three, tmp_path, small):
    (three.folder(small().run_id) / "weights.safetensors").write_bytes(b"")
    (three.folder(small(seed=1).run_id) / "curves.parquet.123.part").write_bytes(b"half")
    made = archive(three, tmp_path / "all.zip", three.names())
    assert made.left_out == (small().run_id,) and len(made.runs) == 2
    assert not any("part" in name for name in zipfile.ZipFile(tmp_path / "all.zip").namelist())


@pytest.mark.parametrize(
    ("name", "says"),
    [("all.rar", "not the name of an archive"), ("no/all.zip", "does not exist"), ("there.zip", "exists already")],
)
def test_places_that_cannot_be(three, tmp_path, name, says):
    (tmp_path / "there.zip").write_text("mine")
    with pytest.raises(BadInput, match=says):
        archive(three, tmp_path / name, three.run_ids())
    assert (tmp_path / "there.zip").read_text() == "mine"


def test_nothing_to_archive(three, tmp_path):
    with pytest.raises(BadInput, match="no sound run"):
        archive(three, tmp_path / "all.zip", [])
    assert not (tmp_path / "all.zip").exists()


def test_an_archive_that_does_not_read_back_gets_no_name(three, tmp_path, monkeypatch):
    real = module.members

    def flipped(path, kind):
        for name, stream in real(path, kind):
            yield name, io.BytesIO(stream.read()[:-1] + b"?") if "weights" in name else stream

    monkeypatch.setattr(module, "members", flipped)
    with pytest.raises(RecombineError, match=r"does not hold what was written: runs/.*weights"):
        archive(three, tmp_path / "all.zip", three.run_ids())
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_full_disk_leaves_no_file(three, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecombineError, match="No space left"):
        archive(three, tmp_path / "all.tar.gz", three.run_ids())
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_run_that_was_written_to_meanwhile_is_told(three, tmp_path, small, monkeypatch):
    real = module.check

    def slow(*arguments):
        real(*arguments)
        (three.folder(small().run_id) / "measurements" / "new.json").write_text("{}")

    monkeypatch.setattr(module, "check", slow)
    assert archive(three, tmp_path / "all.zip", three.run_ids()).changed == (small().run_id,)


EVIL = ["../evil", "/etc/evil", "runs/../../evil", "runs/0123456789abcdef/../../../evil", "evil", "runs\\evil"]
EVIL += ["runs/0123456789abcdef/..", "C:/evil", "studies/../evil.json", "runs/notarun/manifest.json"]


def repacked(source, target, more=None, without=()):
    """The archive with something added or left out."""
    with zipfile.ZipFile(source) as old:
        contents = {name: old.read(name) for name in old.namelist() if name not in without}
    contents |= more or {}
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w") as new:
            for name, content in contents.items():
                new.writestr(name, content)
    else:
        with tarfile.open(target, "w:gz") as new:
            for name, content in contents.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                new.addfile(info, io.BytesIO(content))
    return target


@pytest.fixture
def packed(three, tmp_path):
    archive(three, tmp_path / "all.zip", three.run_ids())
    return tmp_path / "all.zip"


def refused(path, tmp_path, says):
    before = {one for one in tmp_path.rglob("*") if "other" not in one.parts}
    other = Store(tmp_path / "other")
    with pytest.raises(BadInput) as caught:
        merge(other, path)
    assert says in caught.value.message and caught.value.fix
    assert other.run_ids() == [] and temporary_is_empty(other)
    assert {one for one in tmp_path.rglob("*") if "other" not in one.parts} == before


@pytest.mark.parametrize("ending", [".zip", ".tgz"])
@pytest.mark.parametrize("name", EVIL)
def test_names_that_lead_elsewhere_are_refused_and_nothing_is_taken(packed, tmp_path, name, ending):
    refused(repacked(packed, tmp_path / f"evil{ending}", {name: b"x"}), tmp_path, "Nothing was taken")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_and_the_like_are_refused(packed, tmp_path, kind):
    path = repacked(packed, tmp_path / "evil.tgz")
    with tarfile.open(path) as old:
        names = old.getnames()
        contents = {name: old.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    with tarfile.open(path, "w:gz") as new:
        link = tarfile.TarInfo("runs/0123456789abcdef/weights.safetensors")
        link.type, link.linkname = kind, "/etc/passwd"
        new.addfile(link)
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(contents[name])
            new.addfile(info, io.BytesIO(contents[name]))
    refused(path, tmp_path, "Nothing was taken")


def test_a_link_in_a_zip_is_refused(packed, tmp_path):
    path = repacked(packed, tmp_path / "evil.zip")
    with zipfile.ZipFile(path, "a") as file:
        info = zipfile.ZipInfo("runs/0123456789abcdef/weights.safetensors")
        info.external_attr = 0o120777 << 16
        file.writestr(info, "/etc/passwd")
    refused(path, tmp_path, "Nothing was taken")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_archive_that_was_cut_short_is_refused(three, tmp_path, ending, share):
    archive(three, tmp_path / f"all{ending}", three.run_ids())
    data = (tmp_path / f"all{ending}").read_bytes()
    (tmp_path / f"all{ending}").write_bytes(data[: int(share * len(data))])
    refused(tmp_path / f"all{ending}", tmp_path, "archive")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(missing=st.integers(1, 3000), ending=st.sampled_from([".zip", ".tgz"]))
def test_without_its_end_an_archive_gives_all_or_nothing(three, missing, ending):
    # All: where only the padding behind the last file is gone, every digest still holds.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"all{ending}"
        archive(three, file, three.run_ids())
        file.write_bytes(file.read_bytes()[:-missing])
        other = Store(Path(folder) / "other")
        try:
            merge(other, file)
        except BadInput:
            assert other.names() == []
        else:
            assert run_files(other.path) == run_files(three.path)
        assert temporary_is_empty(other)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), ending=st.sampled_from([".zip", ".tgz"]))
def test_a_flipped_byte_never_gives_another_run(three, place, ending):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"all{ending}"
        archive(three, file, three.run_ids())
        data = bytearray(file.read_bytes())
        data[int(place * len(data))] ^= 0xFF
        file.write_bytes(bytes(data))
        other = Store(Path(folder) / "other")
        try:
            merge(other, file)
        except BadInput:
            assert other.run_ids() == []
        # A byte that means nothing (a time of the container) may be any.
        got, want = run_files(other.path), run_files(three.path)
        assert all(want[name][0] == content for name, (content, _) in got.items())
        assert temporary_is_empty(other)


def test_lists_that_do_not_match_are_refused(packed, tmp_path):
    run = next(name for name in zipfile.ZipFile(packed).namelist() if "weights" in name)
    cases = [
        ({run: b"other"}, (), "does not match its own list"),
        ({}, (run,), "does not match its own list"),
        ({}, ("archive.json",), "its list is missing"),
        ({"archive.json": b"{"}, (), "its list cannot be read"),
        ({"archive.json": b'{"format": 1, "files": {"a": 3}}'}, (), "its list cannot be read"),
        ({"archive.json": json.dumps({"format": 2, "files": {}}).encode()}, (), "has format 2"),
    ]
    for index, (more, without, says) in enumerate(cases):
        refused(repacked(packed, tmp_path / f"evil{index}.zip", more, without), tmp_path, says)


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "thesis.pdf").write_text("mine")
    refused(tmp_path / "thesis.pdf", tmp_path, "not the name of an archive")
    (tmp_path / "text.zip").write_text("mine")
    refused(tmp_path / "text.zip", tmp_path, "cannot be read")
