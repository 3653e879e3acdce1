"""What the error and the recovery of single steps allow in the long run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph
from recombine.graphs.labels import CORRECT, RESTORATION


def accuracy_bound(error: float, recovery: float) -> float:
    """c / (c + e): what the accuracy of a long chain tends to at most.

    A step whose parents are right is wrong with a chance of at least `error`; one with a wrong parent is right with a
    chance of at most `recovery`. Without errors a chain stays right.
    """
    for name, chance in (("error", error), ("recovery", recovery)):
        if not (0 <= chance <= 1 or math.isnan(chance)):
            raise BadInput(f"The {name} of a step is a chance between 0 and 1, got {chance}.")
    return 1.0 if error == 0 else recovery / (recovery + error)


@dataclass(frozen=True)
class StepRates:
    """How often single steps go wrong, and how often they mend what went wrong before."""

    sound: int
    """Steps all of whose parents have the right value."""
    slips: int
    """Those of them whose own value is wrong."""
    unsound: int
    """Steps with a parent whose value is wrong."""
    mended: int
    """Those of them whose own value is right."""

    @property
    def error(self) -> float:
        """The chance of a wrong value after right ones; NaN where there were none."""
        return self.slips / self.sound if self.sound else math.nan

    @property
    def recovery(self) -> float:
        """The chance of a right value after a wrong one; NaN where there was none."""
        return self.mended / self.unsound if self.unsound else math.nan

    @property
    def bound(self) -> float:
        """What accuracy tends to at most if these rates hold for longer chains."""
        return accuracy_bound(self.error, self.recovery)

    def __add__(self, other: StepRates) -> StepRates:
        return StepRates(
            self.sound + other.sound,
            self.slips + other.slips,
            self.unsound + other.unsound,
            self.mended + other.mended,
        )


def step_rates(graph: Graph, labels: Int[np.ndarray, "*instances node"]) -> StepRates:
    """Count over all steps of all instances. A value is right where its label is correct or restoration."""
    right = (labels == CORRECT) | (labels == RESTORATION)
    sound = np.stack([right[..., list(graph.parents[step])].all(axis=-1) for step in graph.steps], axis=-1)
    own = right[..., list(graph.steps)]
    return StepRates(
        int(sound.sum()), int((sound & ~own).sum()), int((~sound).sum()), int((~sound & own).sum())
    )
