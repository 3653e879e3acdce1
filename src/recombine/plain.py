"""Text from data without hidden characters, for terminals, figures and pages."""

from __future__ import annotations

import unicodedata

KEPT = {"\u200c", "\u200d"}
"""Joiners, which some scripts and emoji need; they are harmless."""
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Control characters, direction marks, surrogates, unassigned characters, line separators."""


def plain(text: str) -> str:
    """Write invisible characters, which a terminal might act on, as escapes: a line feed as \\n."""
    return "".join(
        sign
        if sign in KEPT or unicodedata.category(sign) not in HIDDEN
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in text
    )
