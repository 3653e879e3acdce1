"""Puts the table of primary claims from docs/results/verdicts.md into the README, between its two marks."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"


def table() -> str:
    """The primary claims, as `recombine export all` wrote them."""
    return (HERE / "verdicts.md").read_text(encoding="utf-8").split("\n\n")[2]


def between(text: str) -> str:
    """What stands between the marks."""
    found = re.search(f"{BEGIN}\n\n(.*?)\n\n{END}", text, flags=re.DOTALL)
    if found is None:
        raise SystemExit(f"{README} lacks the marks {BEGIN} and {END}, each between blank lines.")
    return found[1]


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(text.replace(between(text), table()), encoding="utf-8")
