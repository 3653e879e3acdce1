"""Small pieces of HTML for notebooks: what `_repr_html_` of public objects is made of. Every text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from recombine.plain import plain


def text(value: object) -> str:
    """A value as safe HTML text: markup is escaped, and invisible characters are written out."""
    return html.escape(plain(str(value)))


def paragraph(value: object) -> str:
    """One paragraph of text."""
    return f"<p>{text(value)}</p>"


def listing(values: Iterable[object], *, ordered: bool = False) -> str:
    """A list, numbered if `ordered`; nothing if there are no values."""
    tag, items = "ol" if ordered else "ul", "".join(f"<li>{text(value)}</li>" for value in values)
    return f"<{tag}>{items}</{tag}>" if items else ""


def table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line of column names."""
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{text(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def card(title: object, *pieces: str) -> str:
    """A titled block around pieces that are HTML already.

    Example:
        ```python
        card("ProductSpace", table(["factor", "values"], [("colour", 6), ("shape", 6)]))
        ```
    """
    return f'<div class="recombine">{_STYLE}<p><b>{text(title)}</b></p>{"".join(pieces)}</div>'


# Notebooks other than Jupyter have tables without space between columns.
_STYLE = "<style>.recombine :is(th, td) { padding: 0.2em 1em 0.2em 0; text-align: left; vertical-align: top }</style>"
