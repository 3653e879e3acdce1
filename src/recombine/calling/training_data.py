"""Which functions were nested in training data: chats with tool calls, or texts with calls."""

from __future__ import annotations

import collections
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recombine.calling.calls import Call, nested_pairs
from recombine.calling.functions import Library
from recombine.calling.matching import same_value
from recombine.calling.reading import read_calls, read_tool_calls
from recombine.errors import BadInput

TEXTS = ("completion", "output", "response", "answer")
"""Where the answer stands in records without messages."""


def trained_pairs(path: str | Path, library: Library) -> tuple[collections.Counter[tuple[str, str]], int]:
    """Count the pairs of functions that training data nests.

    Args:
        path: JSON lines. Each has `messages` as chat endpoints take them, or an answer under `completion`, `output`,
            `response` or `answer`.
        library: The functions.

    Returns:
        For each outer and inner function how often the result of the inner one is an argument of the outer one, and the
        number of records with a call. A call's result is recognised by its value, or by a value in it.
    """
    pairs, records = collections.Counter[tuple[str, str]](), 0
    for record in _records(Path(path)):
        calls = tuple(_calls(record, library))
        pairs.update((nested.outer, nested.inner) for nested in nested_pairs(calls))
        records += bool(calls)
    if not records:
        raise BadInput(
            f"{path} contains no calls.", fix='give JSON lines such as {"messages": [{"role": "assistant", ...}]}'
        )
    return pairs, records


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadInput(f"{path}, line {number} is not JSON: {error}.", fix="give JSON lines") from None
                if isinstance(record, Mapping):
                    yield record
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", fix="name a file of JSON lines") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8.", fix="give JSON lines") from None


def _calls(record: Mapping[str, Any], library: Library) -> Iterator[Call]:
    messages = record.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        text = next((record[key] for key in TEXTS if isinstance(record.get(key), str)), "")
        yield from read_calls(text, library).calls
        return
    made: dict[str, Call] = {}
    inner: set[int] = set()
    known: list[tuple[Any, Call]] = []
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "tool":
            call = made.get(str(message.get("tool_call_id")))
            if call is not None:
                known += [(value, call) for value in _values(message.get("content"))]
        elif message.get("tool_calls"):
            given = message["tool_calls"]
            for each, call in zip(given, read_tool_calls(given).calls, strict=False):
                arguments = {
                    name: next((earlier for result, earlier in known if same_value(result, value)), value)
                    for name, value in call.arguments.items()
                }
                made[str(each.get("id"))] = Call(call.name, arguments)
                inner |= {id(value) for value in arguments.values() if isinstance(value, Call)}
        elif message.get("role") == "assistant" and isinstance(message.get("content"), str):
            yield from read_calls(message["content"], library).calls
    # An inner call is part of the call that takes its result.
    yield from (call for call in made.values() if id(call) not in inner)


def _values(content: Any) -> Iterator[Any]:
    """The result of a call, and the texts and numbers in it."""
    if isinstance(content, str):
        yield content
        with contextlib.suppress(ValueError, RecursionError):
            yield from _leaves(json.loads(content))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield value
