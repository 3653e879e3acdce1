"""Tables of input and output texts with a split: COGS, PCFG SET, CFQ, SCAN from disk, or your own."""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from recombine.errors import BadInput, did_you_mean

MOST = 500_000
"""The most pairs of a table."""
LARGEST = 2**30
"""The largest file in bytes."""
Units = Literal["words", "characters"]


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of a table, in its order."""

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    splits: tuple[str, ...]
    categories: tuple[str, ...] | None
    parses: tuple[str, ...] | None

    @functools.cached_property
    def input_words(self) -> tuple[str, ...]:
        """The distinct words of inputs, in order."""
        return tuple(sorted(set(itertools.chain.from_iterable(self.inputs))))

    @functools.cached_property
    def output_words(self) -> tuple[str, ...]:
        """The distinct words of outputs, in order."""
        return tuple(sorted(set(itertools.chain.from_iterable(self.outputs))))


@dataclasses.dataclass(frozen=True)
class PairSource:
    """Where the pairs are: the file with its hash, and what its columns are called. No file: the example."""

    table: str = ""
    sha256: str = ""
    input: str = "input"
    output: str = "output"
    split: str = "split"
    category: str = ""
    parse: str = ""
    units: Units = "words"

    def pairs(self) -> Pairs:
        """The pairs. Their file must still have the content that the hash stands for."""
        return _pairs(self)


@functools.lru_cache(maxsize=4)
def _pairs(source: PairSource) -> Pairs:
    if not source.table:
        return example()
    if (found := file_hash(source.table)) != source.sha256:
        raise BadInput(
            f"The table {source.table} has changed since this run was configured: its sha256 is {found[:12]}..., not {source.sha256[:12]}....",
            fix="restore the file, or configure the run anew, which gives it another name",
        )
    return read_pairs(source)


def file_hash(path: str) -> str:
    """The sha256 of a file. BadInput if there is none."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(
            f"The table {path} cannot be read: {error.strerror}.",
            fix="give a file with a line per pair: .tsv, .csv or .jsonl",
        ) from None


def read_pairs(source: PairSource) -> Pairs:
    """Read a table: CSV or TSV whose first line names the columns, or JSON Lines."""
    path, wanted = Path(source.table), [source.input, source.output, source.split]
    wanted += [name for name in (source.category, source.parse) if name]
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path.name} has more than {LARGEST:,} bytes.", fix="take a part of it")
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    for line, record in _records(path, wanted):
        for name in columns:
            value = record.get(name)
            if not isinstance(value, str) or (name in (source.input, source.output) and not value.strip()):
                raise BadInput(
                    f"Line {line} of {path.name} has no {name}.", fix="give each pair a text in every column"
                )
            columns[name].append(value.strip())
        if len(columns[source.input]) > MOST:
            raise BadInput(f"{path.name} has more than {MOST:,} pairs.", fix="take a part of it")
    if not columns[source.input]:
        raise BadInput(f"{path.name} has no pairs.", fix="write a line for each pair")
    cut = tuple if source.units == "characters" else lambda text: tuple(text.split())
    return Pairs(
        inputs=tuple(map(cut, columns[source.input])),
        outputs=tuple(map(cut, columns[source.output])),
        splits=tuple(columns[source.split]),
        categories=tuple(columns[source.category]) if source.category else None,
        parses=tuple(columns[source.parse]) if source.parse else None,
    )


def _records(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table, with the number of their line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            if path.suffix.lower() in (".jsonl", ".ndjson"):
                for number, line in enumerate(stream, start=1):
                    if line.strip():
                        record = json.loads(line)
                        if not isinstance(record, dict):
                            raise BadInput(
                                f"Line {number} of {path.name} is not an object.", fix='write {"input": ...}'
                            )
                        _check_columns(path, record, wanted)
                        yield number, record
                return
            # In TSV a quote is a character like any other, as in COGS and PCFG SET.
            tabs = path.suffix.lower() in (".tsv", ".tab", ".txt")
            reader = (
                csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(stream, strict=True)
            )
            header = next(reader, [])
            _check_columns(path, header, wanted)
            for row in reader:
                if row and len(row) != len(header):
                    raise BadInput(
                        f"Line {reader.line_num} of {path.name} has {len(row)} values for {len(header)} columns.",
                        fix="fix the line; nothing was read",
                    )
                if row:
                    yield reader.line_num, dict(zip(header, row, strict=True))
    except (UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
        raise BadInput(
            f"{path.name} cannot be read as a table: {error}.", fix="save it as .tsv, .csv or .jsonl in UTF-8"
        ) from None


def _check_columns(path: Path, names: Any, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"{path.name} has no column {name!r}; it has {', '.join(map(str, names))}.",
                fix=f"{did_you_mean(name, map(str, names))}; name the columns: input=..., output=..., split=...",
            )


def example() -> Pairs:
    """The pairs that stand for a table where none is given: commands such as "red cup twice", and what they say."""
    colours, things, times = ("red", "blue", "green", "black"), ("cup", "ball", "box", "pen"), ("once", "twice")
    inputs, outputs, splits, categories = [], [], [], []
    for (c, colour), (t, thing), (number, often) in itertools.product(
        enumerate(colours), enumerate(things), enumerate(times, start=1)
    ):
        inputs.append((colour, thing, often))
        outputs.append((thing.upper(), colour.upper()) * number)
        held_out = (c + t) % 4 == 3
        splits.append("test" if held_out else "train")
        categories.append(f"{often}")
    return Pairs(tuple(inputs), tuple(outputs), tuple(splits), tuple(categories), None)
