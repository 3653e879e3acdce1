"""A synthetic library: executable functions over digits and letters, with types, descriptions and made-up names."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recombine.calling.functions import Function, Library, Parameter
from recombine.errors import BadInput

DIGITS = tuple(range(10))
LETTERS = tuple("abcdefgh")
DIGIT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 9}
LETTER: dict[str, Any] = {"type": "string", "enum": list(LETTERS)}
RESERVED = frozenset({"done"})
"""Words that would be names by their syllables, but have a meaning in examples."""
SYLLABLES = tuple(first + vowel for first, vowel in itertools.product("bdfgklmnprstvz", "aeiou"))


class _Kind(NamedTuple):
    """One function before it has a name."""

    description: str
    """Its parameters stand in braces."""
    takes: dict[str, dict[str, Any]]
    gives: dict[str, Any]
    run: Callable[..., Any]


def synthetic_library(functions: int = 16, seed: int = 0) -> Library:
    """Draw a library of executable functions over digits and letters.

    Args:
        functions: The number of functions.
        seed: The seed of names and of what the functions do.

    Returns:
        Functions with code. Descriptions are phrases with parameters in braces, such as `digit {x} plus 3`. Every type is
        taken and given by some function.
    """
    rng = np.random.default_rng(seed)
    kinds = list(_kinds())
    groups: dict[tuple[str, str], list[_Kind]] = {}
    for kind in kinds:
        groups.setdefault((str(next(iter(kind.takes.values()))["type"]), str(kind.gives["type"])), []).append(kind)
    if not len(groups) <= functions <= len(kinds):
        raise BadInput(
            f"The library has {len(groups)} to {len(kinds)} functions, got {functions}.", fix="choose a number between"
        )
    # One of each pair of types first, so that all types are connected.
    chosen = [members.pop(int(rng.integers(len(members)))) for members in groups.values()]
    rest = [kind for members in groups.values() for kind in members]
    chosen += [rest[index] for index in rng.permutation(len(rest))[: functions - len(chosen)]]
    names: list[str] = []
    while len(names) < functions:
        name = "".join(SYLLABLES[index] for index in rng.integers(len(SYLLABLES), size=2))
        if name not in names and name not in RESERVED:
            names.append(name)
    return Library(_made(name, kind) for name, kind in zip(names, chosen, strict=True))


def every_function() -> list[Function]:
    """All functions that a library may have, without names."""
    return [_made("", kind) for kind in _kinds()]


def _made(name: str, kind: _Kind) -> Function:
    parameters = tuple(Parameter(each, schema) for each, schema in kind.takes.items())
    return Function(name, kind.description, parameters, kind.gives, kind.run)


def _kinds() -> Iterator[_Kind]:
    for step in range(1, 10):
        yield _Kind(f"digit {{x}} plus {step}", {"x": DIGIT}, DIGIT, functools.partial(_plus, step=step))
    for factor in (3, 7, 9):
        yield _Kind(f"digit {{x}} times {factor}", {"x": DIGIT}, DIGIT, functools.partial(_times, factor=factor))
    two = {"x": DIGIT, "y": DIGIT}
    yield _Kind("sum of {x} and {y}", two, DIGIT, _sum)
    yield _Kind("difference of {x} and {y}", two, DIGIT, _difference)
    yield _Kind("larger of {x} and {y}", two, DIGIT, _larger)
    yield _Kind("smaller of {x} and {y}", two, DIGIT, _smaller)
    for step in range(len(LETTERS)):
        yield _Kind(f"letter of digit {{x}} plus {step}", {"x": DIGIT}, LETTER, functools.partial(_letter, step=step))
    for step in range(3):
        yield _Kind(f"place of {{s}} plus {step}", {"s": LETTER}, DIGIT, functools.partial(_place, step=step))
    for step in range(1, len(LETTERS)):
        yield _Kind(f"letter {{s}} moved by {step}", {"s": LETTER}, LETTER, functools.partial(_moved, by=step))
    yield _Kind("letter {s} moved by digit {x}", {"s": LETTER, "x": DIGIT}, LETTER, lambda s, x: _moved(s, x))


def _plus(x: int, step: int) -> int:
    return (x + step) % 10


def _times(x: int, factor: int) -> int:
    return x * factor % 10


def _sum(x: int, y: int) -> int:
    return (x + y) % 10


def _difference(x: int, y: int) -> int:
    return (x - y) % 10


def _larger(x: int, y: int) -> int:
    return max(x, y)


def _smaller(x: int, y: int) -> int:
    return min(x, y)


def _letter(x: int, step: int) -> str:
    return LETTERS[(x + step) % len(LETTERS)]


def _place(s: str, step: int) -> int:
    return (LETTERS.index(s) + step) % 10


def _moved(s: str, by: int) -> str:
    return LETTERS[(LETTERS.index(s) + by) % len(LETTERS)]
