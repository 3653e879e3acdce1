"""What every task family provides: tasks, batches, scores."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.component import Component
from recombine.families.episode import Episode
from recombine.spaces.base import Space

if TYPE_CHECKING:
    import pandas as pd


class Task(eqx.Module):
    """One task: a combination with the coefficients of its constituents."""

    combination: Int[Array, " slots"]
    coefficients: Float[Array, " slots"]
    """Zero where the row is padded."""
    vector: Float[Array, " width"]
    """z: the coefficients at their constituents. What an encoding tells and a probe reads."""


class Batch(eqx.Module):
    """Examples of one task."""

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, "sample output"]
    mask: Float[Array, " sample"]
    """One where an example counts, zero where it is padding."""
    labels: Int[Array, "sample label"] | None = None
    """What a family scores by, where the targets alone do not tell it: the concepts that an image is to show."""


TargetKind = Literal["numbers", "classes", "images", "tokens"]
"""What targets are. Images: pixels between -1 and 1, of which any that show the labels are right. Tokens: the numbers of
the words of an answer, padded."""


TaskScores = Mapping[str, Float[Array | np.ndarray, "..."]]
"""Additive statistics of tasks: summed over any set of tasks they give that set's metrics."""


class Teacher(eqx.Module):
    """A drawn family. Functions are unbatched; the caller vmaps."""

    @abc.abstractmethod
    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        """A task of this combination (its coefficients are random)."""

    @abc.abstractmethod
    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        """Fresh examples of a task."""

    def episode(self, task: Task, key: Array) -> Episode | None:
        """One example as a picture, for families whose examples can be drawn."""
        return None


class Family(Component, abc.ABC):
    """The configuration of a family. It owns its metrics."""

    metric: ClassVar[str]
    """The name of the headline metric, the first of `metrics`."""
    targets: ClassVar[TargetKind] = "numbers"
    """What the targets are; an objective must be made for them."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """The parts of a run (space, objective, encoding, ...) that go with this family where none are given."""
    validation_samples: ClassVar[int] = 16
    """Examples of each task that are looked at between two chunks of steps."""

    def check(self, space: Space) -> None:
        """Raise BadInput if this family does not exist on a space. Cheap: nothing is drawn."""
        return

    @property
    @abc.abstractmethod
    def input_size(self) -> int:
        """Features of one input."""

    @property
    @abc.abstractmethod
    def output_size(self) -> int:
        """Numbers that the model must give for one input."""

    def prepare(self, space: Space, key: Array) -> None:
        """What `draw` needs of the same key and no program can compute. Found outside of any, so that errors reach the user."""
        return

    @abc.abstractmethod
    def draw(self, space: Space, key: Array) -> Teacher:
        """The family of one replicate."""

    def draw_within(self, space: Space, structure: Any, key: Array) -> Teacher:
        """The family of one replicate whose support brought arrays that its tasks are made by."""
        return self.draw(space, key)

    @abc.abstractmethod
    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        """The additive statistics of one task."""

    @abc.abstractmethod
    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        """The main metric of many tasks (leading axis), pooled."""

    @abc.abstractmethod
    def metrics(self, scores: TaskScores) -> dict[str, float]:
        """All metrics of many tasks (leading axis), by name. The first is the headline."""

    @abc.abstractmethod
    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        """The same metrics by groups of tasks: the sums of each statistic, and the metrics beside them.

        `tasks` has one row a task with its statistics; the answer has one row a group with the columns of `by`.
        """
