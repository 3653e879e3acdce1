"""Errors of the database about a broken table or filter, in words that help."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from recombine.errors import BadInput
from recombine.filters import QUOTE, SHOWN, first_line


@contextlib.contextmanager
def explained_errors(title: str, path: Path | None, where: str | None) -> Iterator[None]:
    """Turn errors of the database into `BadInput` that names the line or the filter."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise BadInput(
            f"{title} does not fit into the allowed memory: {first_line(error)}.",
            fix="allow more memory, or name fewer columns with many different values",
        ) from None
    except duckdb.OutOfRangeException:
        raise BadInput(f"The scores of {title} are too large to average.", fix="rescale them") from None
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _explained(title, path, where, error) from None


def _explained(title: str, path: Path | None, where: str | None, error: Exception) -> BadInput:
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if "unicode" in text.lower() or isinstance(error, UnicodeDecodeError):
        return not_utf8(title, path)
    if line is not None:
        return _broken_line(title, int(line[1]), text)
    if "Malformed JSON" in text:
        return _broken_json(title, path, error)
    if where is not None and isinstance(error, duckdb.ConversionException):
        return BadInput(
            f"The filter {where!r} compares values that cannot be compared: {first_line(error)}.", fix=QUOTE
        )
    return BadInput(f"{title} cannot be read as a table: {first_line(error)}")


def _broken_line(title: str, line: int, text: str) -> BadInput:
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text):
        happened = f"has {counts[2]} values, but {counts[1]} columns are named"
    elif "unterminated quote" in text:
        happened = "opens a quote that is never closed"
    elif "Maximum line size" in text:
        happened = "is too long"
    else:
        happened = "is broken: " + next(
            (part for part in text.split("\n")[1:] if part and not part.startswith("Original Line")), "no reason given"
        )
    return BadInput(f"Line {line} of {title} {happened[:SHOWN]}.", fix=f"fix or remove line {line}; nothing was read")


def _broken_json(title: str, path: Path | None, error: Exception) -> BadInput:
    """An error with the line number, counted here because the database's count may differ."""
    if path is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError), lines(path) as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1 and line.lstrip().startswith(b"["):
                    break  # One JSON list: its lines are not objects.
                try:
                    json.loads(line) if line.strip() else None
                except json.JSONDecodeError as broken:
                    return not_json(number, title, broken)
    return BadInput(f"{title} is not JSON: {first_line(error)}")


def not_json(number: int, title: str, error: Exception) -> BadInput:
    """The error about a line that is not JSON."""
    reason = f"{error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
    fix = f"fix or remove line {number}; nothing was read"
    return BadInput(f"Line {number} of {title} is not JSON: {reason}.", fix=fix)


def not_utf8(title: str, path: Path | None) -> BadInput:
    """An error about another encoding. It is not guessed, because a wrong guess would give wrong values."""
    place = ""
    if path is not None:
        with contextlib.suppress(OSError), lines(path) as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    place = f" (line {number}, byte {line[error.start]:#04x})"
                    break
    return BadInput(
        f"{title} is not UTF-8 text{place}.",
        fix="if it is a table, save it as UTF-8, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW",
    )


@contextlib.contextmanager
def lines(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a text file, which may be compressed, one at a time."""
    with pa.input_stream(str(path), compression=compression(path)) as stream:
        yield (line.removesuffix(b"\n") for line in io.BufferedReader(stream, 1 << 20))


def compression(path: Path) -> str | None:
    """The compression of a text file, by its name."""
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
