"""What an endpoint's reply says: the words of a chat, or where there are none, why."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from recombine.plain import plain

SHOWN = 200
"""Characters of somebody else's message that are passed on."""
EXPECTED = "choices[0].message.content"


class NotAChat(Exception):
    """The reply is not that of a chat; the message says what was expected and what came, `said` in the reply's own words."""

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"the answer is not that of a chat: expected JSON with {EXPECTED}, got {kind}")
        self.said = said


def content(body: bytes) -> str:
    """The words of a reply; those of one in pieces are joined, and where there are none, none are said."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        kind = "a web page" if body.lstrip()[:1] == b"<" else "what is no JSON" if body.strip() else "nothing"
        raise NotAChat(kind, explanation(body)) from None
    try:
        found = said["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        failed = isinstance(said, dict) and said.get("error")
        raise NotAChat("an error" if failed else "JSON without it", explanation(body)) from None
    if isinstance(found, list):
        return "".join(str(piece.get("text", "")) for piece in found if isinstance(piece, dict))
    return "" if found is None else str(found)


def explanation(body: bytes) -> str:
    """What a reply says in words, on one line: its message if it is JSON with one, else all of it. To be shortened."""
    text = body.decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        text = _message(json.loads(text)) or text
    return plain(" ".join(text.split())[: 100 * SHOWN])


def shortened(text: str) -> str:
    """The beginning of an explanation. To be called when secrets are out: half of one would not be found."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _message(said: Any) -> str:
    """The usual places: {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}."""
    if not isinstance(said, dict):
        return ""
    error = said.get("error")
    places = (
        error.get("message") if isinstance(error, dict) else error,
        said.get("message"),
        said.get("detail"),
    )
    return next((one for one in places if isinstance(one, str) and one.strip()), "")
