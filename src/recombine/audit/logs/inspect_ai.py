"""Logs of Inspect: `.eval` archives with a file per sample, and JSON documents."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from recombine.audit.logs.json_stream import members
from recombine.audit.logs.sample import Notes, Reader, Sample, flattened, is_scalar
from recombine.errors import BadInput

VERSION = 2
"""The newest version of the log format that is known."""
WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of scores that are words, as Inspect converts them: correct, partial, incorrect, no answer."""
ZSTANDARD = 93
"""The number of this compression in an archive; Python's own reader lacks it before 3.14."""
ATTACHMENT = "attachment://"
LARGEST = 2**28
"""The most bytes of one sample."""
HEADER, START = "header.json", "_journal/start.json"


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file is a log of Inspect."""
    if path.suffix.lower() == ".eval":
        return True
    return (
        head.lstrip().startswith(b"{")
        and b'"version"' in head[:200]
        and b'"eval"' in head
        and b'"columns"' not in head[:200]
    )


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The samples of a log."""
    return _of_archive(path, title, notes) if zipped(path) else _of_json(path, title, notes)


def zipped(path: Path) -> bool:
    """Whether a log is an archive; a file that is named .eval is."""
    with path.open("rb") as stream:
        return path.suffix.lower() == ".eval" or stream.read(4) == b"PK\x03\x04"


def _of_archive(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if not names & {HEADER, START}:
                raise BadInput(
                    f"{title} is an archive, but not a log of Inspect.", fix="give a file as Inspect wrote it"
                )
            header = json.loads(_member(archive, HEADER if HEADER in names else START))
            _check_version(header.get("version"), title)
            _note_status(header.get("status", "started"), notes)
            for name in archive.namelist():
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _sample(json.loads(_member(archive, name)))
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{title} is not a whole archive: it is truncated or damaged ({error}).",
            fix="copy it again, or write the log again: inspect eval-retry",
        ) from None


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > LARGEST:
        raise BadInput(f"{name} has more than {LARGEST:,} bytes.", fix="leave such samples out of the log")
    if info.compress_type != ZSTANDARD:
        return archive.read(name)
    # The local header says how long the name and the extra field before the content are.
    stream = archive.fp
    if stream is None:
        raise zipfile.BadZipFile("the archive is closed")
    stream.seek(info.header_offset)
    local = stream.read(30)
    stream.seek(
        info.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    )
    with pa.CompressedInputStream(pa.BufferReader(stream.read(info.compress_size)), "zstd") as content:
        # The size that the archive states need not be true.
        found = content.read(LARGEST)
    if zlib.crc32(found) != info.CRC:
        raise zipfile.BadZipFile(f"the checksum of {name} is wrong")
    return found


def _of_json(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    known, found = False, False
    for name, value in members(path, title, "samples"):
        if name == "version":
            known = True
            _check_version(value, title)
        elif name == "status":
            _note_status(value, notes)
        elif name == "samples" and isinstance(value, dict):
            found = True
            yield _sample(value)
    if not known or not found:
        raise BadInput(f"{title} has no samples of Inspect.", fix="write the log with its samples: --log-samples")


def _check_version(version: Any, title: str) -> None:
    if not isinstance(version, int) or version > VERSION:
        raise BadInput(
            f"{title} has version {version} of Inspect's log format; known are versions up to {VERSION}.",
            fix="write its samples as a table: inspect_ai.analysis.samples_df(FILE).to_csv('samples.csv')",
        )


def _note_status(status: Any, notes: Notes) -> None:
    if status != "success":
        notes.sentences.append(
            f"The evaluation has the status {status!r}: only the samples that it finished are in the log."
        )


def _sample(record: dict[str, Any]) -> Sample:
    columns: dict[str, Any] = {"id": record.get("id"), "epoch": record.get("epoch")}
    columns |= flattened({"target": record.get("target")}, "")
    columns |= flattened(record.get("metadata") or {}, "metadata.")
    given = record.get("scores") or ({"score": record["score"]} if record.get("score") else {})
    scores: dict[str, Any] = {}
    for scorer, score in given.items():
        value = score.get("value") if isinstance(score, Mapping) else score
        parts = (
            {f"{scorer}.{name}": part for name, part in value.items()}
            if isinstance(value, Mapping)
            else {scorer: value}
        )
        scores |= {name: _number(part) for name, part in parts.items() if is_scalar(part)}
    prompt = _text(record.get("input"))
    if prompt is not None and prompt.startswith(ATTACHMENT):
        prompt = (record.get("attachments") or {}).get(prompt.removeprefix(ATTACHMENT))
    return Sample(prompt, columns | scores, tuple(scores))


def _number(value: Any) -> Any:
    """A score as a number; a text that is neither a word nor a number stays, and is reported where it is used."""
    return WORDS.get(value, WORDS.get(value.lower(), value)) if isinstance(value, str) else value


def _text(given: Any) -> str | None:
    """The input of a sample: a text, or the last message of the user."""
    if isinstance(given, str) or given is None:
        return given
    messages = [message for message in given if isinstance(message, Mapping)]
    for message in reversed([one for one in messages if one.get("role") == "user"] or messages):
        content = message.get("content")
        if isinstance(content, str):
            return content
        return " ".join(part["text"] for part in content or () if isinstance(part, Mapping) and "text" in part)
    return None


READER = Reader("inspect", recognises, samples)
