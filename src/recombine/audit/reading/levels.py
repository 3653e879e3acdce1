"""From texts to constituents: values of factors, and members of sets."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from jaxtyping import Int

from recombine.audit.cells import NOTHING, Factor
from recombine.audit.reading.arrow import numbers
from recombine.audit.reading.ordered import Ordering, ordered_values
from recombine.errors import BadInput

SEPARATORS = ("|", ";", "+")
"""Separators of sets that are written as text. A column uses the first of these that occurs in it."""


class Levels:
    """Numbers for the texts of one factor, in order of appearance."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, column: pa.Array) -> Int[np.ndarray, " row"]:
        """The number of each text; `NOTHING` if it is missing or blank."""
        # A missing text is an entry of the dictionary, so that every row has an index.
        coded = column.dictionary_encode(null_encoding="encode")
        own = [
            self.texts.setdefault(text, len(self.texts)) if text is not None and text.strip() else NOTHING
            for text in coded.dictionary.to_pylist()
        ]
        return np.array(own, dtype=np.int64)[numbers(coded.indices)]


Named = tuple[Factor, Int[np.ndarray, "group slot"], tuple[str, ...]]
"""A factor with its values, the numbers of those values in each combination, and the name of each slot."""


def name_values(
    factor: Factor, levels: Levels, codes: Int[np.ndarray, "group column"], ordering: Ordering | None = None
) -> Named:
    """Number the values of a factor that occur, in their natural order or the given one; numbers may be put into bins."""
    texts = [*levels.texts]
    used = [int(code) for code in np.unique(codes)]
    if factor.kind == "set":
        return _name_members(factor, texts, used, codes[:, 0])
    if ordering is not None:
        weights = np.bincount(codes.reshape(-1), minlength=len(texts))[used]
        ordered = ordered_values(factor.name, [texts[code] for code in used], weights, ordering)
        new = np.full(len(texts), NOTHING, dtype=np.int64)
        new[used] = ordered.number
        factor = dataclasses.replace(factor, values=ordered.values, positions=ordered.positions)
        return factor, new[codes], factor.slots
    values = natural_order(texts[code] for code in used)
    position = {value: number for number, value in enumerate(values)}
    new = np.full(len(texts), NOTHING, dtype=np.int64)
    new[used] = [position[texts[code]] for code in used]
    return dataclasses.replace(factor, values=values), new[codes], factor.slots


def _name_members(factor: Factor, texts: Sequence[str], used: Sequence[int], codes: Int[np.ndarray, " group"]) -> Named:
    separator = next((s for s in SEPARATORS if any(s in texts[c] for c in used if not _bracketed(texts[c]))), None)
    sets = {code: members(texts[code], separator, factor.name) for code in used}
    values = natural_order(set().union(*sets.values()))
    number = {value: n for n, value in enumerate(values)}
    slots = max(1, *(len(held) for held in sets.values())) if sets else 1
    rows = np.full((len(texts), slots), NOTHING, dtype=np.int64)
    for code, held in sets.items():
        rows[code, : len(held)] = sorted(number[value] for value in held)
    return dataclasses.replace(factor, values=values), rows[codes], (factor.name,) * slots


def _bracketed(text: str) -> bool:
    return text.strip().startswith("[") and text.strip().endswith("]")


def members(text: str, separator: str | None, column: str) -> frozenset[str]:
    """The members of a set: a JSON or Python list, or texts with a separator."""
    if not _bracketed(text):
        parts = [text] if separator is None else text.split(separator)
        return frozenset(part.strip() for part in parts if part.strip())
    parsed = None
    try:
        parsed = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            parsed = ast.literal_eval(text.strip())
    if not isinstance(parsed, list) or any(isinstance(item, list | dict | tuple | set) for item in parsed):
        raise BadInput(
            f"Set column {column!r} has the value {text[:80]!r}, which is not a list of values.",
            fix='write sets like red|cube or ["red", "cube"]',
        )
    return frozenset(written(item) for item in parsed if item is not None and str(item).strip())


def written(item: object) -> str:
    """A value as a table writes it: whole numbers have no decimals."""
    if isinstance(item, bool):
        return str(item).lower()
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def natural_order(values: Iterable[str]) -> tuple[str, ...]:
    """Sorted as numbers if all are numbers, otherwise as text."""
    listed = sorted(values)
    numbers = [_number(value) for value in listed]
    if any(number is None for number in numbers):
        return tuple(listed)
    return tuple(value for _, value in sorted(zip(numbers, listed, strict=True)))


def all_numbers(values: Sequence[str]) -> bool:
    """Whether all values are finite numbers."""
    return all(_number(value) is not None for value in values)


def _number(value: str) -> float | None:
    with contextlib.suppress(ValueError):
        return number if np.isfinite(number := float(value)) else None
    return None


def spelled_alike(values: Sequence[str]) -> list[list[str]]:
    """Groups of values that differ only in case, spaces or number format."""
    groups: dict[object, list[str]] = {}
    for value in values:
        number = _number(value)
        plain = "".join(unicodedata.normalize("NFKC", value).casefold().split())
        groups.setdefault(plain if number is None else number, []).append(value)
    return [group for group in groups.values() if len(group) > 1]
