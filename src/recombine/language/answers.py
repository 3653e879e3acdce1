"""Whether an answer is right: the whole of it, exactly, once what surrounds answers is taken away.

Both the answer and what was said go the same way:

1. Thoughts are dropped: all up to the last `</think>`.
2. Of several lines the last that has letters or digits counts; signs are brought to one form (NFKC), letters made small.
3. A label before a colon goes (`Answer:`, `The decoded message is:`).
4. Quotes, brackets, asterisks and the like around the answer go, and dots at its end.
5. Commas and semicolons before a space go, and runs of white space become one space.
"""

from __future__ import annotations

import re
import unicodedata

LABEL = re.compile(
    r"^[\W_]*(?:[a-z']+ ){0,5}(?:answer|result|message|output|text|string|list|order|words|number|count|acronym|letters)"
    r"(?: is| are)?[*_]*\s*:"
)
AROUND = " \t\"'`*_()[]{}<>\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
KEPT = 500
"""Characters of what was said that are kept."""


def normalised(text: str) -> str:
    """What is compared."""
    text = text.rpartition("</think>")[2]
    for _ in range(10):  # A label in quotes, quotes after a label.
        text = _barer(text)
    return text


def _barer(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    lines = [line for line in text.splitlines() if any(sign.isalnum() for sign in line)]
    last = LABEL.sub("", lines[-1] if lines else "", count=1)
    last = re.sub(r"[,;](?=\s)", " ", last).strip(AROUND).rstrip(".!")
    return " ".join(last.split())


def is_right(said: str, answer: str) -> bool:
    """Whether what was said is the answer."""
    return normalised(said) == normalised(answer) != ""
