"""Items of somebody's own: a CSV file or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from recombine.errors import BadInput
from recombine.language.items import Item
from recombine.language.tasks import ENCODE, VARIANTS, Variant

NEEDED = ("task", "variant", "prompt", "answer")
LARGEST = 64 << 20
"""Bytes of a file that is read."""


def read_items(path: Path) -> list[Item]:
    """The items of a file, each once.

    Columns: task, variant (common or rare), prompt, answer, and where known input_logprob and output_logprob. Without
    the columns input and output these are the prompt and the answer; without group, items with the same answer (with
    the same input, if the task is called encode) belong together.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path} is larger than {LARGEST >> 20} MB.", fix="ask fewer questions at once")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"The items {path} cannot be read: {error}.", fix="give a CSV file or JSON lines in UTF-8"
        ) from error
    lined = path.suffix.lower() in (".jsonl", ".ndjson")
    found: dict[str, Item] = {}
    for number, row in _json_rows(text, path) if lined else _csv_rows(text, path):
        item = _item(row, f"{path}, line {number}")
        found.setdefault(item.name, item)
    if not found:
        raise BadInput(f"{path} has no items.", fix=f"columns: {', '.join(NEEDED)}")
    return list(found.values())


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    table = csv.DictReader(io.StringIO(text, newline=""))
    try:
        missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
        if missing:
            raise BadInput(f"{path} has no column {missing[0]!r}.", fix=f"columns: {', '.join(NEEDED)}")
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
            raise BadInput(f"{path}, line {number} is no JSON record.", fix="write one {...} a line")
        yield number, row


def _item(row: Mapping[str, Any], where: str) -> Item:
    told = {name: _text(row.get(name)) for name in (*NEEDED, "input", "output", "group")}
    empty = [name for name in NEEDED if not told[name]]
    if empty:
        raise BadInput(f"{where} has no {empty[0]}.", fix="fill it in, or take the line out")
    variant = told["variant"].lower()
    if variant not in VARIANTS:
        raise BadInput(f"{where} has the variant {told['variant']!r}.", fix="write common or rare")
    given, output = told["input"] or told["prompt"], told["output"] or told["answer"]
    return Item(
        told["task"],
        cast(Variant, variant),
        told["prompt"],
        told["answer"],
        given,
        output,
        _log(row.get("input_logprob"), where),
        _log(row.get("output_logprob"), where),
        told["group"] or (given if told["task"] == ENCODE else output),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _log(value: Any, where: str) -> float | None:
    """A log-probability; None where the cell is empty."""
    if _text(value) == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number > 0:
        raise BadInput(
            f"{where} has the log-probability {_text(value)[:40]!r}.",
            fix="give the logarithm, 0 or less, or nothing",
        )
    return number
