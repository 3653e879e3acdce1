"""A loss of power at any moment, with the writes since the last sync on the disk in any order and in any part.

After each file operation the disk may hold, of every name, the synced or the current entry, and of every file the synced
bytes, the current ones, or a part of them. All such disks, or many of them, are made and opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recombine.probes.base import Measured
from recombine.store.repair import Examination
from recombine.store.store import Store
from recombine.store.tags import add_tag, tags

Disk = dict[str, bytes | None]
"""What a disk holds, by path: bytes of files, None for folders."""

NAMES = dict[str, tuple[int, bool]]
"""The names in a folder: inode, and whether it is a folder."""

OPERATIONS = ("fsync", "rename", "replace", "unlink", "mkdir")


class Recorder:
    """Records what was synced and what is there, by inode, after every file operation."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.synced_bytes: dict[int, bytes] = {}
        self.synced_names: dict[int, NAMES] = {}
        self.moments: list[tuple[list[Disk], set[str]]] = []
        self.promised: set[str] = set()
        """What has returned so far, and may not be lost any more."""
        self.chance = random.Random(7)
        self.most = 400
        self.seen: set[bytes] = set()
        for name in OPERATIONS:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name), name))

    def _wrapped(self, real, name):
        def operation(*arguments, **named):
            result = real(*arguments, **named)
            if name == "fsync":
                self._sync(arguments[0])
            self.moments.append((self._disks(), set(self.promised)))
            return result

        return operation

    def _sync(self, handle: int) -> None:
        inode, place = os.fstat(handle).st_ino, Path(f"/proc/self/fd/{handle}").resolve()
        if place.is_dir():
            self.synced_names[inode] = names_in(place)
        else:
            self.synced_bytes[inode] = place.read_bytes()

    def _disks(self) -> list[Disk]:
        """Disks that a loss of power may leave now, without those that were seen before."""
        choices = list(self._choices(self.root, self.root.stat().st_ino, ""))
        count = math.prod(len(options) for options in choices)
        if count <= self.most:
            picked = itertools.product(*choices)
        else:
            # Nothing but what was synced, everything, and many mixtures.
            ends = [[options[index] for options in choices] for index in (0, -1)]
            mixed = ([self.chance.choice(options) for options in choices] for _ in range(self.most))
            picked = itertools.chain(ends, mixed)
        new = []
        for parts in picked:
            disk = self._whole({path: data for part in parts for path, data in part.items()})
            digest = hashlib.sha256(repr((sorted(disk.items()), sorted(self.promised))).encode()).digest()
            if digest not in self.seen:
                self.seen.add(digest)
                new.append(disk)
        return new

    def _whole(self, disk: Disk) -> Disk:
        """Without what is in folders that are not there."""
        return {
            path: data for path, data in disk.items()
            if all(str(above) in disk for above in Path(path).parents if str(above) != ".")
        }  # fmt: skip

    def _choices(self, place: Path | None, inode: int, path: str) -> Iterator[list[Disk]]:
        """For each name below a folder: what the disk may hold there, the synced state first, the current one last."""
        now = names_in(place) if place is not None and place.is_dir() else {}
        then = self.synced_names.get(inode, {})
        for name in sorted(now.keys() | then.keys()):
            below, options = f"{path}{name}", list[Disk]()
            for entry, there in ((then.get(name), False), (now.get(name), True)):
                if entry is None:
                    options.append({})
                    continue
                number, is_folder = entry
                current = place / name if place is not None and now.get(name) == entry else None
                if is_folder:
                    options.append({below: None})
                    if there or name not in now:
                        yield from self._choices(current, number, f"{below}/")
                else:
                    options += [{below: data} for data in self._bytes(number, current)]
            yield [option for index, option in enumerate(options) if option not in options[:index]]

    def _bytes(self, inode: int, current: Path | None) -> Iterator[bytes]:
        synced = self.synced_bytes.get(inode)
        yield b"" if synced is None else synced
        data = None
        with contextlib.suppress(OSError):
            data = current.read_bytes() if current is not None else None
        if data is not None and data != synced:
            yield data[: len(data) // 2]
            yield bytes(len(data))
            yield data


def names_in(folder: Path) -> NAMES:
    return {entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(folder)}


def write(disk: Disk, target: Path) -> Path:
    target.mkdir()
    for path, data in sorted(disk.items()):
        if data is None:
            (target / path).mkdir()
        else:
            (target / path).write_bytes(data)
    return target


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which file a handle is of")
def test_whatever_order_the_disk_wrote_in_nothing_that_counts_is_lost_or_wrong(
    tmp_path, monkeypatch, ended, small, small_scores
):
    place = tmp_path / "store"
    place.mkdir()
    with monkeypatch.context() as patch:
        recorder = Recorder(place, patch)
        store = Store(place)
        recorder.promised.add("store")
        store.commit(ended(small()))
        recorder.promised.add("run")
        store.add_measurement(small().run_id, small_scores, Measured({"r2_in": 0.5}, {"x": [1.0]}))
        recorder.promised.add("measurement")
        store.write_record("requests", "sweep-mine", {"request": "sweep"})
        recorder.promised.add("request")
        add_tag(store, "best", [small().run_id])
        recorder.promised.add("tag")
        add_tag(store, "best", ["other"])
        recorder.promised.add("second tag")
    run, kept = small().run_id, {path.name: path.read_bytes() for path in store.folder(small().run_id).glob("*.*")}
    tried = 0
    for disks, promised in recorder.moments:
        for disk in disks:
            tried += 1
            left = write(disk, tmp_path / f"disk-{tried}")
            if "store" not in promised and not (left / "recombine.json").exists():
                continue  # There was no store yet, and nothing says that there is one.
            findings = Examination(left).run()
            again = Store(left)
            status = again.status(run)
            assert status in (None, "complete")
            if status is not None:
                assert {path.name: path.read_bytes() for path in again.folder(run).glob("*.*")} == kept
            assert status == "complete" or "run" not in promised, (disk.keys(), findings)
            measured = again.measurement(run, small_scores.name)
            assert measured is None or measured["summary"] == {"r2_in": 0.5}
            assert measured is not None or "measurement" not in promised
            assert (left / "requests" / "sweep-mine.json").exists() or "request" not in promised
            tagged = tags(again).get("best", [])
            assert tagged in ([], [run], sorted([run, "other"]))
            assert run in tagged or "tag" not in promised
            assert "other" in tagged or "second tag" not in promised
    assert tried > 40
