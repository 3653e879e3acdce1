"""Items from a user's file: CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from recombine.errors import BadInput, did_you_mean
from recombine.language.items import ENCODE, VARIANTS, Item, Variant

NEEDED = ("task", "variant", "prompt", "answer")
OPTIONAL = ("input_logprob", "output_logprob", "input", "output", "group")
MAX_BYTES = 64 << 20
"""The largest size of a file."""


def read_items(path: Path) -> tuple[list[Item], list[str]]:
    """Read items from a file.

    The columns are task, variant (common or rare), prompt, answer, and, if known, input_logprob and output_logprob. The
    columns input and output default to the prompt and the answer. Without the column group, items with the same answer
    (with the same input, if the task is called encode) form a group.

    Args:
        path: A CSV file, or JSON lines (`.jsonl`, `.ndjson`).

    Returns:
        The items, without repetitions, and notes about what was ignored.
    """
    text = _read(path)
    lined = path.suffix.lower() in (".jsonl", ".ndjson")
    items: dict[str, Item] = {}
    columns: dict[str, None] = {}
    rows = 0
    for number, row in _json_rows(text, path) if lined else _csv_rows(text, path):
        item = _item(row, f"{path}, line {number}")
        items.setdefault(item.name, item)
        columns |= dict.fromkeys(str(name) for name in row if name is not None)
        rows += 1
    if not items:
        raise BadInput(f"{path} has no items.", fix=f"columns: {', '.join(NEEDED)}")
    return list(items.values()), [*_repeated(rows - len(items), path), *_unread([*columns], path)]


def _read(path: Path) -> str:
    forms = "give a CSV file or JSON lines in UTF-8"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadInput(f"{path} is larger than {MAX_BYTES >> 20} MB.", fix="ask fewer questions at once")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}.", fix="check the path after --items-from") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder.", fix=forms) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"The items {path} cannot be read: they are not UTF-8.", fix=forms) from error
    except OSError as error:
        raise BadInput(f"The items {path} cannot be read: {error.strerror}.", fix=forms) from error


def _repeated(number: int, path: Path) -> list[str]:
    if not number:
        return []
    subject = "1 item repeats another one and is" if number == 1 else f"{number} items repeat others and are"
    return [f"{subject} asked once (same task, variant, prompt and answer, in {path.name})."]


def _unread(columns: Sequence[str], path: Path) -> list[str]:
    """Notes about unknown columns whose name is close to a known one."""
    odd = [name for name in columns if name not in (*NEEDED, *OPTIONAL)]
    lacking = [name for name in OPTIONAL if name not in columns]
    hints = {name: did_you_mean(name, lacking) for name in odd}
    return [
        f"The column {name!r} of {path.name} is not read: {hint}"
        for name, hint in hints.items()
        if hint.startswith("did")
    ]


def _no_column(name: str, columns: Sequence[str]) -> str:
    """How to fix a missing column."""
    near = did_you_mean(name, [column for column in columns if column not in NEEDED])
    renamed = f"{near} " if near.startswith("did") else ""
    return f"{renamed}Needed: {', '.join(NEEDED)}"


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    table = csv.DictReader(io.StringIO(text, newline=""))
    try:
        columns = table.fieldnames or ()
        missing = [name for name in NEEDED if name not in columns]
        if missing:
            raise BadInput(f"{path} has no column {missing[0]!r}.", fix=_no_column(missing[0], columns))
        for row in table:
            yield table.line_num, row
    except csv.Error as error:
        raise BadInput(f"{path}, line {table.line_num}: {error}.") from error


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise BadInput(f"{path}, line {number} is not a JSON record.", fix="write one {...} per line")
        yield number, row


def _item(row: Mapping[str, Any], where: str) -> Item:
    cells = {name: _text(row.get(name)) for name in (*NEEDED, "input", "output", "group")}
    empty = [name for name in NEEDED if not cells[name]]
    if empty:
        near = "" if empty[0] in row else did_you_mean(empty[0], [str(key) for key in row if key not in cells])
        hint = f"{near} Or " if near.startswith("did") else ""
        raise BadInput(f"{where} has no {empty[0]}.", fix=f"{hint}fill it in, or remove the line")
    variant = cells["variant"].lower()
    if variant not in VARIANTS:
        raise BadInput(f"{where} has the variant {cells['variant']!r}.", fix="write common or rare")
    given, output = cells["input"] or cells["prompt"], cells["output"] or cells["answer"]
    return Item(
        cells["task"],
        cast(Variant, variant),
        cells["prompt"],
        cells["answer"],
        given,
        output,
        _log(row.get("input_logprob"), where),
        _log(row.get("output_logprob"), where),
        cells["group"] or (given if cells["task"] == ENCODE else output),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _log(value: Any, where: str) -> float | None:
    """A log-probability; None if the cell is empty."""
    if _text(value) == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number > 0:
        raise BadInput(
            f"{where} has the log-probability {_text(value)[:40]!r}.",
            fix="give the logarithm, 0 or less, or leave it empty",
        )
    return number
