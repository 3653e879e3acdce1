"""The forms that a table comes in: text, Parquet, Arrow, frames."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from recombine.audit.reading_errors import compression, lines, not_utf8
from recombine.errors import BadInput

SEPARATORS = (",", "\t", ";", "|")
HEAD = 1 << 20
"""So many bytes are looked at to tell what a file is."""
KNOWN = "CSV, TSV, Parquet, JSON Lines, Arrow"
OBJECTS = 20_000
"""So many lines of JSON are looked at for the names of columns."""


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclasses.dataclass(frozen=True)
class Form:
    """How the database gets at a table."""

    relation: str
    """SQL that stands after FROM."""
    names: Sequence[str]
    kinds: Sequence[str] | None = None
    """Types by column; None: the database knows."""
    wrap: str = "{}"
    """SQL that makes a value of what the relation holds."""
    path: Path | None = None
    """The file that has to be read."""
    frame: Any = None
    """Arrow data that has to be there under the name `frame`."""
    alias: bool = True
    """Whether the columns have to be renamed to c0, c1, ..."""


def form_of(source: Any, title: str, wanted: Sequence[str], where: str | None, folder: Path) -> Form:
    """How the database gets at a table. `folder` is for what has to be written to be read."""
    if not isinstance(source, str | Path):
        return _frame(source, title, wanted, where)
    path = Path(source).absolute()
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob("*")) if path.parent.is_dir() else []
        beside = f"in that folder: {', '.join(near[:8])}" if near else None
        raise BadInput(f"There is no file {str(source)!r}.", fix=beside)
    if not path.is_file():
        raise BadInput(f"{title} is not a file.", fix=f"give one table: {KNOWN}")
    with path.open("rb") as stream:
        start = stream.read(8)
    if not start:
        raise BadInput(f"{title} is empty.", fix="the first line must name the columns")
    path = _without_pattern(path, folder)
    if start.startswith(b"PAR1"):
        return _parquet(path)
    if start.startswith(b"ARROW1") or (path.suffix.lower() in (".arrow", ".arrows", ".ipc", ".feather")):
        return _arrow(path, title)
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise BadInput(f"{title} is a spreadsheet or an archive.", fix=f"save the table as one of: {KNOWN}")
    return _text(path, title, wanted, folder)


def _without_pattern(path: Path, folder: Path) -> Path:
    """The database takes * ? [ in a name for a pattern; such a file gets a second, plain name."""
    if not set("*?[") & set(str(path)):
        return path
    known = {
        ".csv",
        ".tsv",
        ".tab",
        ".jsonl",
        ".ndjson",
        ".json",
        ".gz",
        ".zst",
        ".arrow",
        ".arrows",
        ".ipc",
        ".feather",
    }
    link = folder / ("table" + "".join(s.lower() for s in path.suffixes if s.lower() in known))
    try:
        link.symlink_to(path)
    except OSError:
        return path
    return link


def _text(path: Path, title: str, wanted: Sequence[str], folder: Path) -> Form:
    """Lines of text: UTF-8, or UTF-16 that says so by its first bytes and is written anew."""
    try:
        with pa.input_stream(str(path), compression=compression(path)) as stream:
            head = stream.read(HEAD)
    except OSError:
        raise BadInput(f"{title} is not compressed as its name says.") from None
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        path, head = _from_utf16(path, title, folder)
    if head.count(0) * 10 > len(head):
        raise BadInput(
            f"{title} is not a text table.", fix=f"give one of: {KNOWN}, as UTF-8 where it is text"
        )
    try:
        # A piece may end inside a letter.
        text = (
            head.decode("utf-8-sig")
            if len(head) < HEAD
            else head[: head.rfind(b"\n") + 1].decode("utf-8-sig")
        )
    except UnicodeDecodeError:
        raise not_utf8(title, path) from None
    if not text.strip():
        raise BadInput(f"{title} is empty.", fix="the first line must name the columns")
    named = [suffix.lower() for suffix in path.suffixes]
    if {".jsonl", ".ndjson", ".json"} & set(named):
        return _json(path, title, text)
    return _csv(path, title, text, wanted, "\t" if {".tsv", ".tab"} & set(named) else None)


def _from_utf16(path: Path, title: str, folder: Path) -> tuple[Path, bytes]:
    new = folder / f"utf8{path.suffix}"
    try:
        with (
            path.open(encoding="utf-16", newline="") as old,
            new.open("w", encoding="utf-8", newline="") as out,
        ):
            shutil.copyfileobj(old, out, HEAD)
    except (UnicodeError, OSError):
        raise BadInput(
            f"{title} begins as UTF-16 text and does not go on so.", fix="save it as UTF-8"
        ) from None
    with new.open("rb") as stream:
        return new, stream.read(HEAD)


def _csv(path: Path, title: str, text: str, wanted: Sequence[str], separator: str | None) -> Form:
    """Nothing is guessed but the separator: the one under which most of the wanted columns are there."""
    headers = {}
    for one in SEPARATORS if separator is None else (separator,):
        try:
            headers[one] = next(csv.reader(io.StringIO(text, newline=""), delimiter=one, strict=True))
        except (csv.Error, StopIteration):
            continue
    if not headers or not any(headers.values()):
        raise BadInput(
            f"The first line of {title} does not name columns.", fix="begin with a line of column names"
        )
    best = max(headers, key=lambda one: (len({*headers[one]} & {*wanted}), len(headers[one])))
    names = headers[best]
    columns = ", ".join(f"c{number}: 'VARCHAR'" for number in range(len(names)))
    relation = (
        f"read_csv({literal(str(path))}, auto_detect = false, delim = {literal(best)}, quote = '\"', escape = '\"', "
        f"header = true, nullstr = '', strict_mode = true, hive_partitioning = false, columns = {{{columns}}}"
        + (f", compression = {literal(packed)})" if (packed := compression(path)) else ")")
    )
    return Form(relation, names, ["VARCHAR"] * len(names), path=path, alias=False)


def _json(path: Path, title: str, text: str) -> Form:
    """One object a line, or one list of objects. Values are taken as they stand."""
    listed = text.lstrip().startswith("[")
    names: dict[str, None] = {}
    if listed:
        names = _keys_of_list(text, title)
    else:
        with lines(path) as stream:
            for number, line in enumerate(itertools.islice(stream, OBJECTS), start=1):
                if line.strip():
                    names |= dict.fromkeys(_object(line, number, title))
    if not names:
        raise BadInput(f"{title} holds no columns.", fix="write one object a line (JSON Lines)")
    if len({name.lower() for name in names}) < len(names):
        low = [name.lower() for name in names]
        alike = [name for name in names if low.count(name.lower()) > 1]
        raise BadInput(f"{title} has columns that differ only in case: {alike[:4]}.", fix="rename them")
    columns = ", ".join(f"{identifier(name)}: 'JSON'" for name in names)
    relation = (
        f"read_json({literal(str(path))}, format = '{'array' if listed else 'newline_delimited'}', auto_detect = false, "
        f"hive_partitioning = false, columns = {{{columns}}})"
    )
    return Form(relation, [*names], ["VARCHAR"] * len(names), wrap="({} ->> '$')", path=path)


def _keys_of_list(text: str, title: str) -> dict[str, None]:
    """The names in the first objects of a list: as many as were looked at."""
    decoder, names, place = json.JSONDecoder(), dict[str, None](), text.index("[") + 1
    while True:
        while place < len(text) and text[place] in ", \t\r\n":
            place += 1
        try:
            made, place = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            return names
        if not isinstance(made, dict):
            raise BadInput(f"{title} is not a list of objects.", fix="write one object a line (JSON Lines)")
        names |= dict.fromkeys(made)


def _object(line: bytes, number: int, title: str) -> dict[str, Any]:
    try:
        made = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = (
            f"{error.msg} at character {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        raise BadInput(
            f"Line {number} of {title} is not JSON: {reason}.",
            fix=f"mend or remove line {number}; nothing was read",
        ) from None
    if not isinstance(made, dict):
        raise BadInput(
            f"Line {number} of {title} is not an object.", fix='write lines like {"colour": "red"}'
        )
    return made


def _parquet(path: Path) -> Form:
    import pyarrow.parquet as pq

    names = _schema(path, lambda: pq.read_schema(path)).names
    return Form(f"read_parquet({literal(str(path))}, hive_partitioning = false)", names, path=path)


def _arrow(path: Path, title: str) -> Form:
    """Arrow's file form is read piece by piece; its stream form is mapped into memory."""
    import pyarrow.dataset as ds

    try:
        data: Any = ds.dataset(str(path), format="ipc")
    except (pa.ArrowException, OSError):
        try:
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
                data = stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise BadInput(f"{title} is not an Arrow table: {str(error)[:120]}") from None
    return Form("frame", data.schema.names, frame=data)


def _schema(path: Path, read: Any) -> pa.Schema:
    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path.name} cannot be read as a table: {str(error)[:120]}") from None


