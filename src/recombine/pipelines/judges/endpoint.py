"""A judge behind an OpenAI-compatible endpoint: a vision-language model that answers yes or no."""

from __future__ import annotations

import base64
from typing import Any

from recombine.endpoints.chat import ATTEMPTS, FIRST_WAIT, ChatEndpoint, RequestFailed, Unavailable, address
from recombine.errors import BadInput
from recombine.pipelines.judges.base import ImageToJudge, Judge, Judgement, from_scores
from recombine.pipelines.judges.local_model import ASK, yes_or_no

KEY = "RECOMBINE_JUDGE_KEY"
"""The environment variable with the key. The key is sent to the endpoint only, and never stored."""
GIVE_UP = 3
"""After this many images in a row without an answer, no more are asked."""


class EndpointJudge(Judge):
    """Asks one question at a time. Failures are recorded; running the same command again repeats them."""

    def __init__(self, url: str, *, model: str | None = None, **other: Any) -> None:
        base = address(url, KEY)
        if not model:
            raise BadInput("The endpoint needs the name of a model.", fix="--judge-model NAME")
        self._endpoint = ChatEndpoint(url, model, KEY, attempts=ATTEMPTS, first_wait=FIRST_WAIT)
        self.name = f"openai:{base} {model}"
        self._failed, self._reason = 0, ""

    def unavailable(self) -> str:
        if self._failed < GIVE_UP:
            return ""
        silent = f"{self._endpoint.url} did not answer for {self._failed} images in a row"
        return f"{silent} ({self._reason}), so no more images were judged"

    def assess(self, image: ImageToJudge) -> Judgement:
        encoded = base64.b64encode(image.path.read_bytes()).decode()
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
        scores: list[float | None] = []
        errors, unavailable = [], False
        for question in image.questions:
            content = [{"type": "text", "text": ASK.format(question=question.text)}, picture]
            try:
                text = self._endpoint.ask([{"role": "user", "content": content}], temperature=0)
            except RequestFailed as error:
                errors.append(str(error))
                unavailable = isinstance(error, Unavailable)
                break  # The other questions would fail too.
            scores.append(yes_or_no(text))
            if scores[-1] is None:
                errors.append(f"neither yes nor no: {text[:100]!r}")
        scores += [None] * (len(image.questions) - len(scores))
        # An endpoint that gives an odd answer, or refuses one image, is still available.
        unavailable = unavailable and all(score is None for score in scores)
        self._failed = self._failed + 1 if unavailable else 0
        self._reason = errors[-1] if unavailable else ""
        return from_scores(scores, "; ".join(errors))
