"""The formats of a table: text, Parquet, Arrow, frames."""

from __future__ import annotations

import contextlib
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

from recombine.audit.logs.log import Log, reader_of
from recombine.audit.reading.errors import compression, lines, not_json, not_utf8
from recombine.errors import BadInput

SEPARATORS = (",", "\t", ";", "|")
TABS, JSON = {".tsv", ".tab"}, {".jsonl", ".ndjson", ".json"}
ARROW = {".arrow", ".arrows", ".ipc", ".feather"}
SUFFIXES = {".csv", ".gz", ".zst"} | TABS | JSON | ARROW
"""Endings of names that say how a table is read."""
HEAD = 1 << 20
"""How many bytes are read to recognise a file."""
KNOWN = "CSV, TSV, Parquet, JSON Lines, Arrow"
OBJECTS = 20_000
"""How many lines of JSON are read for the names of columns."""


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name of a column as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclasses.dataclass(frozen=True)
class Format:
    """How the database reads a table."""

    relation: str
    """The SQL after FROM."""
    names: Sequence[str]
    kinds: Sequence[str] | None = None
    """Types by column; None if the database knows them."""
    wrap: str = "{}"
    """The SQL that extracts a value from a column of the relation."""
    path: Path | None = None
    """The file to read."""
    frame: Any = None
    """Arrow data to register under the name `frame`."""
    alias: bool = True
    """Whether the columns are renamed to c0, c1, ..."""
    notes: tuple[str, ...] = ()
    """What happened while a log was read, in sentences."""


def format_of(source: Any, title: str, wanted: Sequence[str], where: str | None, folder: Path) -> Format:
    """How the database reads a table. `folder` is for temporary copies."""
    if isinstance(source, Log):
        return source.as_format(wanted, where, folder)
    if not isinstance(source, str | Path):
        return _frame(source, title, wanted, where)
    path = Path(source).absolute()
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob("*")) if path.parent.is_dir() else []
        beside = f"the folder holds: {', '.join(near[:8])}" if near else None
        raise BadInput(f"There is no file {str(source)!r}.", fix=beside)
    if reader_of(path) is not None:
        return Log(path).as_format(wanted, where, folder)
    if not path.is_file():
        raise BadInput(f"{title} is not a file.", fix=f"give one table: {KNOWN}")
    with path.open("rb") as stream:
        start = stream.read(8)
    if not start:
        raise BadInput(f"{title} is empty.", fix="the first line must name the columns")
    path = _without_pattern(path, folder)
    if start.startswith(b"PAR1"):
        return _parquet(path)
    if start.startswith(b"ARROW1") or path.suffix.lower() in ARROW:
        return _arrow(path, title)
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise BadInput(f"{title} is a spreadsheet or an archive.", fix=f"save the table as one of: {KNOWN}")
    return _text(path, title, wanted, folder)


def _without_pattern(path: Path, folder: Path) -> Path:
    """The database treats * ? [ in a name as a pattern, so such a file gets a second, plain name."""
    if not set("*?[") & set(str(path)):
        return path
    kept = [suffix.lower() for suffix in path.suffixes if suffix.lower() in SUFFIXES]
    link = folder / ("table" + "".join(kept))
    with contextlib.suppress(OSError):
        link.symlink_to(path)
        return link
    return path


def _text(path: Path, title: str, wanted: Sequence[str], folder: Path) -> Format:
    """A text file: UTF-8, or UTF-16 with a byte-order mark, which is converted first."""
    try:
        with pa.input_stream(str(path), compression=compression(path)) as stream:
            head = stream.read(HEAD)
    except OSError:
        raise BadInput(f"{title} is not compressed as its name says.", fix="rename it, or compress it again") from None
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        path, head = _from_utf16(path, title, folder)
    if head.count(0) * 10 > len(head):
        raise BadInput(f"{title} is not a text table.", fix=f"give one of: {KNOWN}; text as UTF-8")
    try:
        # The head may end inside a multi-byte character.
        text = head.decode("utf-8-sig") if len(head) < HEAD else head[: head.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise not_utf8(title, path) from None
    if not text.strip():
        raise BadInput(f"{title} is empty.", fix="the first line must name the columns")
    named = {suffix.lower() for suffix in path.suffixes}
    return _json(path, title, text) if JSON & named else _csv(path, title, text, wanted, tabs=bool(TABS & named))


def _from_utf16(path: Path, title: str, folder: Path) -> tuple[Path, bytes]:
    new = folder / f"utf8{path.suffix}"
    try:
        with path.open(encoding="utf-16", newline="") as old, new.open("w", encoding="utf-8", newline="") as out:
            shutil.copyfileobj(old, out, HEAD)
    except (UnicodeError, OSError):
        raise BadInput(f"{title} begins as UTF-16 text but is not valid UTF-16.", fix="save it as UTF-8") from None
    with new.open("rb") as stream:
        return new, stream.read(HEAD)


def _csv(path: Path, title: str, text: str, wanted: Sequence[str], *, tabs: bool) -> Format:
    """Only the separator is guessed: the one that gives most of the wanted columns."""
    headers = {}
    for sign in "\t" if tabs else SEPARATORS:
        try:
            headers[sign] = next(csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True))
        except (csv.Error, StopIteration):
            continue
    if not headers or not any(headers.values()):
        raise BadInput(f"The first line of {title} does not name columns.", fix="begin with a line of column names")
    best = max(headers, key=lambda sign: (len({*headers[sign]} & {*wanted}), len(headers[sign])))
    names = headers[best]
    columns = ", ".join(f"c{number}: 'VARCHAR'" for number in range(len(names)))
    relation = (
        f"read_csv({literal(str(path))}, auto_detect = false, delim = {literal(best)}, quote = '\"', escape = '\"', "
        f"header = true, nullstr = '', strict_mode = true, hive_partitioning = false, columns = {{{columns}}}"
        + (f", compression = {literal(packed)})" if (packed := compression(path)) else ")")
    )
    return Format(relation, names, ["VARCHAR"] * len(names), path=path, alias=False)


