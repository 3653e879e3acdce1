"""Text from somebody's data, with nothing hidden in it: for terminals, figures and pages."""

from __future__ import annotations

import unicodedata

KEPT = {"\u200c", "\u200d"}
"""Joiners, without which some scripts and signs cannot be written; they move nothing."""
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Control characters, signs that turn the writing direction, halves of characters, unassigned ones, line separators."""


def plain(text: str) -> str:
    """The text with what cannot be seen, but might be obeyed, written as an escape: a line feed as \\n."""
    return "".join(
        sign
        if sign in KEPT or unicodedata.category(sign) not in HIDDEN
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in text
    )
