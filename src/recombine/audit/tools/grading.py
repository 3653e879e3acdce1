"""Answers to questions about calls: what was called, what was nested, and what is wrong."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from recombine.audit.tools.questions import Notation, ToolQuestion
from recombine.calling import (
    Call,
    CallScores,
    Difference,
    Library,
    Reading,
    program_differences,
    read_calls,
    read_tool_calls,
    same_program,
    score_program,
)
from recombine.calling.matching import same_value

RIGHT, STOPPED = "right", "stopped early"
OUTCOMES = (
    RIGHT, "prose", "unreadable", "hallucinated function", STOPPED, "wrong function", "not nested", "missing argument",
    "unexpected argument", "wrong type", "wrong value", "number of calls",
)  # fmt: skip
"""What an answer is. Of several errors, the first in this list names it."""


@dataclasses.dataclass(frozen=True)
class Graded:
    """An answer, compared with the right call."""

    outcome: str
    """One of `OUTCOMES`."""
    nested: tuple[bool, ...]
    """For each pair of neighbouring functions, from the outside to the inside: the outer one was called with the inner one's
    result, and the other arguments of both are right."""
    scores: CallScores
    calls: tuple[Call, ...]
    differences: tuple[Difference, ...]
    as_text: bool = False
    """The calls were written as text although native calls were asked for."""


def grade(question: ToolQuestion, said: str, library: Library, notation: Notation) -> Graded:
    """Compare an answer with the right call.

    Args:
        question: The question.
        said: The answer as it is kept: the text, or the turns of a native dialogue.
        library: The functions.
        notation: Native or text.
    """
    reading, as_text = _read(question, said, library, notation)
    calls = reading.calls
    expected = [question.call]
    differences = () if reading.problem else tuple(program_differences(expected, calls, library))
    scores = score_program(expected, calls, library)
    if reading.problem:
        outcome = reading.problem
    elif not differences:
        outcome = RIGHT
    elif len(calls) == 1 and any(same_program([inner], calls, library) for inner in question.chain[1:]):
        outcome = STOPPED
    else:
        outcome = min((each.kind for each in differences), key=OUTCOMES.index)
    nested = tuple(_nested(question, level, calls, library) for level in range(question.depth - 1))
    return Graded(outcome, nested, scores, tuple(calls), differences, as_text)


def _read(question: ToolQuestion, said: str, library: Library, notation: Notation) -> tuple[Reading, bool]:
    """The calls of an answer, and whether they were written as text where native calls were asked for."""
    turns = _turns(said) if notation == "native" else None
    if turns is None:
        return read_calls(said, library), False
    made: list[tuple[Call, Any]] = []
    for turn in turns:
        reading = read_tool_calls(turn.get("tool_calls"))
        if reading.problem == "unreadable":
            return reading, False
        results = turn.get("results") or []
        # Results of one turn are known only to later turns.
        connected = [_connected(call, made) for call in reading.calls]
        made += itertools.zip_longest(connected, results[: len(connected)], fillvalue=None)  # type: ignore[arg-type]
    if not made:
        reading = read_calls(str(turns[-1].get("content") or "") if turns else "", library)
        return reading, bool(reading.calls)
    inner = {id(value) for call, _ in made for value in call.arguments.values() if isinstance(value, Call)}
    return Reading(tuple(call for call, _ in made if id(call) not in inner)), False


def _turns(said: str) -> list[Mapping[str, Any]] | None:
    """The turns of a dialogue as `dialogue_text` writes them; None if this is another text."""
    try:
        turns = json.loads(said)["turns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return [turn for turn in turns if isinstance(turn, Mapping)] if isinstance(turns, list) else None


def _connected(call: Call, made: Sequence[tuple[Call, Any]]) -> Call:
    """The call with each argument that is the result of an earlier call replaced by that call."""
    arguments = {}
    for name, value in call.arguments.items():
        source = next(
            (earlier for earlier, result in made if result is not None and same_value(result, value, kind="number")),
            None,
        )
        arguments[name] = value if source is None else source
    return Call(call.name, arguments)


def _nested(question: ToolQuestion, level: int, calls: Sequence[Call], library: Library) -> bool:
    """Whether the function at a level was called with the result of the next one, with the right other arguments."""
    outer, inner = question.chain[level], question.chain[level + 1]
    parameter = question.parameters[level]
    further = question.parameters[level + 1] if level + 2 < question.depth else None
    for outermost in calls:
        for call in outermost.in_order():
            given = call.arguments.get(parameter)
            if call.name == outer.name and isinstance(given, Call) and given.name == inner.name:
                without = _without(outer, parameter), _without(inner, further)
                answered = _without(call, parameter), _without(given, further)
                if all(same_program([one], [other], library) for one, other in zip(without, answered, strict=True)):
                    return True
    return False


def _without(call: Call, parameter: str | None) -> Call:
    """The call with a fixed value in the place of an inner call, which is not what is compared."""
    if parameter is None or parameter not in call.arguments:
        return call
    return Call(call.name, {name: value for name, value in call.arguments.items() if name != parameter})
