"""What the error and the recovery of single steps allow in the long run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph
from recombine.graphs.labels import CORRECT, RESTORATION

Kind = tuple[str, int]
"""Of a step: its operation, and how many parents it has."""


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
    return sum(rates_by_step(graph, labels).values(), StepRates(0, 0, 0, 0))


def rates_by_step(graph: Graph, labels: Int[np.ndarray, "*instances node"]) -> dict[int, StepRates]:
    """The same for each step of the graph, by its place."""
    right = (labels == CORRECT) | (labels == RESTORATION)
    found = {}
    for step in graph.steps:
        sound, own = right[..., list(graph.parents[step])].all(axis=-1), right[..., step]
        counts = sound.sum(), (sound & ~own).sum(), (~sound).sum(), (~sound & own).sum()
        found[step] = StepRates(*(int(count) for count in counts))
    return found


def kind_of(graph: Graph, step: int) -> Kind:
    """A step's operation and how many parents it has: one with more of them has more to get wrong."""
    return graph.nodes[step].word, len(graph.parents[step])


def predicted_accuracy(
    graph: Graph, rates: Mapping[Kind, StepRates], draws: int = 8192
) -> Float[np.ndarray, " node"]:
    """How often each node is right if steps of each kind go wrong and mend as these do, whatever else they are.

    Answers are drawn (always the same ones), as the parents of a step go wrong together. In a chain of one kind this tends to
    c / (c + e). A kind of which nothing is known has the rates of all together.
    """
    overall = sum(rates.values(), StepRates(0, 0, 0, 0))
    rng = np.random.default_rng(0)
    right = np.ones((len(graph), draws), bool)
    for step in graph.steps:
        own = rates.get(kind_of(graph, step), overall)
        error = own.error if own.sound else overall.error
        recovery = own.recovery if own.unsound else overall.recovery
        # Where no parent was ever wrong, there is nothing to mend.
        recovery = 0.0 if math.isnan(recovery) else recovery
        sound = right[list(graph.parents[step])].all(axis=0)
        right[step] = rng.random(draws) < np.where(sound, 1 - error, recovery)
    return right.mean(axis=1)
