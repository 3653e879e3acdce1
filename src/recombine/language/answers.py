"""Whether a model's answer is right: an exact match after both sides are normalised.

1. Reasoning is removed: everything up to the last `</think>`.
2. The last line with letters or digits counts. Characters are normalised (NFKC) and lower-cased.
3. A label before a colon is removed (`Answer:`, `The decoded message is:`).
4. Quotes, brackets, asterisks and the like around the answer are removed, and dots at its end.
5. Commas and semicolons before a space are removed, and runs of white space become one space.

Marks that the right answer has are asked for: its commas and semicolons stay, and its dot or exclamation mark at the
end. Answers that lack them are wrong.
"""

from __future__ import annotations

import re
import unicodedata

LABEL = re.compile(
    r"^[\W_]*(?:[a-z']+ ){0,5}(?:answer|result|message|output|text|string|list|order|words|number|count|acronym|letters)"
    r"(?: is| are)?[*_]*\s*:"
)
AROUND = " \t\"'`*_()[]{}<>\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
MAX_STORED = 500
"""The number of characters of an answer that are stored."""


SEPARATORS, ENDS = ",;", ".!"
"""Marks that are removed where the right answer has none of them: before a space, and at the end."""


def normalised(text: str, kept: str = "") -> str:
    """The form in which answers are compared.

    Args:
        text: The answer.
        kept: Marks that are part of the answer and stay.
    """
    text = text.rpartition("</think>")[2]
    for _ in range(10):  # Repeated, because labels and quotes can be nested.
        text = _barer(text, kept)
    return text


def _barer(text: str, kept: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    lines = [line for line in text.splitlines() if any(sign.isalnum() for sign in line)]
    last = LABEL.sub("", lines[-1] if lines else "", count=1)
    removed = "".join(sign for sign in SEPARATORS if sign not in kept)
    if removed:
        last = re.sub(f"[{removed}](?=\\s)", " ", last)
    last = last.strip(AROUND).rstrip("".join(sign for sign in ENDS if sign not in kept))
    return " ".join(last.split())


def _asked_for(answer: str) -> str:
    """The marks that an answer has: separators anywhere, and the mark at its end."""
    bare = answer.strip().strip(AROUND)
    return "".join(sign for sign in SEPARATORS if sign in bare) + "".join(sign for sign in ENDS if bare.endswith(sign))


def is_right(response: str, answer: str) -> bool:
    """Whether a model's response equals the right answer after both are normalised.

    Args:
        response: What the model said.
        answer: The right answer. Its commas, semicolons and final mark are asked for.
    """
    kept = _asked_for(answer)
    return normalised(response, kept) == normalised(answer, kept) != ""
