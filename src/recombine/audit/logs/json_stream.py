"""Large JSON documents, one item at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from recombine.errors import BadInput

CHUNK = 1 << 18
"""How many characters are read at a time, at first."""
LARGEST = 1 << 28
"""The most characters of one item."""
NEAR = 20
"""An error this close to the end of what was read may only mean that more must be read."""


def members(path: Path, title: str, listed: str) -> Iterator[tuple[str, Any]]:
    """The members of a JSON object, in the file's order.

    Args:
        path: The file.
        title: The name of the file in errors.
        listed: The member whose list is not read at once: each item comes by itself, under this name.

    Returns:
        Names and values.
    """
    with _opened(path, title) as stream:
        reader = _Reader(stream, title)
        reader.expect("{")
        while reader.next_sign() != "}":
            name = reader.value()
            reader.expect(":")
            if name == listed and reader.next_sign() == "[":
                for item in reader.items():
                    yield name, item
            else:
                yield name, reader.value()
            if reader.next_sign() != "}":
                reader.expect(",")


def items(path: Path, title: str) -> Iterator[Any]:
    """The items of a JSON list, one at a time."""
    with _opened(path, title) as stream:
        yield from _Reader(stream, title).items()


def json_lines(path: Path, title: str) -> Iterator[tuple[int, Any]]:
    """The objects of a file with one per line, with the line's number from 1."""
    from recombine.audit.reading.errors import lines, not_json

    with lines(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    decoded = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise not_json(number, title, error) from None
                if not isinstance(decoded, dict):
                    raise BadInput(f"Line {number} of {title} is not an object.", fix="give the log as it was written")
                yield number, decoded


def _opened(path: Path, title: str) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"{title} cannot be read: {error.strerror}.") from None


class _Reader:
    """A place in a JSON document of which only a piece is in memory."""

    def __init__(self, stream: TextIO, title: str) -> None:
        self.stream, self.title = stream, title
        self.text, self.at, self.ended = "", 0, False
        self.decoder = json.JSONDecoder()

    def more(self) -> None:
        """Read on. What was decoded is forgotten."""
        self.text, self.at = self.text[self.at :], 0
        if len(self.text) > LARGEST:
            raise BadInput(f"{self.title} has an item of more than {LARGEST:,} characters.", fix="leave it out")
        try:
            # At least as much as is there: each character is decoded a few times at most.
            read = self.stream.read(max(CHUNK, len(self.text)))
        except UnicodeDecodeError:
            raise BadInput(f"{self.title} is not UTF-8 text.", fix="give the log as it was written") from None
        self.ended = not read
        self.text += read

    def next_sign(self) -> str:
        """The next character that is not white space, which stays."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if self.ended:
                raise self.truncated()
            self.more()

    def expect(self, sign: str) -> None:
        """Go past a character."""
        if (found := self.next_sign()) != sign:
            raise BadInput(
                f"{self.title} is not JSON: {sign!r} was expected, got {found!r}.", fix="give the log as it was written"
            )
        self.at += 1

    def value(self) -> Any:
        """The next value."""
        self.next_sign()
        while True:
            try:
                decoded, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - NEAR
                if not unfinished:
                    raise BadInput(
                        f"{self.title} is not JSON: {error.msg}.", fix="give the log as it was written"
                    ) from None
                if self.ended:
                    raise self.truncated() from None
            except RecursionError:
                raise BadInput(f"{self.title} is nested too deeply.") from None
            else:
                if end < len(self.text) or self.ended:
                    self.at = end
                    return decoded
            self.more()

    def items(self) -> Iterator[Any]:
        """The items of the list that comes next."""
        self.expect("[")
        while self.next_sign() != "]":
            yield self.value()
            if self.next_sign() != "]":
                self.expect(",")
        self.at += 1

    def truncated(self) -> BadInput:
        """The error about a file that ends too early."""
        return BadInput(
            f"{self.title} ends in the middle: it is truncated.", fix="copy it again, or write the log again"
        )
