"""Writes docs/results/verdicts.md from the recorded results, and its first table into the page beside it.

It needs no store: run it after a change to a note, to the question of a study or to the layout of the tables.
"""

from __future__ import annotations

import re
from pathlib import Path

from recombine.cli.results import write_verdicts

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"


def table() -> str:
    """The primary claims, as they stand in verdicts.md, and how many claims have each answer."""
    return "\n\n".join((HERE / "verdicts.md").read_text(encoding="utf-8").split("\n\n")[2:4])


def between(text: str) -> str:
    """The text between the marks."""
    match = re.search(f"{BEGIN}\n\n(.*?)\n\n{END}", text, flags=re.DOTALL)
    if match is None:
        raise SystemExit(f"{PAGE} lacks the marks {BEGIN} and {END}, each between blank lines.")
    return match[1]


def marked(text: str) -> str:
    """A text with the marks around it."""
    return f"{BEGIN}\n\n{text}\n\n{END}"


if __name__ == "__main__":
    write_verdicts(HERE)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(marked(between(text)), marked(table())), encoding="utf-8")
