"""How findings are put into words: short lists of names, shares and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

LONGEST = 40
"""Names from data are cut to so many characters in sentences; tables hold them whole."""


def short(name: str) -> str:
    """A name that fits into a sentence."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names one after the other, and how many more there are."""
    told = [short(name) for name in names[:most]]
    more = len(names) - len(told)
    return ", ".join(told) + (f" and {more:,} more" if more else "")


def counted(number: int, noun: str, several: str | None = None) -> str:
    """A number with its noun: 1 value, 2 values."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def percent(share: float) -> str:
    """A share as people read it; what is not quite all or nothing does not look like it."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return "<1 %" if share < 0.005 else ">99 %" if share > 0.995 else f"{100 * share:.0f} %"


def decimal(value: float) -> str:
    """A score."""
    return "-" if value != value else f"{value:.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def large(number: int) -> str:
    """A count that may be beyond all bounds."""
    digits = int(number.bit_length() * math.log10(2))
    return f"{number:,}" if digits < 13 else f"about 10^{digits}"
