"""Small pieces of text for the `repr` of public objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def shorten(text: str, longest: int = 60) -> str:
    """The text, cut with an ellipsis where it is longer than `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def text_table(rows: Iterable[Sequence[object]], indent: str = "  ") -> str:
    """Rows as aligned columns of plain text, without a line break at the end."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join((indent + line).rstrip() for line in lines)
