"""A model that chats behind an OpenAI-compatible endpoint: one question, one answer, patiently."""

from __future__ import annotations

import contextlib
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

from recombine.endpoints.replies import NotAChat, content, explanation, shortened
from recombine.errors import BadInput
from recombine.plain import plain

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
EXPLAINED = 1 << 16
"""Bytes of an error's explanation that are read."""
OPEN = ("api-version", "version")
"""What a query may hold that is no secret; values of all else are stored and told nowhere."""
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
        self.base = base = address(url, key_variable)
        """The address, without anything that could be a secret."""
        self.url = base if base.endswith("/chat/completions") else f"{base}/chat/completions"
        """Where questions go, without the query."""
        self._query, shown, self._hidden = _query(url)
        if shown:
            self.base = f"{base}?{shown}"
        self.fix = ""
        """What the asker can do about the last answer, where that is known."""
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
                return self._without_key(self._once(body, end), answer=True)
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
        where = f"{self.url}?{self._query}" if self._query else self.url
        asked = urllib.request.Request(where, body, self._headers(), method="POST")
        try:
            with self._opener.open(asked, timeout=patience) as answer:
                text = _read(answer, began + patience)
            return content(text)
        except urllib.error.HTTPError as error:
            told = f"HTTP {error.code} {self._short(plain(str(error.reason)))}".strip()
            wait = _asked_wait(error.headers.get("Retry-After"))
            if said := self._short(_explained(error, began + patience)):
                told += f": {said}"
            error.close()
            if error.code in AGAIN:
                raise _Later(told, wait) from error
            if error.code in SHUT:
                raise Silent(f"{told}{self._shut_out()}") from error
            raise NoAnswer(told) from error
        except (OSError, http.client.HTTPException) as error:
            raise _Later(f"{type(error).__name__}: {getattr(error, 'reason', error)}") from error
        except NotAChat as error:
            said = self._short(error.said)
            raise NoAnswer(f"{error}: {said}" if said else str(error)) from error
        except ValueError as error:  # A host's name that cannot be written in an address.
            raise NoAnswer(f"{type(error).__name__}: {error}") from error

    def _shut_out(self) -> str:
        """Whether a key was sent at all, and what can be done."""
        name = self._key_variable
        if self._key():
            self.fix = f"see that the key in {name} is the right one"
            return ""
        self.fix = f"put the key into the environment: export {name}=..."
        return f" (no key was sent: {name} is not set)"

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

    def _without_key(self, text: str, answer: bool = False) -> str:
        """An endpoint may repeat what it was sent. A word that stands in the address may be one of the answer's own."""
        hidden = [one for one in self._hidden if not (answer and one.isalpha())]
        for secret in (self._key(), *hidden):
            if len(secret) >= SHORTEST_KEY:
                # As it is, as JSON has it, and as an address has it.
                for form in (secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret, safe="")):
                    text = text.replace(form, "[key]")
        return text

    def _short(self, text: str) -> str:
        """The beginning of what it says: cut when the key is out, as half a key would not be found."""
        return shortened(self._without_key(text))


def address(url: str, key_variable: str) -> str:
    """The address of an endpoint, without query and last slash. BadInput if it is none, or has a key in it."""
    parts = _parts(url)
    if parts is None:
        shown = url.partition("?")[0]
        raise BadInput(
            f"The endpoint {shown!r} is no address.", fix="write it whole: https://host/v1 or http://..."
        )
    if parts.username or parts.password:
        raise BadInput("A key does not belong into the address.", fix=f"put it into {key_variable}")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _parts(url: str) -> urllib.parse.SplitResult | None:
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # What cannot be sent as it is would be refused by the library, which repeats the query.
        good = good and url.isprintable() and " " not in url and (parts.path + parts.query).isascii()
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


def _explained(error: urllib.error.HTTPError, end: float) -> str:
    """What a reply that is an error says; a redirect, which is not followed, says where it leads."""
    place = error.headers.get("Location")
    if 300 <= error.code < 400 and place:
        where = plain(place.partition("?")[0])
        return f"it leads to {where}, and redirects are not followed"
    body = b""
    # What comes too late, or not whole, is not worth another error.
    with contextlib.suppress(OSError, http.client.HTTPException):
        while len(body) < EXPLAINED and time.monotonic() < end and (piece := error.read1(EXPLAINED)):
            body += piece
    return explanation(body)


def _query(url: str) -> tuple[str, str, list[str]]:
    """An address's query as it is sent, as it may be stored, and the values that may not."""
    query = urllib.parse.urlsplit(url).query
    shown, hidden = [], []
    for part in filter(None, query.split("&")):
        name, sign, value = part.partition("=")
        if name.lower() in OPEN and sign:
            shown.append(part)
        else:
            shown.append(f"{name}=[hidden]" if sign else "[hidden]")
            hidden += [value, urllib.parse.unquote_plus(value)] if sign else [part]
    return query, "&".join(shown), hidden


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
