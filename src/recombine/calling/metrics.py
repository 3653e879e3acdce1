"""How right a program of calls is: whole, by names, by arguments, by order, and by its result."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from recombine.calling.calls import Call, all_calls
from recombine.calling.functions import Library
from recombine.calling.matching import Texts, same_program


@dataclasses.dataclass(frozen=True)
class CallScores:
    """The scores of one program, or their means over several."""

    whole: float
    """The program is right: the trees are the same."""
    names: float
    """F1 of the multiset of function names."""
    arguments: float
    """F1 of the multiset of arguments: function, parameter and value. An inner call counts as its whole text."""
    order: float
    """The longest common subsequence of function names, inner calls first, relative to the longer sequence."""
    hallucinated: float
    """The share of called functions that are not in the library; 0 if nothing is called."""
    executed: float | None = None
    """The result is right; None if no function can be executed."""

    @staticmethod
    def mean(scores: Iterable[CallScores]) -> CallScores:
        """The mean of each score over programs. `executed` is that of the programs that have one."""
        rows = list(scores)
        means: dict[str, Any] = {}
        for field in dataclasses.fields(CallScores):
            values = [value for row in rows if (value := getattr(row, field.name)) is not None]
            means[field.name] = float(np.mean(values)) if values else None if field.name == "executed" else float("nan")
        return CallScores(**means)


def score_program(
    expected: Sequence[Call], actual: Sequence[Call], library: Library, *, texts: Texts = "exact"
) -> CallScores:
    """Score a program against the right one.

    Args:
        expected: The right calls.
        actual: The calls of an answer; empty if it has none.
        library: The functions. If all that are needed have code, the programs are executed and their results compared.
        texts: How strings are compared.

    Returns:
        The scores.
    """
    right, given = ([call.name for call in all_calls(program)] for program in (expected, actual))
    return CallScores(
        whole=float(same_program(expected, actual, library, texts=texts)),
        names=multiset_f1(right, given),
        arguments=multiset_f1(_arguments(expected), _arguments(actual)),
        order=common_subsequence(right, given) / max(len(right), len(given), 1),
        hallucinated=sum(name not in library for name in given) / max(len(given), 1),
        executed=_executed(expected, actual, library),
    )


def multiset_f1(right: Sequence[Any], given: Sequence[Any]) -> float:
    """F1 of two multisets. 1 if both are empty."""
    if not right and not given:
        return 1.0
    common = sum((collections.Counter(right) & collections.Counter(given)).values())
    return 2 * common / (len(right) + len(given))


def common_subsequence(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for left in one:
        before = row
        row = [0]
        for place, right in enumerate(other):
            row.append(before[place] + 1 if left == right else max(before[place + 1], row[-1]))
    return row[-1]


def _arguments(program: Sequence[Call]) -> list[tuple[str, str, str]]:
    return [
        (
            call.name,
            parameter,
            str(value) if isinstance(value, Call) else json.dumps(value, sort_keys=True, default=str),
        )
        for call in all_calls(program)
        for parameter, value in call.arguments.items()
    ]


def _executed(expected: Sequence[Call], actual: Sequence[Call], library: Library) -> float | None:
    from recombine.calling.execution import CannotRun, execute

    try:
        right = execute(expected, library)
    except CannotRun:
        return None
    try:
        return float(execute(actual, library) == right)
    except CannotRun:
        return 0.0
