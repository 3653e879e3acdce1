"""Base classes of task families: the configuration, which owns the metrics, and the drawn teacher."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.component import Component
from recombine.spaces.base import Space

if TYPE_CHECKING:
    import pandas as pd


class Task(eqx.Module):
    """One task: a combination with the coefficients of its constituents."""

    combination: Int[Array, " slots"]
    coefficients: Float[Array, " slots"]
    """Zero where the row is padded."""
    vector: Float[Array, " width"]
    """The task vector z: the coefficients at the places of their constituents. Encodings show it, probes decode it."""

    @staticmethod
    def unweighted(row: Int[Array, " slots"], width: int) -> Task:
        """The task of a combination, padded with `width`, whose constituents all have coefficient one."""
        active = (row < width).astype(jnp.float32)
        return Task(row, active, jnp.zeros(width).at[row].add(active, mode="drop"))


class Batch(eqx.Module):
    """Examples of one task."""

    inputs: Float[Array, "sample feature"]
    targets: Float[Array, "sample output"]
    mask: Float[Array, " sample"]
    """One for an example, zero for padding."""
    labels: Int[Array, "sample label"] | None = None
    """What a family scores by where the targets are not enough, such as the concepts that an image must show."""


TargetKind = Literal["numbers", "classes", "images", "tokens", "text"]
"""The kind of targets. Images: pixels between -1 and 1; every image that shows the labels is right. Tokens: the numbers
of an answer's words, padded. Text: the tokens of a whole text, which are predicted and not generated."""


TaskScores = Mapping[str, Float[Array | np.ndarray, "..."]]
"""Additive statistics of tasks. The metrics of a set of tasks follow from their sums."""


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object on the grid."""

    row: int
    column: int
    name: str
    value: float | None = None
    """Its reward; None where objects have no value."""
    wanted: bool = False
    """Whether the task asks for this one."""


@dataclasses.dataclass(frozen=True)
class Episode:
    """A grid, the objects on it, and the path of the teacher."""

    walls: tuple[tuple[bool, ...], ...]
    things: tuple[Thing, ...]
    path: tuple[tuple[int, int], ...]
    """The cells (row, column) that the agent visits, with the first."""
    actions: tuple[str, ...]
    """The teacher's actions, in words."""
    title: str
    """The task in words."""


class Teacher(eqx.Module):
    """A drawn family: it makes tasks and examples. Functions are unbatched; the caller vmaps."""

    @abc.abstractmethod
    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        """A task of a combination.

        Args:
            row: The combination.
            key: Draws the coefficients, in families that have any.
        """

    @abc.abstractmethod
    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        """Fresh examples of a task.

        Args:
            task: The task.
            key: Draws the examples.
            samples: Number of examples.
        """

    def episode(self, task: Task, key: Array) -> Episode | None:
        """One example as a picture; None in families whose examples cannot be drawn."""
        return None

    def __repr__(self) -> str:
        return describe(self)


def describe(drawn: eqx.Module) -> str:
    """A drawn part in one line: its class, and the number and total size of its arrays."""
    arrays = [leaf for leaf in jax.tree.leaves(drawn) if hasattr(leaf, "shape")]
    numbers = sum(math.prod(leaf.shape) for leaf in arrays)
    return f"{type(drawn).__name__}({len(arrays)} arrays, {numbers:,} numbers)"


def combination_key(key: Array, row: Int[Array, " slots"]) -> Array:
    """A key for each combination, for controls that draw something for each one: nothing is ever listed."""
    for slot in range(len(row)):
        key = jax.random.fold_in(key, row[slot])
    return key


class Family(Component, abc.ABC):
    """The configuration of a family. It owns its metrics."""

    metric: ClassVar[str]
    """The name of the headline metric, the first of `metrics`."""
    targets: ClassVar[TargetKind] = "numbers"
    """The kind of targets; the objective must serve it."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """The parts of a run (space, objective, encoding, ...) that are used with this family unless others are given."""
    validation_samples: ClassVar[int] = 16
    """Examples of each task in the validation streams."""

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parts of a run with those that this family determines, where its settings do and `defaults` cannot.

        Args:
            given: The parts that were given, and defaults.
        """
        return given

    def check(self, space: Space) -> None:
        """Raise BadInput if this family does not fit a space. Cheap: nothing is drawn."""
        return

    @property
    @abc.abstractmethod
    def input_size(self) -> int:
        """Features of one input."""

    @property
    @abc.abstractmethod
    def output_size(self) -> int:
        """Numbers in one output."""

    def prepare(self, space: Space, key: Array) -> None:
        """Host-side preparation for `draw` that cannot be traced. Called first with the same key, so that errors reach the user."""
        return

    @abc.abstractmethod
    def draw(self, space: Space, key: Array) -> Teacher:
        """The teacher of one replicate.

        Args:
            space: The combinations.
            key: Of the random numbers.
        """

    def draw_within(self, space: Space, structure: Any, key: Array) -> Teacher:
        """The teacher of one replicate whose support brings a structure: arrays by which the tasks are made."""
        return self.draw(space, key)

    @abc.abstractmethod
    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        """The additive statistics of one task.

        Args:
            batch: The examples of the task.
            predictions: The network's outputs for them.
        """

    @abc.abstractmethod
    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        """The headline metric of many tasks (leading axis), pooled."""

    def metric_names(self, space: Space) -> tuple[str, ...] | None:
        """The names of the metrics in a space, headline first; None where they are not known before training."""
        return None

    @abc.abstractmethod
    def metrics(self, scores: TaskScores) -> dict[str, float]:
        """All metrics of many tasks (leading axis), by name. The first is the headline."""

    @abc.abstractmethod
    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        """The metrics of groups of tasks.

        Args:
            tasks: One row per task, with its statistics.
            by: The columns that name a group.

        Returns:
            One row per group: the columns of `by`, the sum of each statistic, and the metrics.
        """


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
