"""Names from somebody's data, made fit for a figure or a page: nothing hidden in them, none too long."""

from __future__ import annotations

import unicodedata

KEPT = {"\u200c", "\u200d"}
"""Joiners, without which some scripts and signs cannot be written."""
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control characters, signs that turn the writing direction, halves of characters, line separators."""

WHOLE = 400
"""Even a name that is shown whole has an end."""


def told(text: str) -> str:
    """The text with what cannot be seen told instead of sent: a line feed as \\n."""
    return "".join(_sign(sign) for sign in text)


def _sign(sign: str) -> str:
    if sign in KEPT or unicodedata.category(sign) not in HIDDEN:
        return sign
    return sign.encode("unicode_escape", "surrogatepass").decode("ascii")


def cut(text: str, most: int = WHOLE) -> str:
    """The text with at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
