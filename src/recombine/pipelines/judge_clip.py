"""A judge that compares an image with sentences: CLIP and its like, from a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recombine.pipelines.judge import Answer, Judge, Shown, from_scores
from recombine.pipelines.judge_loading import check_judge, load_judge
from recombine.pipelines.loading import fingerprint


class ClipJudge(Judge):
    """A concept is right if the prompt fits the image better than with any other concept in its place."""

    compares = True
    _model: Any

    def __init__(self, folder: str, *, device: str = "auto", **other: Any) -> None:
        self.name = f"clip:{Path(folder).name}"
        self._folder, self._wanted, self._model = Path(folder), device, None
        check_judge(self._folder)
        self.version = fingerprint(self._folder)

    def prepare(self) -> None:
        if self._model is None:
            self._model, self._processor, self._device = load_judge(
                self._folder, ("AutoModel",), self._wanted
            )

    def look(self, shown: Shown) -> Answer:
        import torch

        texts = [shown.questions[0].prompt if shown.questions else shown.text]
        places = []
        for question in shown.questions:
            places.append(range(len(texts), len(texts) + len(question.alternatives)))
            texts += question.alternatives
        given = self._processor(
            text=texts, images=shown.load(), return_tensors="pt", padding="max_length", truncation=True
        )
        with torch.inference_mode():
            logits = self._model(**given.to(self._device)).logits_per_image[0].float().cpu()
        scores: list[float | None] = []
        for place in places:
            # The difference to the best of the others: right if it is above 0, whatever their number.
            best = max((float(logits[one]) for one in place), default=-float("inf"))
            scores.append(float(torch.sigmoid(logits[0] - best)) if len(place) else None)
        return from_scores(scores)
