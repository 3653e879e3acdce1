"""Scores of families whose targets are actions: accuracy of whole trajectories and of single steps."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from recombine.families.base import Batch, Family, TargetKind, TaskScores

if TYPE_CHECKING:
    import pandas as pd


class ClassificationFamily(Family, abc.ABC):
    """Targets are one-hot. Examples come in episodes: `horizon` consecutive ones, those after the end masked.

    A batch that is no multiple of the horizon ends with the beginning of an episode.
    """

    metric: ClassVar[str] = "accuracy"
    targets: ClassVar[TargetKind] = "classes"
    defaults: ClassVar[Mapping[str, Any]] = {"objective": "classification"}

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """The most steps of an episode."""

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        right = jnp.argmax(predictions, axis=-1) == jnp.argmax(batch.targets, axis=-1)
        extra = -len(right) % self.horizon
        # What is padded or masked cannot be wrong.
        fine = jnp.pad(right | (batch.mask == 0), (0, extra), constant_values=True)
        whole = fine.reshape(-1, self.horizon).all(axis=1)
        return {
            "right": jnp.sum(batch.mask * right),
            "steps": jnp.sum(batch.mask),
            "whole": jnp.sum(whole).astype(jnp.float32),
            "episodes": jnp.asarray(len(whole), jnp.float32),
        }

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
