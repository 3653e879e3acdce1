"""A client for OpenAI-compatible chat endpoints, with retries.

It is written on urllib on purpose. httpx, on which the openai client is built, limits the time between two chunks of a
reply, not the time or the size of a whole reply, and its retries cover failed connections only. The limits, the wording
of errors and the removal of secrets are most of this file and would still be needed. The retries are 15 lines.
"""

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

from recombine.endpoints.secrets import without_secret
from recombine.errors import BadInput
from recombine.plain import plain

ATTEMPTS = 4
FIRST_WAIT = 1.0
"""Seconds before the second attempt. Each further wait is twice as long, or as long as Retry-After asks for."""
TIMEOUT = 60.0
"""Seconds for one attempt."""
LIMIT = 300.0
"""Seconds for one question, with all attempts and waits."""
RETRIED = (408, 409, 425, 429, 500, 502, 503, 504)
DENIED = (401, 403)
"""Authorisation errors: every other question would fail too."""
LARGEST = 1 << 20
"""Most bytes of an answer that are read."""
LARGEST_ERROR = 1 << 16
"""Most bytes of an error reply that are read."""
PUBLIC_PARAMETERS = ("api-version", "version")
"""Query parameters that are not secret. The values of all others are never stored or printed."""
SHOWN = 200
"""Most characters of a server's message that are passed on."""
SHORTEST_KEY = 6
"""A shorter key may be an ordinary word, so it is not removed from texts."""


class RequestFailed(Exception):
    """The question got no answer, and another attempt would not help."""


class Unavailable(RequestFailed):
    """The endpoint cannot be reached, or does not accept the key."""


