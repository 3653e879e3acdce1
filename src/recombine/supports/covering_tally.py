"""How often each interaction was met, and what meeting it is worth."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32

from recombine.errors import BadInput
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace

DENSE = 2**26
"""The most numbers that a table of all interactions may have."""

BLOCK = 2**20
"""So many interactions are counted together."""


@functools.cache
def choices(slots: int, strength: int) -> Int[np.ndarray, "n strength"]:
    """All sets of `strength` places of a row."""
    flat = itertools.chain.from_iterable(itertools.combinations(range(slots), strength))
    return np.fromiter(flat, np.int64).reshape(math.comb(slots, strength), strength)


def possible(space: Space, strength: int) -> Bool[np.ndarray, "*table"]:
    """Which tuples of `strength` numbers (in any order, the pad among them) are interactions of the space."""
    width = space.width + 1
    if width**strength > DENSE:
        raise BadInput(
            f"A table of all sets of {strength} of {space.width} constituents would have {in_words(width**strength)} "
            f"entries, more than the {in_words(DENSE)} that are kept.",
            fix="lower the strength, or plan for fewer factors or values at a time",
        )
    group = np.arange(width)
    if isinstance(space, ProductSpace):
        group = np.append(np.repeat(np.arange(space.slots), space.levels), space.slots)
    shape = (width,) * strength
    found = np.ones(shape, bool)
    for one, other in itertools.combinations(range(strength), 2):
        axes = [np.newaxis] * strength
        first, second = list(axes), list(axes)
        first[one] = second[other] = slice(None)  # type: ignore[call-overload]
        found &= group[tuple(first)] != group[tuple(second)]
    for axis in range(strength):
        found[(slice(None),) * axis + (space.width,)] = False
    return found


class Tally:
    """The counts of all interactions, as a symmetric table over the numbers of their constituents.

    An interaction that was never met is worth a little more than 1, others `small / (1 + count)^2`: a row is worth as
    much as it meets anew, and among equals the one that meets what was met least.
    """

    def __init__(self, space: Space, strength: int, coverable: Bool[np.ndarray, "*table"]) -> None:
        self.space, self.strength = space, strength
        self.places = choices(space.slots, strength)
        self.small = 0.5 / len(self.places)
        self.count: Int32[np.ndarray, "*table"] = np.where(coverable, 0, -1).astype(np.int32)
        """Times that an interaction was met; -1 where there is none that can be."""
        self.weight: Float32[np.ndarray, "*table"] = (coverable * (1 + self.small)).astype(np.float32)
        self.coverable = int(coverable.sum()) // math.factorial(strength)
        self.covered = 0
        self.met = 0
        """Meetings in all, repeats included."""
        self.open = coverable.sum(axis=tuple(range(1, strength))) // math.factorial(strength - 1)
        """How many interactions of each constituent were never met."""

    @property
    def left(self) -> int:
        """How many interactions that can be met were not."""
        return self.coverable - self.covered

    def interactions(self, rows: Int[np.ndarray, "n slots"]) -> Int[np.ndarray, "m strength"]:
        """The interactions of sorted rows, as often as they come."""
        return rows[:, self.places].reshape(-1, self.strength)

    def worth(self, rows: Int[np.ndarray, "n slots"]) -> Float[np.ndarray, " n"]:
        """What each of these rows would be worth now."""
        parts = np.moveaxis(rows[:, self.places], -1, 0)
        return self.weight[tuple(parts)].sum(axis=1, dtype=np.float64)

    def add(self, rows: Int[np.ndarray, "n slots"]) -> int:
        """Count the interactions of sorted rows; how many of them are new."""
        before, step = self.covered, max(1, BLOCK // len(self.places))
        for begin in range(0, len(rows), step):
            parts = self.interactions(rows[begin : begin + step]).T
            flat, times = np.unique(np.ravel_multi_index(tuple(parts), self.count.shape), return_counts=True)
            old = self.count.ravel()[flat]
            flat, times, old = flat[old >= 0], times[old >= 0], old[old >= 0]
            where = np.unravel_index(flat, self.count.shape)
            now = old + times
            worth = self.small / (1.0 + now) ** 2
            for order in itertools.permutations(range(self.strength)):
                place = tuple(where[axis] for axis in order)
                self.count[place], self.weight[place] = now, worth
            self.covered += int((old == 0).sum())
            self.met += int(times.sum())
            for axis in where:
                self.open -= np.bincount(axis[old == 0], minlength=len(self.open))
        return self.covered - before
