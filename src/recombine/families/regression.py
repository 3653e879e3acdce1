"""Scores of families whose targets are real numbers: R2 in its three forms."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from recombine.families.base import Batch, Family, TaskScores
from recombine.spaces.base import Space

if TYPE_CHECKING:
    import pandas as pd


class RegressionFamily(Family, abc.ABC):
    """Metrics: R2 pooled over tasks (headline), as the mean of ratios in the literature, as the median over tasks; and a
    correlation.

    R2 falls far below zero where a network guesses with confidence. The pooled correlation within tasks is zero on average
    where nothing is known, so it can show that a control *stays* at zero.
    """

    metric: ClassVar[str] = "r2"

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        weight = batch.mask[:, None]
        count = weight.sum()
        mean = (weight * batch.targets).sum(0) / count
        error = weight * (batch.targets - predictions) ** 2
        spread = weight * (batch.targets - mean) ** 2
        variance = spread.sum(0) / count
        centred = predictions - (weight * predictions).sum(0) / count
        return {
            "error": error.sum(),
            "spread": spread.sum(),
            # Around the means of the task: zero on average for a network that knows nothing about the task.
            "agreement": (weight * (batch.targets - mean) * centred).sum(),
            "power": (weight * centred**2).sum(),
            # The mean over samples and units of error / variance of the unit: heavy-tailed where a unit hardly varies.
            "ratio": (error / variance).sum() / (count * error.shape[1]),
        }

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return 1 - jnp.sum(scores["error"]) / jnp.sum(scores["spread"])

    def metric_names(self, space: Space) -> tuple[str, ...]:
        return ("r2", "r2_ratio", "r2_median", "correlation")

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        error, spread = np.asarray(scores["error"], float), np.asarray(scores["spread"], float)
        agreement, power = np.asarray(scores["agreement"], float), np.asarray(scores["power"], float)
        return {
            "r2": float(1 - error.sum() / spread.sum()),
            "r2_ratio": float(1 - np.mean(np.asarray(scores["ratio"], float))),
            "r2_median": float(np.median(1 - error / spread)),
            "correlation": float(np.sum(agreement) / np.sqrt(spread.sum() * max(power.sum(), 1e-30))),
        }

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        statistics = [name for name in ("error", "spread", "agreement", "power") if name in tasks.columns]
        grouped = tasks.assign(single=1 - tasks["error"] / tasks["spread"]).groupby(by, sort=False, observed=True)
        frame = grouped[statistics].sum()
        frame["r2"] = 1 - frame["error"] / frame["spread"]
        if "ratio" in tasks.columns:
            frame["r2_ratio"] = 1 - grouped["ratio"].mean()
        frame["r2_median"] = grouped["single"].median()
        if "power" in statistics:
            scale = frame["spread"] * frame["power"].clip(lower=1e-30)
            frame["correlation"] = frame["agreement"] / scale**0.5
        return frame.reset_index()