class ChatEndpoint:
    """A model behind an OpenAI-compatible endpoint. Several threads may ask at once.

    The key is read from the environment for each request, and never stored.

    Args:
        url: The address, for example https://host/v1. A query is sent with each request.
        model: The name of the model.
        key_variable: The environment variable that holds the key.
        attempts: Most attempts per question.
        first_wait: Seconds before the second attempt; the wait doubles each time.
        timeout: Seconds for one attempt.
        limit: Seconds for one question, with all attempts and waits.

    Example:
        ```python
        chat = ChatEndpoint("http://localhost:8000/v1", "my-model", "MY_KEY")
        chat.ask([{"role": "user", "content": "Hello"}], temperature=0)
        ```
    """

    def __init__(
        self,
        url: str,
        model: str,
        key_variable: str,
        *,
        attempts: int = ATTEMPTS,
        first_wait: float = FIRST_WAIT,
        timeout: float = TIMEOUT,
        limit: float = LIMIT,
    ) -> None:
        base = address(url, key_variable)
        self.url = base if base.endswith("/chat/completions") else f"{base}/chat/completions"
        """The address of chat completions, without the query."""
        self._query, shown, self._hidden = _query(url)
        self.base = f"{base}?{shown}" if shown else base
        """The address without secrets."""
        self.fix = ""
        """What the user can do about the last error, if that is known."""
        self.model = model
        self._key_variable = key_variable
        self._attempts, self._first_wait = attempts, first_wait
        self._timeout, self._limit = timeout, limit
        self._opener = urllib.request.build_opener(_NoRedirect)

    def ask(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """Ask one question. Errors that may pass are retried.

        Args:
            messages: The messages of the chat, as the API takes them.
            options: Other fields of the request, for example `temperature`.

        Returns:
            The text of the answer.

        Raises:
            RequestFailed: The question got no answer; `Unavailable` if no other question would get one either.
        """
        return text_of(self.message(messages, **options))

    def message(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, Any]:
        """Ask one question, and return the whole message: its `content`, and `tool_calls` if there are any.

        The arguments and errors are those of `ask`; `tools` is an option.
        """
        body = json.dumps({"model": self.model, "messages": list(messages), **options}).encode()
        end = time.monotonic() + self._limit
        wait = self._first_wait
        for attempt in range(self._attempts):
            try:
                return self._clean(self._request(body, end))
            except _Retry as error:
                pause = max(wait, error.wait)
                message = self._without_key(str(error))
                if error.wait > wait and time.monotonic() + pause > end:
                    message += f", and asks to wait for {error.wait:.0f} s"
                if attempt == self._attempts - 1 or time.monotonic() + pause > end:
                    raise Unavailable(message) from None
                time.sleep(pause)
                wait *= 2
            except RequestFailed as error:
                raise type(error)(self._without_key(str(error))) from None
        raise AssertionError

    def _request(self, body: bytes, end: float) -> dict[str, Any]:
        start = time.monotonic()
        timeout = max(min(self._timeout, end - start), 0.001)
        url = f"{self.url}?{self._query}" if self._query else self.url
        request = urllib.request.Request(url, body, self._headers(), method="POST")
        try:
            with self._opener.open(request, timeout=timeout) as reply:
                return self._content(_read(reply, start + timeout))
        except urllib.error.HTTPError as error:
            message = f"HTTP {error.code} {self._short(plain(str(error.reason)))}".strip()
            if reason := self._short(_explained(error, start + timeout)):
                message += f": {reason}"
            error.close()
            if error.code in RETRIED:
                raise _Retry(message, _retry_after(error.headers.get("Retry-After", "0"))) from error
            if error.code in DENIED:
                raise Unavailable(f"{message}{self._denied()}") from error
            raise RequestFailed(message) from error
        except (OSError, http.client.HTTPException) as error:
            raise _Retry(f"{type(error).__name__}: {getattr(error, 'reason', error)}") from error
        except ValueError as error:  # A host name that cannot be encoded.
            raise RequestFailed(f"{type(error).__name__}: {error}") from error

    def _denied(self) -> str:
        """Whether a key was sent. Sets `fix`."""
        name = self._key_variable
        if self._key():
            self.fix = f"check that the key in {name} is correct"
            return ""
        self.fix = f"put the key into the environment: export {name}=..."
        return f" (no key was sent: {name} is not set)"

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if key := self._key():
            if not (key.isascii() and key.isprintable()):
                # The error of the library would repeat the key.
                raise Unavailable(f"the key in {self._key_variable} contains characters that cannot be sent")
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        return os.environ.get(self._key_variable, "").strip()

    def _without_key(self, text: str, answer: bool = False) -> str:
        """The text without secrets: an endpoint may repeat what it was sent. An answer keeps ordinary words."""
        hidden = [value for value in self._hidden if not (answer and value.isalpha())]
        for secret in (self._key(), *hidden):
            if len(secret) >= SHORTEST_KEY:
                text = without_secret(text, secret)
        return text

    def _clean(self, value: Any) -> Any:
        """The same for all texts of a message."""
        if isinstance(value, str):
            return self._without_key(value, answer=True)
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        return {key: self._clean(each) for key, each in value.items()} if isinstance(value, dict) else value

    def _short(self, text: str) -> str:
        """The beginning of a text, without secrets. Secrets are removed first: half a key would not be found."""
        text = self._without_key(text)
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"

    def _content(self, body: bytes) -> dict[str, Any]:
        """The message of a chat completion."""
        reply = None
        try:
            reply = json.loads(body)
            message = reply["choices"][0]["message"]
            if not message.get("tool_calls"):
                message["content"]
        except (ValueError, RecursionError):
            empty = not body.strip()
            kind = "a web page" if body.lstrip()[:1] == b"<" else "nothing" if empty else "text that is not JSON"
        except (KeyError, IndexError, TypeError, AttributeError):
            kind = "an error" if isinstance(reply, dict) and reply.get("error") else "JSON without it"
        else:
            # Pieces of text are joined first: a key could be cut in two.
            return {**message, "content": text_of(message)} if message.get("content") is not None else message
        reason = self._short(explanation(body))
        message = f"the reply is not a chat completion: expected JSON with choices[0].message.content, got {kind}"
        raise RequestFailed(f"{message}: {reason}" if reason else message)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message. Text in several pieces is joined; missing text is empty."""
    text = message.get("content")
    if isinstance(text, list):
        return "".join(str(piece.get("text", "")) for piece in text if isinstance(piece, dict))
    return "" if text is None else str(text)


def address(url: str, key_variable: str) -> str:
    """The address of an endpoint without its query and last slash. Raise `BadInput` if it is invalid or contains a key."""
    try:
        parts = urllib.parse.urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # The library refuses other characters, and repeats the query in its error.
        valid = valid and url.isprintable() and " " not in url and (parts.path + parts.query).isascii()
    except ValueError:  # An open bracket, or a port that is not a number.
        parts, valid = urllib.parse.urlsplit(""), False
    if not valid:
        raise BadInput(
            f"The endpoint {url.partition('?')[0]!r} is not a valid address.",
            fix="write the whole address: https://host/v1 or http://...",
        )
    if parts.username or parts.password:
        raise BadInput("The address contains a user name or a key.", fix=f"put the key into {key_variable}")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _read(reply: http.client.HTTPResponse, end: float) -> bytes:
    """The body, up to a size and until a time: a server may send a few bytes now and then."""
    declared = str(reply.headers.get("Content-Length", ""))
    most = min(int(declared), LARGEST) if declared.isdecimal() else LARGEST
    body = bytearray()
    while len(body) < most and (piece := reply.read1(min(65_536, most - len(body)))):
        body += piece
        if time.monotonic() > end:
            raise TimeoutError("the answer did not end in time")
    if declared.isdecimal() and len(body) < most:
        raise http.client.IncompleteRead(b"", most - len(body))
    return bytes(body)


def _explained(error: urllib.error.HTTPError, end: float) -> str:
    """The explanation in an error reply. For a redirect: its target."""
    target = error.headers.get("Location")
    if 300 <= error.code < 400 and target:
        return f"it redirects to {plain(target.partition('?')[0])}, and redirects are not followed"
    body = b""
    # A late or incomplete explanation is not worth another error.
    with contextlib.suppress(OSError, http.client.HTTPException):
        while len(body) < LARGEST_ERROR and time.monotonic() < end and (piece := error.read1(LARGEST_ERROR)):
            body += piece
    return explanation(body)


def _query(url: str) -> tuple[str, str, list[str]]:
    """The query of an address as it is sent, as it may be stored, and the values that must not be stored."""
    query = urllib.parse.urlsplit(url).query
    shown, hidden = [], []
    for part in filter(None, query.split("&")):
        name, sign, value = part.partition("=")
        public = bool(sign) and name.lower() in PUBLIC_PARAMETERS
        shown.append(part if public else f"{name}=[hidden]" if sign else "[hidden]")
        hidden += [] if public else [value, urllib.parse.unquote_plus(value)] if sign else [part]
    return query, "&".join(shown), hidden


def _retry_after(header: str) -> float:
    """The seconds of a Retry-After header, which may be a date. 0 if it cannot be read."""
    wait = 0.0
    try:
        wait = float(header)
    except ValueError:
        with contextlib.suppress(ValueError, OverflowError, OSError):
            wait = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
    return wait if 0 < wait < float("inf") else 0.0


class _Retry(Exception):
    """Another attempt may help, after `wait` seconds."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for this endpoint only."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        return None


def explanation(body: bytes) -> str:
    """The message of a reply on one line: its error message if it is JSON with one, otherwise the whole reply."""
    text = body.decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        text = _message(json.loads(text)) or text
    return plain(" ".join(text.split())[: 100 * SHOWN])


def _message(reply: Any) -> str:
    """The usual places: {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}."""
    if not isinstance(reply, dict):
        return ""
    error = reply.get("error")
    messages = (error.get("message") if isinstance(error, dict) else error, reply.get("message"), reply.get("detail"))
    return next((text for text in messages if isinstance(text, str) and text.strip()), "")
