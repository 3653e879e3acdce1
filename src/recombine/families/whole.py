"""Metrics of families whose answers have several steps: accuracy of whole answers and of single steps."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from recombine.families.base import Family, TaskScores

if TYPE_CHECKING:
    import pandas as pd


class WholeFamily(Family, abc.ABC):
    """Scores count `right` of `steps`, and `whole` of `episodes`: those in which no step is wrong."""

    metric: ClassVar[str] = "accuracy"

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return jnp.sum(scores["whole"]) / jnp.sum(scores["episodes"])

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        sums = {name: float(np.sum(np.asarray(values, float))) for name, values in scores.items()}
        return {
            "accuracy": sums["whole"] / sums["episodes"],
            "step_accuracy": sums["right"] / sums["steps"],
        }

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        frame = tasks.groupby(by, sort=False, observed=True)[["right", "steps", "whole", "episodes"]].sum()
        frame["accuracy"] = frame["whole"] / frame["episodes"]
        frame["step_accuracy"] = frame["right"] / frame["steps"]
        return frame.reset_index()
