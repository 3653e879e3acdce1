"""Whether calls are the right ones: compared as trees of names, parameters and values, not as text."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recombine.calling.calls import Call
from recombine.calling.functions import MISSING, Function, Library
from recombine.calling.json_schema import JsonSchema

Texts = Literal["exact", "loose"]
"""How strings are compared: character by character, or without case, spaces and most punctuation."""
Kind = Literal[
    "number of calls", "hallucinated function", "wrong function", "not nested", "missing argument", "unexpected argument",
    "wrong type", "wrong value",
]  # fmt: skip
LOOSE = re.compile(r"[\s,./\-_*^]+")


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Several right values of an argument."""

    values: tuple[Any, ...]
    optional: bool = False
    """Leaving the argument out is right, too."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """How an answer differs from the right call."""

    kind: Kind
    where: str
    """The place: functions and parameters from the outside to the inside."""
    expected: str = ""
    got: str = ""

    def __str__(self) -> str:
        shown = f": expected {self.expected}, got {self.got}" if self.expected or self.got else ""
        return f"{self.kind} at {self.where or 'the outermost call'}{shown}"


def call_differences(
    expected: Call, actual: Call, library: Library | None = None, *, texts: Texts = "exact", where: str = ""
) -> list[Difference]:
    """The differences between two calls. None if they are the same.

    Args:
        expected: The right call. An argument may be `OneOf`.
        actual: The call of an answer.
        library: The functions. An optional argument may be left out where the right one is its default, and may be given
            as its default where the right call leaves it out.
        texts: How strings are compared.
        where: The place of the call, for the differences.

    Returns:
        The differences from the outside to the inside.
    """
    here = f"{where} > {expected.name}" if where else expected.name
    if actual.name != expected.name:
        known = library is None or actual.name in library
        kind = "wrong function" if known else "hallucinated function"
        return [Difference(kind, where, expected.name, actual.name)]
    function = None if library is None else library.get(expected.name)
    found = []
    for name, value in expected.arguments.items():
        place = f"{here}.{name}"
        if name in actual.arguments:
            found += _value_differences(value, actual.arguments[name], _schema(function, name), library, texts, place)
        elif not _optional(value, function, name):
            found.append(Difference("missing argument", place, _shown(value), "nothing"))
    for name, value in actual.arguments.items():
        if name not in expected.arguments and not _is_default(value, function, name):
            found.append(Difference("unexpected argument", f"{here}.{name}", "nothing", _shown(value)))
    return found


def program_differences(
    expected: Sequence[Call], actual: Sequence[Call], library: Library | None = None, *, texts: Texts = "exact"
) -> list[Difference]:
    """The differences between two programs. Calls beside each other may stand in any order.

    Args:
        expected: The right calls.
        actual: The calls of an answer.
        library: The functions.
        texts: How strings are compared.

    Returns:
        None if each right call has its own equal. Otherwise the differences, between calls that are most alike.
    """
    from scipy.optimize import linear_sum_assignment

    if not expected or not actual:
        if len(expected) == len(actual):
            return []
        return [Difference("number of calls", "", str(len(expected)), str(len(actual)))]
    each = [[call_differences(one, other, library, texts=texts) for other in actual] for one in expected]
    # A call with the right name is more alike than any with another.
    costs = [
        [len(found) + 1000 * (one.name != other.name) for found, other in zip(row, actual, strict=True)]
        for row, one in zip(each, expected, strict=True)
    ]
    rows, columns = linear_sum_assignment(np.array(costs))
    found = [difference for row, column in zip(rows, columns, strict=True) for difference in each[row][column]]
    if len(expected) != len(actual):
        found.append(Difference("number of calls", "", str(len(expected)), str(len(actual))))
    return found


def same_program(
    expected: Sequence[Call], actual: Sequence[Call], library: Library | None = None, *, texts: Texts = "exact"
) -> bool:
    """Whether two programs are the same. The arguments are those of `program_differences`."""
    return not program_differences(expected, actual, library, texts=texts)


def _schema(function: Function | None, parameter: str) -> Mapping[str, Any]:
    return function[parameter].schema if function is not None and parameter in function else {}


def _optional(value: Any, function: Function | None, parameter: str) -> bool:
    """The argument may be left out."""
    its = function[parameter] if function is not None and parameter in function else None
    if its is not None and its.required:
        return False
    if isinstance(value, OneOf) and value.optional:
        return True
    if its is None:
        return False
    given = value.values if isinstance(value, OneOf) else (value,)
    return any(same_value(each, its.default) for each in given)


def _is_default(value: Any, function: Function | None, parameter: str) -> bool:
    if function is None or parameter not in function or function[parameter].default is MISSING:
        return False
    return same_value(function[parameter].default, value)


def _value_differences(
    expected: Any, actual: Any, schema: Mapping[str, Any], library: Library | None, texts: Texts, where: str
) -> list[Difference]:
    if isinstance(expected, OneOf):
        options = [_value_differences(one, actual, schema, library, texts, where) for one in expected.values]
        return min(options, key=len, default=[Difference("unexpected argument", where, "nothing", _shown(actual))])
    if isinstance(expected, Call):
        if isinstance(actual, Call):
            return call_differences(expected, actual, library, texts=texts, where=where)
        return [Difference("not nested", where, str(expected), _shown(actual))]
    if isinstance(actual, Call):
        return [Difference("wrong value", where, _shown(expected), str(actual))]
    if same_value(expected, actual, texts, JsonSchema(schema).kind):
        return []
    kind = "wrong value" if _type(expected) == _type(actual) else "wrong type"
    return [Difference(kind, where, _shown(expected), _shown(actual))]


def same_value(expected: Any, actual: Any, texts: Texts = "exact", kind: str = "") -> bool:
    """Whether two values are equal, with equal types.

    Args:
        expected: The right value. It may be, or contain, `OneOf`.
        actual: The value of an answer.
        texts: How strings are compared.
        kind: The type in the schema. A `number` may be written as an integer; an integer may not be written as 5.0.
    """
    if isinstance(expected, OneOf):
        return any(same_value(each, actual, texts, kind) for each in expected.values)
    if isinstance(expected, Call) or isinstance(actual, Call):
        return isinstance(expected, Call) and isinstance(actual, Call) and not call_differences(expected, actual)
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(actual, (list, tuple))
            and len(expected) == len(actual)
            and all(same_value(one, other, texts) for one, other in zip(expected, actual, strict=True))
        )
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) - set(expected):
            return False
        return all(
            same_value(value, actual[key], texts) if key in actual else isinstance(value, OneOf) and value.optional
            for key, value in expected.items()
        )
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual or (texts == "loose" and _loosely(expected) == _loosely(actual))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
        whole = isinstance(expected, int) and kind != "number"
        return expected == actual and not (whole and isinstance(actual, float))
    return type(expected) is type(actual) and expected == actual


def _loosely(text: str) -> str:
    return LOOSE.sub("", text).lower().replace("'", '"')


def _type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (Mapping, "object")):
        if isinstance(value, kind):
            return name
    return "array" if isinstance(value, (list, tuple)) else "null" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    if isinstance(value, OneOf):
        return " or ".join(map(_shown, value.values))
    return str(value) if isinstance(value, Call) else json.dumps(value, ensure_ascii=False, default=str)
