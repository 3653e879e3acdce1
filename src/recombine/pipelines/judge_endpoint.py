"""A judge behind an OpenAI-compatible endpoint: a vision-language model that is asked yes or no."""

from __future__ import annotations

import base64
from typing import Any

from recombine.endpoints.chat import FIRST_WAIT, TRIES, ChatEndpoint, NoAnswer, Silent, address
from recombine.errors import BadInput
from recombine.pipelines.judge import Answer, Judge, Shown, from_scores
from recombine.pipelines.judge_vqa import ASK, yes_or_no

KEY = "RECOMBINE_JUDGE_KEY"
"""The variable of the environment with the key. It is sent to the endpoint and to nobody else, and never stored."""
GIVE_UP = 3
"""So many images in a row without any answer, and the endpoint counts as down."""


class EndpointJudge(Judge):
    """Asks one question at a time. What fails is recorded and asked again when the command is run again."""

    def __init__(self, url: str, *, model: str | None = None, **other: Any) -> None:
        base = address(url, KEY)
        if not model:
            raise BadInput("The endpoint needs to know which model to ask.", fix="--judge-model NAME")
        self._endpoint = ChatEndpoint(url, model, KEY, tries=TRIES, first_wait=FIRST_WAIT)
        self.name = f"openai:{base} {model}"
        self._silent = 0
        self._why = ""

    def gone(self) -> str:
        if self._silent < GIVE_UP:
            return ""
        url = self._endpoint.url
        return (
            f"{url} did not answer for {self._silent} images in a row ({self._why}), and no more were asked"
        )

    def look(self, shown: Shown) -> Answer:
        picture = base64.b64encode(shown.path.read_bytes()).decode()
        scores: list[float | None] = []
        errors = []
        silent = False
        for question in shown.questions:
            try:
                text = self._asked(picture, question.text)
            except NoAnswer as error:
                scores.append(None)
                errors.append(str(error))
                silent = isinstance(error, Silent)
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
        content = [
            {"type": "text", "text": ASK.format(question=question)},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        ]
        return self._endpoint.ask([{"role": "user", "content": content}], temperature=0)
