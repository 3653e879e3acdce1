"""The accuracy of long chains that follows from the error and recovery rates of single steps."""

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
"""The kind of a step: its operation and its number of parents."""


def accuracy_bound(error: float, recovery: float) -> float:
    """Compute c / (c + e), the limit of the accuracy of a long chain of steps.

    Args:
        error: e, the probability (at least) that a step with right parents is wrong.
        recovery: c, the probability (at most) that a step with a wrong parent is right.

    Returns:
        An upper bound of the limit; 1 without errors.
    """
    for name, probability in (("error", error), ("recovery", recovery)):
        if not (0 <= probability <= 1 or math.isnan(probability)):
            raise BadInput(f"The {name} of a step is a probability between 0 and 1, got {probability}.")
    return 1.0 if error == 0 else recovery / (recovery + error)


@dataclass(frozen=True)
class StepRates:
    """Counts of single steps: how often they go wrong, and how often they recover from a wrong parent."""

    sound: int
    """Steps whose parents are all right."""
    slips: int
    """Sound steps whose own value is wrong."""
    unsound: int
    """Steps with a wrong parent."""
    mended: int
    """Unsound steps whose own value is right."""

    @property
    def error(self) -> float:
        """The share of sound steps that are wrong; NaN if there are none."""
        return self.slips / self.sound if self.sound else math.nan

    @property
    def recovery(self) -> float:
        """The share of unsound steps that are right; NaN if there are none."""
        return self.mended / self.unsound if self.unsound else math.nan

    @property
    def bound(self) -> float:
        """The bound on the accuracy of long chains with these rates."""
        return accuracy_bound(self.error, self.recovery)

    def __add__(self, other: StepRates) -> StepRates:
        return StepRates(
            self.sound + other.sound, self.slips + other.slips, self.unsound + other.unsound, self.mended + other.mended
        )


def rates_by_step(graph: Graph, labels: Int[np.ndarray, "*instances node"]) -> dict[int, StepRates]:
    """The counts of each step of the graph over all instances, by its index.

    A value is right if its label is correct or restoration.
    """
    right = (labels == CORRECT) | (labels == RESTORATION)
    rates = {}
    for step in graph.steps:
        sound, own = right[..., list(graph.parents[step])].all(axis=-1), right[..., step]
        counts = sound.sum(), (sound & ~own).sum(), (~sound).sum(), (~sound & own).sum()
        rates[step] = StepRates(*(int(count) for count in counts))
    return rates


def kind_of(graph: Graph, step: int) -> Kind:
    """The kind of a step. Steps with more parents have more chances to go wrong."""
    return graph.nodes[step].operation_name, len(graph.parents[step])


def predicted_accuracy(graph: Graph, rates: Mapping[Kind, StepRates], draws: int = 8192) -> Float[np.ndarray, " node"]:
    """Predict the accuracy of each node from the rates of each kind of step, by simulation with a fixed seed.

    Simulation accounts for parents that go wrong together. In a chain of one kind the accuracy tends to c / (c + e).

    Args:
        graph: The graph.
        rates: The rates of each kind of step. A kind without data takes the rates of all steps.
        draws: The number of simulated answers.

    Returns:
        The share of answers in which each node is right.
    """
    overall = sum(rates.values(), StepRates(0, 0, 0, 0))
    rng = np.random.default_rng(0)
    right = np.ones((len(graph), draws), bool)
    for step in graph.steps:
        own = rates.get(kind_of(graph, step), overall)
        error = own.error if own.sound else overall.error
        recovery = own.recovery if own.unsound else overall.recovery
        # If no parent was ever wrong, the recovery rate is not needed.
        recovery = 0.0 if math.isnan(recovery) else recovery
        sound = right[list(graph.parents[step])].all(axis=0)
        right[step] = rng.random(draws) < np.where(sound, 1 - error, recovery)
    return right.mean(axis=1)
