"""A loss of power, other containers, and rot: what was stored is found again, and what was lost is noticed.

The disk is played by a record of `fsync`, the only promise that all file systems give: the bytes of a file survive as they
were when the file was last synced, the names in a folder as they were when the folder was.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recombine.engines.base import plan
from recombine.engines.local import LocalEngine
from recombine.probes.base import Measured
from recombine.store.files import moved
from recombine.store.repair import Examination
from recombine.store.store import Store
from recombine.store.tags import add_tag, tagged
from recombine.writers import abandoned, boot, own_name


class Disk:
    """What is surely on the disk, by inode: the bytes of synced files, the names in synced folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        real = os.fsync

        def fsync(handle: int) -> None:
            real(handle)
            inode, place = os.fstat(handle).st_ino, Path(f"/proc/self/fd/{handle}").resolve()
            if place.is_dir():
                self._names[inode] = {path.name: (path.stat().st_ino, path.is_dir()) for path in place.iterdir()}
            else:
                self._bytes[inode] = place.read_bytes()

        monkeypatch.setattr(os, "fsync", fsync)

    def after_power_loss(self, folder: Path, target: Path) -> Path:
        """Write what survives of a folder into a new one."""
        self._copy(folder.stat().st_ino, target)
        return target

    def _copy(self, inode: int, target: Path) -> None:
        target.mkdir()
        for name, (own, is_folder) in self._names.get(inode, {}).items():
            if is_folder:
                self._copy(own, target / name)
            else:
                (target / name).write_bytes(self._bytes.get(own, b""))


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="/proc says which file a handle is of")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs_proc
def test_what_is_stored_survives_a_loss_of_power_at_once(tmp_path, monkeypatch, ended, small, small_scores):
    disk = Disk(monkeypatch)
    store = Store(tmp_path / "store")
    outcome = ended(small())
    store.commit(outcome)
    store.add_measurement(small().run_id, small_scores, Measured({"r2_in": 0.5}, {"x": [1.0]}))
    store.write_record("requests", "sweep-mine", {"request": "sweep"})
    add_tag(store, "best", [small().run_id])
    survived = disk.after_power_loss(store.path, tmp_path / "survived")
    assert files_in(survived) == files_in(store.path)
    assert Examination(survived, repair=False).run() == []


@needs_proc
def test_at_every_moment_of_a_commit_the_disk_holds_a_whole_run_or_none(
    tmp_path, monkeypatch, ended, small, small_scores
):
    disk = Disk(monkeypatch)
    store = Store(tmp_path / "store")
    states: list[Path] = []

    def watched(name):
        real = getattr(os, name)

        def operation(*arguments, **named):
            result = real(*arguments, **named)
            states.append(disk.after_power_loss(store.path, tmp_path / f"state-{len(states)}"))
            return result

        monkeypatch.setattr(os, name, operation)

    for name in ("fsync", "rename", "replace"):
        watched(name)
    store.commit(ended(small()))
    store.add_measurement(small().run_id, small_scores, Measured({"r2_in": 0.5}, {"x": [1.0]}))
    monkeypatch.undo()
    assert len(states) > 10
    runs = [len(Store(state, create=False).run_ids()) for state in states]
    assert runs == sorted(runs) and set(runs) == {0, 1}
    for state in states:
        findings = [finding for finding in Examination(state, repair=False).run() if finding.place != "temporary"]
        assert [finding for finding in findings if "without its record" not in finding.problem] == [], state


@pytest.mark.parametrize("file", ["curves.parquet", "manifest.json"])
def test_a_sweep_rebuilds_what_it_can_instead_of_training_it_again(store, ended, small, file):
    store.commit(ended(small()))
    path = store.folder(small().run_id) / file
    before, weights = path.read_bytes(), (path.parent / "weights.safetensors").read_bytes()
    path.write_bytes(b"")
    sweep = LocalEngine().run(store, [small()])
    assert sweep.trained == 0 and sweep.found == 1
    assert (path.parent / "weights.safetensors").read_bytes() == weights
    assert file != "curves.parquet" or path.read_bytes() == before
    assert any(file in problem for problem in store.problems) and moved(store.path)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    state = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_one_changed_bit_in_a_table_is_noticed_before_a_verdict_and_measured_again(store, ended, small, small_scores):
    store.commit(ended(small()))
    LocalEngine().run(store, [small()], [small_scores])
    table = store.folder(small().run_id) / "measurements" / f"{small_scores.name}.parquet"
    before = table.read_bytes()
    flip(table)
    again = Store(store.path)
    assert plan(again, [small()], [small_scores]).measurements == 0  # A list looks at lengths only.
    sweep = LocalEngine().run(again, [small()], [small_scores])
    assert (sweep.trained, sweep.measured) == (0, 1) and table.read_bytes() == before
    assert any(small_scores.name in problem for problem in again.problems)


def test_one_changed_bit_in_weights_is_noticed_and_the_run_is_trained_again(store, small):
    LocalEngine().run(store, [small()])
    weights = store.folder(small().run_id) / "weights.safetensors"
    before = weights.read_bytes()
    flip(weights)
    assert LocalEngine().run(Store(store.path), [small()]).trained == 1
    assert weights.read_bytes() == before


def test_the_newest_measurement_does_not_depend_on_times_of_files(store, ended, small):
    from recombine.probes.scores import Scores

    store.commit(ended(small()))
    old, new = Scores(draws=2), Scores(draws=3)
    store.add_measurement(small().run_id, old, Measured({"r2_in": 0.1}, {}))
    store.add_measurement(small().run_id, new, Measured({"r2_in": 0.2}, {}))
    folder = store.folder(small().run_id) / "measurements"
    os.utime(folder / f"{new.name}.json", (1, 1))
    assert store.summaries(small().run_id)["r2_in"] == 0.2


def test_a_process_that_took_over_the_number_of_a_dead_one_does_not_keep_its_files(tmp_path):
    parent = os.getppid()
    assert abandoned(tmp_path / f"{parent}-{boot()}-1zabc")
    assert not abandoned(tmp_path / own_name())


@pytest.mark.skipif(sys.platform != "linux", reason="PID namespaces")
def test_writers_of_two_pid_namespaces_are_told_apart(tmp_path):
    program = "from recombine.writers import own_name; print(own_name())"
    for command in (["unshare", "--pid", "--fork"], ["unshare", "--map-root-user", "--pid", "--fork"]):
        answer = subprocess.run(
            [*command, "--mount-proc", sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        if answer.returncode == 0:
            break
    else:
        pytest.skip(f"PID namespaces are not permitted here: {answer.stderr}")
    # Its process is gone here too, but it cannot be seen from here.
    assert not abandoned(tmp_path / answer.stdout.strip())


TAGGING = """
import sys
from recombine.store.store import Store
from recombine.store.tags import add_tag

store = Store(sys.argv[1], create=False)
for number in range(20):
    add_tag(store, "best", [f"{sys.argv[2]}-{number}"])
"""


def test_processes_that_tag_at_once_lose_no_tag(store):
    processes = [subprocess.Popen([sys.executable, "-c", TAGGING, store.path, name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(tagged(store, "best")) == 40
