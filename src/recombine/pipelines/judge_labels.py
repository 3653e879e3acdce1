"""A judge that reads what people said, from a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.judge import RIGHT, Answer, Judge, Shown, from_scores

COLUMNS = ("prompt", "image", "concept", "success")
WORDS = {"1": 1.0, "yes": 1.0, "true": 1.0, "0": 0.0, "no": 0.0, "false": 0.0}


class LabelJudge(Judge):
    """A row an image and concept, or a row an image: prompt, image, concept, success. Empty ones are not judged yet.

    `prompt` is the sentence or the name of its folder, `image` the number of the image, `success` 1 or 0 (or yes, no, or a
    share of several people). Without a `concept` a row is about the image as a whole. A column `place` tells slots apart that
    have the same value. Several rows about the same count with their mean.
    """

    fresh = True

    def __init__(self, path: str, **other: Any) -> None:
        self.name = f"file:{Path(path).name}"
        self._labels: dict[tuple[str, int, str, str], list[float]] = {}
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                table = csv.DictReader(file)
                missing = [one for one in COLUMNS if one not in (table.fieldnames or ()) and one != "concept"]
                if missing:
                    raise BadInput(
                        f"{path} has no column {missing[0]!r}.", fix=f"columns: {', '.join(COLUMNS)}"
                    )
                for row in table:
                    self._read(path, table.line_num, row)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BadInput(f"The labels {path} cannot be read: {error}.", fix="give a CSV file") from error
        if not self._labels:
            raise BadInput(f"{path} has no labels.", fix="write 1 or 0 into its column success")

    def _read(self, path: str, line: int, row: dict[str, str | None]) -> None:
        told = (row["success"] or "").strip().lower()
        if not told:
            return
        try:
            value = WORDS[told] if told in WORDS else float(told)
            if not 0 <= value <= 1:
                raise ValueError
            number = int(row["image"] or "")
        except ValueError:
            raise BadInput(
                f"{path}, line {line}: image {row['image']!r}, success {row['success']!r}.",
                fix="image is a number from 0 on, success 1 or 0",
            ) from None
        concept, place = ((row.get(name) or "").strip() for name in ("concept", "place"))
        key = ((row["prompt"] or "").strip(), number, concept, place)
        self._labels.setdefault(key, []).append(value)

    def look(self, shown: Shown) -> Answer:
        scores = [self._said(shown, question.concept, question.place) for question in shown.questions]
        if scores and None not in scores:
            return from_scores(scores)
        whole = self._said(shown, "")
        if whole is not None:
            return Answer((), whole >= RIGHT)
        if any(one is not None for one in scores):
            return from_scores(scores, "not all concepts are labelled")
        return Answer(error="not labelled")

    def _said(self, shown: Shown, concept: str, place: str = "") -> float | None:
        for prompt in (shown.prompt, shown.text):
            for where in (place, ""):
                found = self._labels.get((prompt, shown.number, concept, where))
                if found is not None:
                    return sum(found) / len(found)
        return None
