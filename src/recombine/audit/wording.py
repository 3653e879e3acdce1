"""How findings are put into words: short lists of names, shares, counts and intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from recombine.plain import plain
from recombine.stats.intervals import Interval

LONGEST = 40
"""Names from data are cut to this many characters in sentences; tables hold them whole."""
WIDTH = 100
"""Characters in a line of a `repr`."""


def short(name: str) -> str:
    """A name that fits into a sentence."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def listed(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    first = [short(name) for name in names[:most]]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def counted(number: int, noun: str, several: str | None = None) -> str:
    """A number with its noun: 1 value, 2 values."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def percent(share: float) -> str:
    """A share in per cent; only exactly none and all are shown as 0 % and 100 %."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return "<1 %" if share < 0.005 else ">99 %" if share > 0.995 else f"{100 * share:.0f} %"


def decimal(value: float) -> str:
    """A score with two decimals; a dash for NaN."""
    return "-" if value != value else f"{value:.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def amount(value: float) -> str:
    """A number with two significant digits, without an exponent where it is not huge or tiny."""
    return f"{float(f'{value:.2g}'):,.10g}"


def estimate(interval: Interval | None) -> str:
    """An estimate with its interval: 0.90 [0.85, 0.94]; a dash for None."""
    if interval is None:
        return "-"
    return f"{decimal(interval.estimate)} [{decimal(interval.low)}, {decimal(interval.high)}]"


def p_text(p: float) -> str:
    """A p value with two digits; below 0.001 only that."""
    return "<0.001" if p < 0.001 else f"{p:.2g}"


def large(number: int) -> str:
    """A count; as a power of ten if it is huge."""
    digits = int(number.bit_length() * math.log10(2))
    return f"{number:,}" if digits < 13 else f"about 10^{digits}"


def shown(lines: Iterable[str], most: int = 2) -> str:
    """Lines of a `repr`: each is wrapped to at most `most` lines, and invisible characters are written out."""
    wrapped = []
    for line in map(plain, lines):
        indent = " " * (len(line) - len(line.lstrip()))
        wrapped += textwrap.wrap(line, WIDTH, subsequent_indent=indent + "  ", max_lines=most, placeholder=" ...")
    return "\n".join(wrapped)