def _json(path: Path, title: str, text: str) -> Format:
    """One object per line, or one list of objects. Values are taken as written."""
    listed = text.lstrip().startswith("[")
    names = _keys_of_list(text, title) if listed else {}
    if not listed:
        with lines(path) as stream:
            for number, line in enumerate(itertools.islice(stream, OBJECTS), start=1):
                if line.strip():
                    names |= dict.fromkeys(_object(line, number, title))
    if not names:
        raise BadInput(f"{title} holds no columns.", fix="write one object per line (JSON Lines)")
    low = [name.lower() for name in names]
    if alike := [name for name in names if low.count(name.lower()) > 1]:
        raise BadInput(f"{title} has columns that differ only in case: {alike[:4]}.", fix="rename them")
    columns = ", ".join(f"{identifier(name)}: 'JSON'" for name in names)
    relation = (
        f"read_json({literal(str(path))}, format = '{'array' if listed else 'newline_delimited'}', auto_detect = false, "
        f"hive_partitioning = false, columns = {{{columns}}})"
    )
    return Format(relation, [*names], ["VARCHAR"] * len(names), wrap="({} ->> '$')", path=path)


def _keys_of_list(text: str, title: str) -> dict[str, None]:
    """The names in the first objects of a list."""
    decoder, names, position = json.JSONDecoder(), dict[str, None](), text.index("[") + 1
    while True:
        while position < len(text) and text[position] in ", \t\r\n":
            position += 1
        try:
            decoded, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            return names
        if not isinstance(decoded, dict):
            raise BadInput(f"{title} is not a list of objects.", fix="write one object per line (JSON Lines)")
        names |= dict.fromkeys(decoded)


def _object(line: bytes, number: int, title: str) -> dict[str, Any]:
    try:
        decoded = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_json(number, title, error) from None
    if not isinstance(decoded, dict):
        raise BadInput(f"Line {number} of {title} is not an object.", fix='write lines like {"colour": "red"}')
    return decoded


def _parquet(path: Path) -> Format:
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path.name} cannot be read as a table: {str(error)[:120]}") from None
    return Format(f"read_parquet({literal(str(path))}, hive_partitioning = false)", names, path=path)


def _arrow(path: Path, title: str) -> Format:
    """Arrow's file format is read in batches; its stream format is mapped into memory."""
    import pyarrow.dataset as ds

    try:
        data: Any = ds.dataset(str(path), format="ipc")
    except (pa.ArrowException, OSError):
        try:
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
                data = stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise BadInput(f"{title} is not an Arrow table: {str(error)[:120]}") from None
    return Format("frame", data.schema.names, frame=data)


def _frame(source: Any, title: str, wanted: Sequence[str], where: str | None) -> Format:
    """A frame of pandas, polars or Arrow. Only the columns that are needed are converted to Arrow."""
    asked = (where or "").lower()
    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()
    if type(source).__module__.partition(".")[0] == "pandas":
        names = [str(name) for name in source.columns]
        needed = [name in wanted or (name != "" and name.lower() in asked) for name in names]
        unread = pa.nulls(len(source))
        arrays = [_array(source.iloc[:, n]) if read else unread for n, read in enumerate(needed)]
        table = pa.table(arrays, [f"c{n}" for n in range(len(names))])
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_arrow"):
        table = pa.table(source) if hasattr(source, "__arrow_c_stream__") else source.to_arrow()
        names = table.schema.names
    else:
        raise BadInput(f"{title} is a {type(source).__name__}, not a table.", fix="give a file or a frame")
    if not names:
        raise BadInput(f"{title} has no columns.", fix="give a frame with named columns")
    return Format("frame", names, frame=table)


def _array(series: Any) -> pa.Array | pa.ChunkedArray:
    """A pandas column as an Arrow array. Columns without an Arrow type, such as mixed ones, become text."""
    try:
        array = pa.array(series, from_pandas=True)
        return array.cast(pa.float32()) if array.type == pa.float16() else array
    except (pa.ArrowException, TypeError, ValueError):
        missing = series.isna().to_numpy()
        values = [None if absent else value for value, absent in zip(series, missing, strict=True)]
        if all(value is None or isinstance(value, set | frozenset | tuple | list) for value in values):
            return pa.array([None if value is None else sorted(map(str, value)) for value in values])
        return pa.array([None if value is None else str(value) for value in values], pa.string())
