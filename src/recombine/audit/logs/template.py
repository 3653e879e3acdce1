"""Prompt templates: from `a {colour} {object} on a {place}` and a prompt to the values of the factors."""

from __future__ import annotations

import dataclasses
import functools
import re
import string
from collections.abc import Iterator

from recombine.errors import BadInput

ANY = "_"
"""The name of a field whose text is ignored."""
EXAMPLE = 'write it like "a {colour} {object} on a {place}"'
SHOWN = 120
"""So many characters of a prompt are shown in an error."""


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a template: any text, or one of the given values."""

    name: str
    values: tuple[str, ...] = ()


class Template:
    """A text with fields: `{colour}` is any text, `{colour:red|dark red}` one of these, `{_}` any text that is ignored.

    The whole prompt must match. White space of any length counts as one space. `{{` and `}}` are braces.

    Args:
        text: The template.

    Example:
        ```python
        Template("a {colour} {object}").match("a red ball")  # {'colour': 'red', 'object': 'ball'}
        ```
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces = tuple(_pieces(text))
        self.fields = tuple(piece.name for piece in self.pieces if isinstance(piece, Field) and piece.name != ANY)
        if not self.fields:
            raise BadInput(f"The template {text!r} has no field.", fix=EXAMPLE)
        for name in self.fields:
            if self.fields.count(name) > 1:
                raise BadInput(
                    f"The template {text!r} has the field {name!r} twice.", fix="give each field a name of its own"
                )
        ignored = any(isinstance(piece, Field) and piece.name == ANY for piece in self.pieces)
        self._quick = None if ignored else (_pattern(self.pieces, longest=False), _pattern(self.pieces, longest=True))
        for first, second in zip(self.pieces, self.pieces[1:], strict=False):
            if isinstance(first, Field) and isinstance(second, Field) and not (first.values or second.values):
                raise BadInput(
                    f"The template {text!r} has no text between {{{first.name}}} and {{{second.name}}}.",
                    fix=f"write the text between them, or the values: {{{first.name}:red|blue}}",
                )

    def match(self, prompt: str) -> dict[str, str] | None:
        """The values of the fields, or None if the prompt does not match.

        Args:
            prompt: The prompt.

        Returns:
            The values by field. A prompt that matches in two ways is an error that shows both.
        """
        text = _one_space(prompt)
        if self._quick is not None:
            # The shortest and the longest reading. Where they are the same there is no other.
            short, long = (pattern.fullmatch(text) for pattern in self._quick)
            if short is None or long is None:
                return None
            if short.groups() == long.groups():
                return dict(zip(self.fields, short.groups(), strict=True))
        first = None
        for found in self._readings(text):
            if first is not None and found != first:
                raise self._ambiguous(text, first, found)
            first = found
        return None if first is None else dict(zip(self.fields, first, strict=True))

    def _ambiguous(self, text: str, first: tuple[str, ...], second: tuple[str, ...]) -> BadInput:
        shown = " or ".join(", ".join(map("=".join, zip(self.fields, one, strict=True))) for one in (first, second))
        name, one, two = next(item for item in zip(self.fields, first, second, strict=True) if item[1] != item[2])
        return BadInput(
            f"The template {self.text!r} matches the prompt {text[:SHOWN]!r} in two ways: {shown}.",
            fix=f"list the values of a field, for example {{{name}:{one}|{two}}}",
        )

    def _readings(self, text: str) -> Iterator[tuple[str, ...]]:
        """The values of the fields in each way in which the text matches."""
        count, seen = len(self.pieces), set[tuple[int, int, tuple[str, ...]]]()

        @functools.cache
        def leads(index: int, at: int) -> bool:
            """Whether the pieces from here on match the text from here on."""
            if index == count:
                return at == len(text)
            return any(leads(index + 1, end) for end in self._ends(text, index, at))

        def walk(index: int, at: int, values: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            if not leads(index, at) or (index, at, values) in seen:
                return
            seen.add((index, at, values))
            if index == count:
                yield values
                return
            piece = self.pieces[index]
            for end in self._ends(text, index, at):
                more = (text[at:end],) if isinstance(piece, Field) and piece.name != ANY else ()
                yield from walk(index + 1, end, values + more)

        return walk(0, 0, ())

    def _ends(self, text: str, index: int, at: int) -> Iterator[int]:
        """Where a piece that begins at a place may end."""
        piece = self.pieces[index]
        if isinstance(piece, str):
            if text.startswith(piece, at):
                yield at + len(piece)
            return
        if piece.values:
            yield from (at + len(value) for value in piece.values if text.startswith(value, at))
            return
        least = at if piece.name == ANY else at + 1
        following = self.pieces[index + 1] if index + 1 < len(self.pieces) else None
        if following is None:
            yield from [len(text)] if len(text) >= least else []
        elif isinstance(following, str):
            end = text.find(following, least)
            while end >= 0:
                yield end
                end = text.find(following, end + 1)
        else:
            yield from range(least, len(text) + 1)


def _pieces(text: str) -> Iterator[str | Field]:
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise BadInput(
            f"The template {text!r} cannot be read: {error}.", fix=f"{EXAMPLE}; a brace is {{{{ or }}}}"
        ) from None
    literal = ""
    for before, name, values, conversion in parsed:
        literal += before
        if name is None:
            continue
        if not re.fullmatch(r"\w+", name) or conversion is not None:
            raise BadInput(f"The template {text!r} has a field that is not a name: {name!r}.", fix=EXAMPLE)
        if literal:
            yield re.sub(r"\s+", " ", literal)
        literal = ""
        listed = (
            tuple(dict.fromkeys(_one_space(value) for value in values.split("|") if value.strip())) if values else ()
        )
        yield Field(name, listed)
    if literal:
        yield re.sub(r"\s+", " ", literal).rstrip() or " "


def _pattern(pieces: tuple[str | Field, ...], *, longest: bool) -> re.Pattern[str]:
    """The template as a regular expression that prefers short values, or long ones, from left to right."""
    parts = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(re.escape(piece))
        elif piece.values:
            ordered = sorted(piece.values, key=len, reverse=longest)
            parts.append(f"({'|'.join(map(re.escape, ordered))})")
        else:
            parts.append("(.+)" if longest else "(.+?)")
    return re.compile("".join(parts))


def _one_space(text: str) -> str:
    return " ".join(text.split())
