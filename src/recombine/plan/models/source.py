"""A model file as text in which every error has a line and a column, and tokens of its constraints."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import NoReturn

from recombine.errors import BadInput
from recombine.plain import plain

LONGEST = 100
"""So many characters of a line are shown in an error."""


@dataclasses.dataclass(frozen=True)
class Source:
    """The text of a model file."""

    where: str
    """The path, for errors."""
    text: str

    def fail(self, at: int, what: str, fix: str | None = None) -> NoReturn:
        """Raise BadInput with the line and the column of a place in the text, and the line itself."""
        starts = [0, *itertools.accumulate(len(line) for line in self.text.splitlines(keepends=True))]
        at = min(at, len(self.text.rstrip()))
        number = max(1, bisect.bisect_right(starts, at))
        column = at - starts[number - 1]
        line = self.text[starts[number - 1] :].partition("\n")[0].rstrip("\r")
        begin = max(0, column - LONGEST // 2)
        shown, before = plain(line[begin : begin + LONGEST]), plain(line[begin:column])
        raise BadInput(
            f"{self.where}, line {number}, column {column + 1}: {what}.\n  {shown}\n  {' ' * len(before)}^", fix=fix
        )


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a model: a factor of the plan."""

    name: str
    values: tuple[str, ...]
    """The value of each level, under the name that the plan shows."""
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    """Other names of values."""
    negative: frozenset[str] = frozenset()
    """Values that are meant to fail: at most one of them in a combination."""


@dataclasses.dataclass(frozen=True)
class Model:
    """What a model file says."""

    parameters: tuple[Parameter, ...]
    rules: tuple[str, ...] = ()
    """Constraints that every combination satisfies, in the planner's language."""
    forbidden: tuple[str, ...] = ()
    stronger: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Groups of parameters with a strength of their own."""
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Token:
    """A piece of a constraint."""

    kind: str
    """name (in brackets), text (in quotes), number, word, sign, end."""
    text: str
    at: int


TOKEN = re.compile(
    r"""(?P<space>\s+)
      | \[(?P<name>[^\]\n]*)\]
      | (?P<text>"[^"\n]*"|'[^'\n]*')
      | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
      | (?P<sign><=>|=>|->|<>|<=|>=|==|!=|&&|\|\||[=<>!(){},;:])
      | (?P<word>[\w.\-]*\w)""",
    re.VERBOSE,
)


def tokens_of(source: Source, begin: int, end: int, *, brackets: bool) -> list[Token]:
    """The tokens between two places of the text; `brackets`: whether names are written in brackets."""
    tokens, at = list[Token](), begin
    while at < end:
        match = TOKEN.match(source.text, at, end)
        if match is None or (match.lastgroup == "name" and not brackets):
            sign = source.text[at]
            quote = sign in "\"'"
            source.fail(
                at,
                "this quote is not closed" if quote else f"{sign!r} is not expected here",
                "close it" if quote else None,
            )
        kind = str(match.lastgroup)
        if kind != "space":
            text = match[kind].strip()
            tokens.append(Token(kind, text[1:-1] if kind == "text" else text, at))
        at = match.end()
    return [*tokens, Token("end", "", end)]


def split_values(source: Source, begin: int, end: int, separator: str = ",") -> list[tuple[str, int]]:
    """The texts between separators, with their places; quotes protect a separator."""
    found, start, quoted = [], begin, False
    for at in range(begin, end + 1):
        sign = source.text[at] if at < end else separator
        if sign == '"' and at < end:
            quoted = not quoted
        if sign == separator and (not quoted or at == end):
            piece = source.text[start:at]
            found.append((piece.strip(), start + len(piece) - len(piece.lstrip())))
            start = at + 1
    return found


def parameter(source: Source, name: str, values: Sequence[str], at: int, **more: object) -> Parameter:
    """A parameter, checked: a name, at least one value, no value twice."""
    if not name:
        source.fail(at, "a parameter has no name", "write name: value, value")
    if not values or not all(values):
        source.fail(at, f"the parameter {name!r} has an empty value", "write name: value, value")
    if twice := next((value for value in values if list(values).count(value) > 1), None):
        source.fail(at, f"the parameter {name!r} has the value {twice!r} twice", "remove one")
    return Parameter(name, tuple(values), **more)  # pyright: ignore[reportArgumentType]


def check_names(source: Source, parameters: Sequence[tuple[Parameter, int]]) -> None:
    """At least one parameter, and no name twice."""
    if not parameters:
        source.fail(0, "the file names no parameters", "write a line for each parameter: name: value, value")
    seen = set[str]()
    for one, at in parameters:
        if one.name.lower() in seen:
            source.fail(at, f"the parameter {one.name!r} occurs twice", "rename one")
        seen.add(one.name.lower())
