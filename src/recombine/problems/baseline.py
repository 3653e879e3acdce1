"""Answers without a model: what a trained one has to beat before its rates mean anything."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.problems.instances import Instances

Baseline = Literal["mean", "nearest"]

AT_ONCE = 256
"""Questions that are compared with all training questions together."""


def mean(training: Instances, questions: Float[np.ndarray, "n question"]) -> Float[np.ndarray, "n answer"]:
    """The mean of the training answers, whatever is asked."""
    _require(training)
    return np.tile(training.answers.mean(axis=0), (len(questions), 1))


def nearest(training: Instances, questions: Float[np.ndarray, "n question"]) -> Float[np.ndarray, "n answer"]:
    """The answer to the training question nearest to what is asked, each number of it scaled by its spread."""
    _require(training)
    spread = training.questions.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    known, asked = training.questions / scale, questions / scale
    rows = range(0, len(asked), AT_ONCE)
    away = (((asked[row : row + AT_ONCE, None] - known) ** 2).sum(axis=2) for row in rows)
    return training.answers[[best for part in away for best in part.argmin(axis=1)]]


def _require(training: Instances) -> None:
    if not len(training):
        raise BadInput("A baseline needs training instances, got none.")
