"""Reading archives safely: only ordinary files with names of a store, checked before anything is written."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from recombine import interrupts
from recombine.errors import BadInput, RecombineError
from recombine.progress import StepCallback, no_progress
from recombine.store.files import temporary_path
from recombine.store.manifest import FORMAT
from recombine.store.store import MARKER

INDEX = "archive.json"

ENDINGS = {".zip": "zip", ".tar.gz": "tar", ".tgz": "tar"}

_PART = r"(?!\.{1,2}(?:/|$))[^/\\:\x00-\x1f]+"
ALLOWED = re.compile(
    rf"{re.escape(MARKER)}|{re.escape(INDEX)}|runs/[0-9a-f]{{16}}(?:/{_PART}){{1,4}}"
    r"|(?:studies|requests|tags|notes)/[A-Za-z0-9][A-Za-z0-9._-]*\.json"
)
"""The names of a store's files; no others are unpacked."""

UNREADABLE = (
    EOFError,
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # A compression that Python does not know.
    RuntimeError,  # A password.
)
"""What Python raises for damaged or unknown archives."""

MALFORMED = (TypeError, ValueError, IndexError, OverflowError, struct.error)
"""What Python's readers of archives raise for headers that they did not expect."""

CHUNK = 1 << 20

BOMB_BYTES, BOMB_TIMES = 256 << 20, 200
"""An archive that unpacks to more than this, and to more than so many times its own size, was not written by recombine."""

SPARE_BYTES = 64 << 20
"""Space on the disk that unpacking leaves."""


def kind_of(path: Path) -> str:
    """The kind of an archive, `zip` or `tar`, by its name."""
    for ending, kind in ENDINGS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise BadInput(f"{path} is not the name of an archive.", fix=f"end it in {' or '.join(ENDINGS)}")


def members(path: Path, kind: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of an archive, each to be read before the next. Anything that is not a file of a store raises BadInput."""
    seen = set[str]()
    if kind == "zip":
        with zipfile.ZipFile(path) as file:
            for info in file.infolist():
                kind_bits = info.external_attr >> 16 & 0o170000
                plain = not info.is_dir() and kind_bits in (0, 0o100000)
                _check_name(path, info.filename, plain=plain, seen=seen)
                with file.open(info) as stream:
                    yield info.filename, stream
        return
    with tarfile.open(path, "r|gz") as file:
        for info in file:
            _check_name(path, info.name, plain=info.isreg(), seen=seen)
            stream = file.extractfile(info)
            assert stream is not None
            yield info.name, stream


def _check_name(path: Path, name: str, *, plain: bool, seen: set[str]) -> None:
    """Refuse folders, links, devices and paths that lead elsewhere: recombine writes none of them."""
    if not plain or not ALLOWED.fullmatch(name) or name in seen:
        raise BadInput(
            f"{path} holds {name!r}, which no archive of recombine does. Nothing was taken from it.",
            fix="merge archives that `recombine store archive` wrote, or unpack it and merge the folder",
        )
    seen.add(name)


@contextlib.contextmanager
def unpacked(path: Path, temporary: Path, step: StepCallback = no_progress) -> Iterator[Path]:
    """Unpack an archive into a temporary folder with the layout of a store.

    The next process deletes what a killed one leaves.
    """
    kind = kind_of(path)
    folder = temporary_path(temporary)
    try:
        folder.mkdir()
        try:
            index = _unpack(path, kind, folder, step)
        except RecombineError:
            raise
        except (*UNREADABLE, *MALFORMED, OSError) as error:
            # Other errors of the system are about the disk: the caller explains them.
            if isinstance(error, OSError) and not isinstance(error, UNREADABLE) and error.errno != errno.EINVAL:
                raise
            raise BadInput(f"The archive {path} cannot be read: {error}.", fix="copy it again") from error
        for name, entry in index.items():
            if entry["mtime_ns"] is not None:
                os.utime(folder / name, ns=(entry["mtime_ns"], entry["mtime_ns"]))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(path: Path, kind: str, folder: Path, step: StepCallback) -> dict[str, dict[str, Any]]:
    """Unpack all files and compare them with the archive's list, which is returned."""
    unpacked_files: dict[str, tuple[int, str]] = {}
    most = _most_bytes(path, folder)
    for name, stream in members(path, kind):
        step(len(unpacked_files), None)
        target, digest, size = folder / name, hashlib.sha256(), 0
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            while chunk := stream.read(CHUNK):
                interrupts.check()
                size, most = size + len(chunk), most - len(chunk)
                if most < 0:
                    raise BadInput(
                        f"The archive {path} unpacks to more than the disk can hold, or to far more than its own size.",
                        fix="free some space, or copy the archive again; nothing was taken from it",
                    )
                digest.update(chunk)
                file.write(chunk)
        unpacked_files[name] = (size, digest.hexdigest())
    if INDEX not in unpacked_files:
        raise BadInput(f"The archive {path} is not whole: its list is missing.", fix="copy it again")
    unpacked_files.pop(INDEX)
    index = _index(path, folder / INDEX)
    if {name: (entry["bytes"], entry["sha256"]) for name, entry in index.items()} != unpacked_files:
        raise BadInput(f"The archive {path} is damaged: it does not match its own list.", fix="copy it again")
    return index


def _most_bytes(path: Path, folder: Path) -> int:
    """How much an archive may unpack to: what the disk holds, and not a multiple of its size that no run compresses to."""
    return min(shutil.disk_usage(folder).free - SPARE_BYTES, max(BOMB_BYTES, BOMB_TIMES * path.stat().st_size))


def _index(path: Path, target: Path) -> dict[str, dict[str, Any]]:
    try:
        record = json.loads(target.read_text())
        known, files = record["format"], record["files"]
        keys = {"bytes", "sha256"}
        sound = all(keys <= entry.keys() and isinstance(entry["mtime_ns"], int | None) for entry in files.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known, sound, files = FORMAT, False, {}
    if known != FORMAT:
        fix = "use the version of recombine that wrote it"
        raise BadInput(f"The archive {path} has format {known!r}; this recombine knows {FORMAT}.", fix=fix)
    if not sound:
        raise BadInput(f"The archive {path} is damaged: its list cannot be read.", fix="copy it again")
    return files
