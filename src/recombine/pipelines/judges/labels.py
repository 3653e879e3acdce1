"""A judge that reads human labels from a CSV file."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.judges.base import THRESHOLD, ImageToJudge, Judge, Judgement, from_scores

COLUMNS = ("prompt", "image", "concept", "success")
WORDS = {"1": 1.0, "yes": 1.0, "true": 1.0, "0": 0.0, "no": 0.0, "false": 0.0}


class LabelJudge(Judge):
    """Reads one row per image and concept, or one row per image, with the columns prompt, image, concept, success.

    `prompt` is the sentence or the name of its folder. `image` is the number of the image. `success` is 1 or 0, yes or no,
    the share of several people, or empty (not judged yet). Without a `concept`, a row is about the whole image. An optional
    column `place` distinguishes slots that have the same value. Several rows about the same concept are averaged.
    """

    always_ask = True

    def __init__(self, path: str, **other: Any) -> None:
        self.name = f"file:{Path(path).name}"
        self._labels: dict[tuple[str, int, str, str], list[float]] = {}
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                table = csv.DictReader(file)
                missing = [name for name in COLUMNS if name not in (table.fieldnames or ()) and name != "concept"]
                if missing:
                    raise BadInput(f"{path} has no column {missing[0]!r}.", fix=f"the columns are {', '.join(COLUMNS)}")
                for row in table:
                    self._read(path, table.line_num, row)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BadInput(f"The labels {path} cannot be read: {error}.", fix="give a CSV file") from error
        if not self._labels:
            raise BadInput(f"{path} has no labels.", fix="write 1 or 0 into the column success")

    def _read(self, path: str, line: int, row: dict[str, str | None]) -> None:
        text = (row["success"] or "").strip().lower()
        if not text:
            return
        try:
            value = WORDS[text] if text in WORDS else float(text)
            if not 0 <= value <= 1:
                raise ValueError
            number = int(row["image"] or "")
        except ValueError:
            raise BadInput(
                f"{path}, line {line}: image {row['image']!r}, success {row['success']!r}.",
                fix="image is a number from 0, success is 1 or 0",
            ) from None
        concept, place = ((row.get(name) or "").strip() for name in ("concept", "place"))
        key = ((row["prompt"] or "").strip(), number, concept, place)
        self._labels.setdefault(key, []).append(value)

    def assess(self, image: ImageToJudge) -> Judgement:
        scores = [self._label(image, question.concept, question.place) for question in image.questions]
        if scores and None not in scores:
            return from_scores(scores)
        whole = self._label(image, "")
        if whole is not None:
            return Judgement((), whole >= THRESHOLD)
        if any(score is not None for score in scores):
            return from_scores(scores, "not all concepts are labelled")
        return Judgement(error="not labelled")

    def _label(self, image: ImageToJudge, concept: str, place: str = "") -> float | None:
        names = itertools.product((image.prompt, image.text), (place, ""))
        labels = (self._labels.get((prompt, image.number, concept, slot)) for prompt, slot in names)
        return next((sum(known) / len(known) for known in labels if known), None)
