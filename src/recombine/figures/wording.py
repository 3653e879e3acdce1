"""Numbers, intervals, margins and names as text for readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
"""Stands in place of a missing number."""
LONGEST_NAME = 400
"""Most characters of a name from a user's data."""


def number(value: float | None, digits: int = 2) -> str:
    """A number with `digits` decimals and a typographic minus sign, or a dash if it is missing."""
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{abs(value):.{digits}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) != 0 else text


def signed(value: float | None, digits: int = 2) -> str:
    """A number that always shows its sign, for effects and differences."""
    text = number(value, digits)
    return text if text in (NOTHING, number(0.0, digits)) or text.startswith(MINUS) else f"+{text}"


def margin_number(value: float) -> str:
    """A margin with as many decimals as it was written with."""
    digits = next((count for count in range(1, 6) if math.isclose(round(value, count), value)), 6)
    return number(value, max(digits, 2) if value % 1 else 0)


def interval_in_words(interval: Sequence[float | None] | None) -> str:
    """Both ends of an interval, or `no interval`."""
    low, high = interval if interval is not None and len(interval) == 2 else (None, None)
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    return f"{signed(low)} to {signed(high)}"


def margin_in_words(direction: str | None, margin: float | None) -> str:
    """Where the whole interval must lie for the claim to hold, for example `holds above +0.05`."""
    if margin is None or not math.isfinite(margin):
        return "no margin"
    distance = margin_number(abs(margin))
    threshold = margin_number(margin)
    match direction:
        case "greater":
            return f"holds above +{distance}"
        case "less":
            return f"holds below {MINUS}{distance}"
        case "equivalent":
            return f"holds within \N{PLUS-MINUS SIGN}{distance}"
        case "above":
            return f"holds above {threshold}"
        case "below":
            return f"holds below {threshold}"
        case _:
            return f"margin {threshold}"


def p_in_words(p: float | None) -> str:
    """A p value, rounded to a sensible number of digits."""
    if p is None or not math.isfinite(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def cut(text: str, most: int = LONGEST_NAME) -> str:
    """The text, shortened to at most `most` characters with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def sentences(*texts: str) -> str:
    """The sentences of a caption. Empty ones are left out."""
    return " ".join(filter(None, texts))


def count_of(number: int, noun: str) -> str:
    """`1 replicate`, `4 replicates`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def answer_in_words(record: Mapping[str, Any], replicates: str = "replicates") -> str:
    """Whether a claim holds, the claim, and what the answer rests on.

    Args:
        record: A verdict as plain values.
        replicates: What a replicate is called.

    Returns:
        For instance `Holds: Held-out R2 rises. Effect +0.34 (95 % interval +0.32 to +0.36) over 12 replicates.` A claim that
        does not hold is introduced as a claim, so that nobody takes it for the finding.
    """
    start = f"{record['answer'].capitalize()}{':' if record['answer'] == 'holds' else '. The claim was:'}"
    scales = record.get("scales") or [{**record, "scale": ""}]
    effects = "; ".join(
        f"{scale['scale']} {signed(scale['effect'])} (95 % interval {interval_in_words(scale['interval'])})".lstrip()
        for scale in scales
    )
    note = f" ({record['note']}.)" if record["note"] else ""
    return f"{start} {record['statement']} Effect {effects} over {record['replicates']} {replicates}.{note}"
