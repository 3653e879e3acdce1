"""Text from data, made safe for a terminal."""

from __future__ import annotations

import unicodedata

KEPT = {"\u200c", "\u200d"}
"""Joiners, without which some scripts and signs cannot be written."""


def plain(text: str) -> str:
    """The text with control characters, escapes and signs that turn the writing direction told instead of sent."""
    return "".join(_told(sign) for sign in text)


def _told(sign: str) -> str:
    if sign in KEPT or unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return sign
    return sign.encode("unicode_escape", "surrogatepass").decode("ascii")
