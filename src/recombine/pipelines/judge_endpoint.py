"""A judge behind an OpenAI-compatible endpoint: a vision-language model that is asked yes or no."""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.judge import Answer, Judge, Shown, from_scores
from recombine.pipelines.judge_vqa import ASK, yes_or_no

KEY = "RECOMBINE_JUDGE_KEY"
"""The variable of the environment with the key. It is sent to the endpoint and to nobody else, and never stored."""
TRIES = 4
FIRST_WAIT = 1.0
"""Seconds before the second try; each further one waits twice as long."""
PATIENCE = 60.0
GIVE_UP = 3
"""So many images in a row without any answer, and the endpoint counts as down."""
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
SHUT = (401, 403)
"""What it says of the asker and not of the image, so that others would fare no better."""
LARGEST = 1 << 20
"""Bytes of an answer that are read."""


class EndpointJudge(Judge):
    """Asks one question at a time. What fails is recorded and asked again when the command is run again."""

    def __init__(self, url: str, *, model: str | None = None, **other: Any) -> None:
        parts = _address(url)
        if parts is None:
            raise BadInput(
                f"The endpoint {url!r} is no address.",
                fix="write openai:https://host/v1 or openai:http://...",
            )
        if not model:
            raise BadInput("The endpoint needs to know which model to ask.", fix="--judge-model NAME")
        if parts.username or parts.password:
            raise BadInput("A key does not belong into the address.", fix=f"put it into {KEY}")
        base = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
        self._url = base if base.endswith("/chat/completions") else f"{base}/chat/completions"
        self._model = model
        self.name = f"openai:{base} {model}"
        self._wait = FIRST_WAIT
        self._silent = 0
        self._why = ""
        self._opener = urllib.request.build_opener(_Stay)

    def gone(self) -> str:
        if self._silent < GIVE_UP:
            return ""
        return f"{self._url} did not answer for {self._silent} images in a row ({self._why}), and no more were asked"

    def look(self, shown: Shown) -> Answer:
        picture = base64.b64encode(shown.path.read_bytes()).decode()
        scores: list[float | None] = []
        errors = []
        silent = False
        for question in shown.questions:
            try:
                text = self._asked(picture, question.text)
            except _NoAnswer as error:
                scores.append(None)
                errors.append(str(error))
                silent = isinstance(error, _Silent)
                break  # The others would not get one either.
            scores.append(yes_or_no(text))
            if scores[-1] is None:
                errors.append(f"neither yes nor no: {text[:100]!r}")
        scores += [None] * (len(shown.questions) - len(scores))
        # An endpoint that says something odd, or refuses one image, is there all the same.
        silent = silent and all(one is None for one in scores)
        self._silent = self._silent + 1 if silent else 0
        self._why = errors[-1] if silent else ""
        return from_scores(scores, "; ".join(errors))

    def _asked(self, picture: str, question: str) -> str:
        """The endpoint's words; waits and tries again where that may help."""
        wait = self._wait
        for number in range(TRIES):
            try:
                return self._once(picture, question)
            except _Later as error:
                if number == TRIES - 1:
                    raise _Silent(str(error)) from error
                time.sleep(wait)
                wait *= 2
        raise AssertionError

    def _once(self, picture: str, question: str) -> str:
        content = [
            {"type": "text", "text": ASK.format(question=question)},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        ]
        body = {"model": self._model, "messages": [{"role": "user", "content": content}], "temperature": 0}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        asked = urllib.request.Request(self._url, json.dumps(body).encode(), headers, method="POST")
        try:
            with self._opener.open(asked, timeout=PATIENCE) as answer:
                said = json.loads(answer.read(LARGEST))
            return str(said["choices"][0]["message"]["content"])
        except urllib.error.HTTPError as error:
            told = f"HTTP {error.code} {error.reason}"
            kind = _Later if error.code in AGAIN else _Silent if error.code in SHUT else _NoAnswer
            raise kind(told) from error
        except (OSError, http.client.HTTPException) as error:
            raise _Later(f"{type(error).__name__}: {getattr(error, 'reason', error)}") from error
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise _NoAnswer(f"the answer is not that of a chat: {type(error).__name__}") from error


def _address(url: str) -> urllib.parse.SplitResult | None:
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A bracket that is not closed, or a port that is no number.
        return None
    return parts if good else None


class _Later(Exception):
    """It may help to wait."""


class _NoAnswer(Exception):
    """It does not help to wait."""


class _Silent(_NoAnswer):
    """Nobody is there, or not for us."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: the key is for this endpoint."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        return None
