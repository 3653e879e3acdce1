"""Names from somebody's data, made fit for a figure or a page: none too long."""

from __future__ import annotations

WHOLE = 400
"""Even a name that is shown whole has an end."""


def cut(text: str, most: int = WHOLE) -> str:
    """The text with at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
