"""Metrics of families whose answers have several steps: exact match of whole answers, and accuracy of single steps."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from recombine.families.base import Family, TaskScores
from recombine.spaces.base import Space

if TYPE_CHECKING:
    import pandas as pd


class ExactMatchFamily(Family, abc.ABC):
    """Statistics: `right` steps out of `steps`, and `whole` answers (without a wrong step) out of `episodes`."""

    metric: ClassVar[str] = "accuracy"

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return jnp.sum(scores["whole"]) / jnp.sum(scores["episodes"])

    def metric_names(self, space: Space) -> tuple[str, ...]:
        return ("accuracy", "step_accuracy")

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        sums = {name: float(np.sum(np.asarray(values, float))) for name, values in scores.items()}
        return {"accuracy": sums["whole"] / sums["episodes"], "step_accuracy": sums["right"] / sums["steps"]}

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        frame = tasks.groupby(by, sort=False, observed=True)[["right", "steps", "whole", "episodes"]].sum()
        frame["accuracy"] = frame["whole"] / frame["episodes"]
        frame["step_accuracy"] = frame["right"] / frame["steps"]
        return frame.reset_index()
