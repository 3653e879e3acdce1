"""A model that chats behind an OpenAI-compatible endpoint: one question, one answer, patiently."""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from recombine.errors import BadInput

TRIES = 4
FIRST_WAIT = 1.0
"""Seconds before the second try; each further one waits twice as long, or as long as the endpoint asks for."""
PATIENCE = 60.0
"""Seconds for one try."""
LIMIT = 300.0
"""Seconds for one question with all its tries and waits."""
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
SHUT = (401, 403)
"""What it says of the asker and not of the question, so that others would fare no better."""
LARGEST = 1 << 20
"""Bytes of an answer that are read."""
SHORTEST_KEY = 6
"""A shorter key may be an ordinary word, and is not looked for in what is said."""


class NoAnswer(Exception):
    """There is none, and it does not help to wait."""


class Silent(NoAnswer):
    """Nobody is there, or not for us."""


class ChatEndpoint:
    """Asks one question at a time; several threads may ask at once. The key is read when it is sent, and never kept."""

    def __init__(
        self,
        url: str,
        model: str,
        key_variable: str,
        *,
        tries: int = TRIES,
        first_wait: float = FIRST_WAIT,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> None:
        self.base = address(url, key_variable)
        """The address, without anything that could be a secret."""
        self.url = self.base if self.base.endswith("/chat/completions") else f"{self.base}/chat/completions"
        self.model = model
        self._key_variable = key_variable
        self._tries, self._first_wait = tries, first_wait
        self._patience, self._limit = patience, limit
        self._opener = urllib.request.build_opener(_Stay)

    def ask(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """The endpoint's words; waits and tries again where that may help. NoAnswer, or Silent, if there are none."""
        body = json.dumps({"model": self.model, "messages": list(messages), **options}).encode()
        end = time.monotonic() + self._limit
        wait = self._first_wait
        for number in range(self._tries):
            try:
                return self._without_key(self._once(body, end))
            except _Later as error:
                pause = max(wait, error.wait)
                told = self._without_key(str(error))
                if error.wait > wait and time.monotonic() + pause > end:
                    told += f", and asks to wait for {error.wait:.0f} s"
                if number == self._tries - 1 or time.monotonic() + pause > end:
                    raise Silent(told) from None
                time.sleep(pause)
                wait *= 2
            except NoAnswer as error:
                raise type(error)(self._without_key(str(error))) from None
        raise AssertionError

    def _once(self, body: bytes, end: float) -> str:
        began = time.monotonic()
        patience = max(min(self._patience, end - began), 0.001)
        asked = urllib.request.Request(self.url, body, self._headers(), method="POST")
        try:
            with self._opener.open(asked, timeout=patience) as answer:
                text = _read(answer, began + patience)
            return _content(json.loads(text))
        except urllib.error.HTTPError as error:
            told, wait = f"HTTP {error.code} {error.reason}", _asked_wait(error.headers.get("Retry-After"))
            error.close()
            if error.code in AGAIN:
                raise _Later(told, wait) from error
            raise (Silent if error.code in SHUT else NoAnswer)(told) from error
        except (OSError, http.client.HTTPException) as error:
            raise _Later(f"{type(error).__name__}: {getattr(error, 'reason', error)}") from error
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise NoAnswer(f"the answer is not that of a chat: {type(error).__name__}") from error

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if key := self._key():
            if not (key.isascii() and key.isprintable()):
                # The library would say so too, and repeat the key.
                raise Silent(f"the key in {self._key_variable} has signs that cannot be sent")
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        return os.environ.get(self._key_variable, "").strip()

    def _without_key(self, text: str) -> str:
        """An endpoint may repeat what it was sent."""
        key = self._key()
        return text.replace(key, "[key]") if len(key) >= SHORTEST_KEY else text


def address(url: str, key_variable: str) -> str:
    """The address of an endpoint, without query and last slash. BadInput if it is none, or has a key in it."""
    parts = _parts(url)
    if parts is None:
        raise BadInput(
            f"The endpoint {url!r} is no address.", fix="write it whole: https://host/v1 or http://..."
        )
    if parts.username or parts.password:
        raise BadInput("A key does not belong into the address.", fix=f"put it into {key_variable}")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _parts(url: str) -> urllib.parse.SplitResult | None:
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A bracket that is not closed, or a port that is no number.
        return None
    return parts if good else None


def _read(answer: http.client.HTTPResponse, end: float) -> bytes:
    """What is sent, up to a limit; one that sends a little now and then is slow too."""
    declared = str(answer.headers.get("Content-Length", ""))
    most = min(int(declared), LARGEST) if declared.isdecimal() else LARGEST
    pieces, size = [], 0
    while size < most and (piece := answer.read1(min(65_536, most - size))):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > end:
            raise TimeoutError("the answer did not end in time")
    if declared.isdecimal() and size < most:
        raise http.client.IncompleteRead(b"", most - size)
    return b"".join(pieces)


def _content(said: Any) -> str:
    """The words of an answer; those of one in pieces are joined, and where there are none, none are said."""
    content = said["choices"][0]["message"]["content"]
    if isinstance(content, list):
        return "".join(str(piece.get("text", "")) for piece in content if isinstance(piece, dict))
    return "" if content is None else str(content)


def _asked_wait(header: str | None) -> float:
    """Seconds of a Retry-After header, which may be a date; 0 where it says nothing that can be read."""
    if header is None:
        return 0.0
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return 0.0
    return wait if 0 < wait < float("inf") else 0.0


class _Later(Exception):
    """It may help to wait."""

    def __init__(self, told: str, wait: float = 0.0) -> None:
        super().__init__(told)
        self.wait = wait


class _Stay(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: the key is for this endpoint."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        return None