def _frame(source: Any, title: str, wanted: Sequence[str], where: str | None) -> Form:
    """A frame of pandas, polars or Arrow: only the columns that are asked for are turned into Arrow."""
    asked = (where or "").lower()
    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()
    if type(source).__module__.partition(".")[0] == "pandas":
        names = [str(name) for name in source.columns]
        kept = [n for n, name in enumerate(names) if name in wanted or (name and name.lower() in asked)]
        arrays = [_array(source.iloc[:, n]) for n in kept]
        unread = pa.nulls(len(source))
        found = dict(zip(kept, arrays, strict=True))
        table = pa.table(
            [found.get(n, unread) for n in range(len(names))], [f"c{n}" for n in range(len(names))]
        )
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_arrow"):
        table = pa.table(source) if hasattr(source, "__arrow_c_stream__") else source.to_arrow()
        names = table.schema.names
    else:
        raise BadInput(f"{title} is a {type(source).__name__}, not a table.", fix="give a file or a frame")
    if not names:
        raise BadInput(f"{title} has no columns.")
    return Form("frame", names, frame=table)


def _array(series: Any) -> pa.Array | pa.ChunkedArray:
    """A column of pandas as Arrow has it. What Arrow has no type for, as a mixture, becomes text."""
    try:
        made = pa.array(series, from_pandas=True)
        return made.cast(pa.float32()) if made.type == pa.float16() else made
    except (pa.ArrowException, TypeError, ValueError):
        missing = series.isna().to_numpy()
        values = [None if gone else value for value, gone in zip(series, missing, strict=True)]
        if all(value is None or isinstance(value, set | frozenset | tuple | list) for value in values):
            return pa.array([None if value is None else sorted(map(str, value)) for value in values])
        return pa.array([None if value is None else str(value) for value in values], pa.string())
