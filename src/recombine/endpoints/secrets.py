"""The forms in which a key may appear in a text. All of them are removed before anything is stored or shown."""

from __future__ import annotations

import base64
import json
import urllib.parse

REMOVED = "[key]"
"""What stands in the place of a key."""


def without_secret(text: str, secret: str) -> str:
    """A text without a key, verbatim or encoded.

    Args:
        text: Any text: an answer, an error, a page.
        secret: The key.

    Returns:
        The text with `[key]` in the place of each form of the key.
    """
    for form in forms(secret):
        text = text.replace(form, REMOVED)
    return text


def forms(secret: str) -> list[str]:
    """A key verbatim, escaped in JSON, quoted in an address, in hexadecimal and in base64; the longest form first."""
    raw = secret.encode("utf-8", "surrogatepass")
    found = {
        secret,
        json.dumps(secret)[1:-1],
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote(secret),
        urllib.parse.quote_plus(secret),
    }
    found |= {raw.hex(), raw.hex().upper()}
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        found |= {
            encode(raw).decode().rstrip("="),
            *(_inside(encode(bytes(start) + raw).decode(), start, raw) for start in range(3)),
        }
    return sorted((form for form in found if len(form) >= len(secret)), key=len, reverse=True)


def _inside(text: str, start: int, raw: bytes) -> str:
    """The part of a base64 text that the key alone decides, where `start` other bytes come before it (`Bearer KEY`)."""
    first, last = -(-8 * start // 6), 8 * (start + len(raw)) // 6
    return text[first:last]
