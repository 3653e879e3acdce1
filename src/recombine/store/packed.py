"""Reading archives safely: only plain files with names that a store has, checked before anything is written."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from recombine.errors import BadInput
from recombine.store.files import temporary_place
from recombine.store.manifest import FORMAT
from recombine.store.removal import Step, silent
from recombine.store.store import MARKER

INDEX = "archive.json"

ENDINGS = {".zip": "zip", ".tar.gz": "tar", ".tgz": "tar"}

_PART = r"(?!\.{1,2}(?:/|$))[^/\\:\x00-\x1f]+"
ALLOWED = re.compile(
    rf"{re.escape(MARKER)}|{re.escape(INDEX)}|runs/[0-9a-f]{{16}}(?:/{_PART}){{1,4}}"
    r"|(?:studies|requests|tags)/[A-Za-z0-9][A-Za-z0-9._-]*\.json"
)
"""The names of a store's files; no other is unpacked."""

UNREADABLE = (
    EOFError,
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # A compression that Python does not know.
    RuntimeError,  # A password.
)
"""What Python raises at archives that are damaged or of a strange kind."""

CHUNK = 1 << 20


def kind_of(path: Path) -> str:
    """`zip` or `tar`, by a file's name."""
    for ending, kind in ENDINGS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise BadInput(f"{path} is not the name of an archive.", fix=f"end it in {' or '.join(ENDINGS)}")


def members(path: Path, kind: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of an archive, one after the other, each to be read before the next. BadInput for anything else in it."""
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
    """Folders, links, devices, and names that lead elsewhere are not what recombine writes."""
    if not plain or not ALLOWED.fullmatch(name) or name in seen:
        raise BadInput(
            f"{path} holds {name!r}, which no archive of recombine does. Nothing was taken from it.",
            fix="merge archives that `recombine store archive` wrote, or unpack it and merge the folder",
        )
    seen.add(name)


@contextlib.contextmanager
def unpacked(path: Path, temporary: Path, step: Step = silent) -> Iterator[Path]:
    """An archive as a folder laid out like a store, for as long as it is needed.

    It lies among a store's temporary folders: what a killed process leaves is cleared away by the next.
    """
    kind = kind_of(path)
    folder = temporary_place(temporary)
    try:
        folder.mkdir()
        try:
            index = _unpack(path, kind, folder, step)
        except UNREADABLE as error:
            raise BadInput(f"The archive {path} cannot be read: {error}.", fix="copy it again") from error
        for name, one in index.items():
            if one["mtime_ns"] is not None:  # The order of measurements goes by time.
                os.utime(folder / name, ns=(one["mtime_ns"], one["mtime_ns"]))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(path: Path, kind: str, folder: Path, step: Step) -> dict[str, dict[str, Any]]:
    """Write all files out and compare them with the archive's own list, which is returned."""
    found: dict[str, tuple[int, str]] = {}
    for name, stream in members(path, kind):
        step(len(found), None)
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with open(place, "xb") as file:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                file.write(chunk)
        found[name] = (size, digest.hexdigest())
    if INDEX not in found:
        raise BadInput(f"The archive {path} is not whole: its list is missing.", fix="copy it again")
    found.pop(INDEX)
    index = _index(path, folder / INDEX)
    if {name: (one["bytes"], one["sha256"]) for name, one in index.items()} != found:
        raise BadInput(f"The archive {path} is damaged: it does not match its own list.", fix="copy it again")
    return index


def _index(path: Path, place: Path) -> dict[str, dict[str, Any]]:
    try:
        record = json.loads(place.read_text())
        known, files = record["format"], record["files"]
        sound = all(
            {"bytes", "sha256"} <= one.keys() and isinstance(one["mtime_ns"], int | None)
            for one in files.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"The archive {path} is damaged: its list cannot be read.", fix="copy it again"
        ) from error
    if known != FORMAT:
        raise BadInput(
            f"The archive {path} has format {known!r}; this recombine knows {FORMAT}.",
            fix="use the version of recombine that wrote it",
        )
    if not sound:
        raise BadInput(f"The archive {path} is damaged: its list cannot be read.", fix="copy it again")
    return files
