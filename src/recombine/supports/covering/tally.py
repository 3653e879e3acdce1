"""Counts how often each interaction is covered, and the worth of covering it again."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import Rows

DENSE = 2**26
"""The most entries of a table of all interactions."""

BLOCK = 2**20
"""The number of interactions counted at a time."""


@functools.cache
def choices(slots: int, strength: int) -> Int[np.ndarray, "n strength"]:
    """All sets of `strength` slots of a row."""
    flat = itertools.chain.from_iterable(itertools.combinations(range(slots), strength))
    return np.fromiter(flat, np.int64).reshape(math.comb(slots, strength), strength)


def possible(space: Space, strength: int) -> Bool[np.ndarray, "*table"]:
    """Which tuples of `strength` constituents, in any order, are interactions of the space. Tuples with the pad are not."""
    width = space.width + 1
    if width**strength > DENSE:
        raise BadInput(
            f"A table of all sets of {strength} of {space.width} constituents would have {in_words(width**strength)} "
            f"entries, more than the limit of {in_words(DENSE)}.",
            fix="lower the strength, or plan for fewer factors or values at a time",
        )
    group = np.arange(width)
    if isinstance(space, ProductSpace):
        group = np.append(np.repeat(np.arange(space.slots), space.levels), space.slots)
    table = of_different_groups(group, strength)
    for axis in range(strength):
        table[(slice(None),) * axis + (space.width,)] = False
    return table


def of_different_groups(group: Int[np.ndarray, " width"], strength: int) -> Bool[np.ndarray, "*table"]:
    """Which tuples of `strength` constituents, in any order, have no two constituents of one group."""
    table = np.ones((len(group),) * strength, bool)
    apart = group[:, None] != group[None, :]
    for axis, other in itertools.combinations(range(strength), 2):
        shape = [1] * strength
        shape[axis] = shape[other] = len(group)
        table &= apart.reshape(shape)
    return table


class Tally:
    """The counts of all interactions, as a symmetric table over the numbers of their constituents.

    An uncovered interaction is worth a little more than 1, others `small / (1 + count)^2`. So a row is worth the number
    of interactions that it newly covers; among equals the row with the least covered interactions wins.
    """

    def __init__(self, space: Space, strength: int, coverable: Bool[np.ndarray, "*table"]) -> None:
        self.space, self.strength = space, strength
        self.slots = choices(space.slots, strength)
        self.small = 0.5 / len(self.slots)
        self.count: Int32[np.ndarray, "*table"] = np.where(coverable, 0, -1).astype(np.int32)
        """How often each interaction is covered; -1 where it is not possible."""
        self.weight: Float32[np.ndarray, "*table"] = (coverable * (1 + self.small)).astype(np.float32)
        self.coverable = int(coverable.sum()) // math.factorial(strength)
        self.covered = 0
        self.met = 0
        """The number of covered interactions, repeats included."""
        self.open = coverable.sum(axis=tuple(range(1, strength))) // math.factorial(strength - 1)
        """The number of uncovered interactions of each constituent."""

    @property
    def left(self) -> int:
        """The number of interactions that are possible and not covered."""
        return self.coverable - self.covered

    def interactions(self, rows: Rows) -> Int[np.ndarray, "m strength"]:
        """The interactions of sorted rows, repeats included."""
        return rows[:, self.slots].reshape(-1, self.strength)

    def worth(self, rows: Rows) -> Float[np.ndarray, " n"]:
        """The worth of each of these rows now."""
        parts = np.moveaxis(rows[:, self.slots], -1, 0)
        return self.weight[tuple(parts)].sum(axis=1, dtype=np.float64)

    def add(self, rows: Rows) -> int:
        """Count the interactions of sorted rows. Returns the number of new ones."""
        before, step = self.covered, max(1, BLOCK // len(self.slots))
        for begin in range(0, len(rows), step):
            parts = self.interactions(rows[begin : begin + step]).T
            flat, times = np.unique(np.ravel_multi_index(tuple(parts), self.count.shape), return_counts=True)
            old = self.count.ravel()[flat]
            flat, times, old = flat[old >= 0], times[old >= 0], old[old >= 0]
            where = np.unravel_index(flat, self.count.shape)
            now = old + times
            worth = self.small / (1.0 + now) ** 2
            for order in itertools.permutations(range(self.strength)):
                index = tuple(where[axis] for axis in order)
                self.count[index], self.weight[index] = now, worth
            self.covered += int((old == 0).sum())
            self.met += int(times.sum())
            for axis in where:
                self.open -= np.bincount(axis[old == 0], minlength=len(self.open))
        return self.covered - before
