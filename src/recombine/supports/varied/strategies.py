"""Published strategies to vary a scene where every change of a factor costs (Gao et al., 2024), by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces.product import ProductSpace
from recombine.supports.covering import COVERING

Row = Int[np.ndarray, " slots"]
Orders = Sequence[Int[np.ndarray, " _"]]
"""For each factor its levels in the order of visits, the base's level first."""


def no_variation(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """Only the base."""
    yield [int(order[0]) for order in orders]


def single_factor(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """All levels of the factor with most levels; the other factors stay as in the base."""
    row = next(no_variation(orders, rng))
    widest = max(range(len(orders)), key=lambda factor: len(orders[factor]))
    for level in orders[widest]:
        yield [*row[:widest], int(level), *row[widest + 1 :]]


def diagonal(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """A new level in every factor at once. A factor without new levels stays at its last."""
    for step in range(max(len(order) for order in orders)):
        yield [int(order[min(step, len(order) - 1)]) for order in orders]


def one_at_a_time(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """From the base, one factor at a time: the arms of an L."""
    row = next(no_variation(orders, rng))
    yield row
    for factor, order in enumerate(orders):
        for level in order[1:]:
            yield [*row[:factor], int(level), *row[factor + 1 :]]


def stair(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """One factor after the other, in turn, moves to its next level; the others keep their current level."""
    row = next(no_variation(orders, rng))
    yield list(row)
    for step in range(1, max(len(order) for order in orders)):
        for factor, order in enumerate(orders):
            if step < len(order):
                row[factor] = int(order[step])
                yield list(row)


def random(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """All factors drawn anew each time, without end."""
    yield next(no_variation(orders, rng))
    while True:
        yield [int(rng.choice(order)) for order in orders]


def complete(orders: Orders, rng: np.random.Generator) -> Iterator[list[int]]:
    """Every combination, in an order in which one factor changes at a time (a reflected Gray code)."""
    positions, steps = [0] * len(orders), [1] * len(orders)
    while True:
        yield [int(order[position]) for order, position in zip(orders, positions, strict=True)]
        for factor in range(len(orders) - 1, -1, -1):
            if 0 <= positions[factor] + steps[factor] < len(orders[factor]):
                positions[factor] += steps[factor]
                break
            steps[factor] = -steps[factor]
        else:
            return


STRATEGIES: dict[str, Callable[[Orders, np.random.Generator], Iterator[list[int]]]] = {
    "no-variation": no_variation,
    "single-factor": single_factor,
    "diagonal": diagonal,
    "L": one_at_a_time,
    "stair": stair,
    "random": random,
    "complete": complete,
}


def combinations(name: str, space: ProductSpace, *, base: Row | None = None, seed: int | None = None) -> Iterator[Row]:
    """The combinations of a strategy as rows, in order, starting from a base (by default the first level of each factor).

    With a seed, the order of factors and levels is random, and so is the base where none is given. Without one, the
    order is that of the space.
    """
    if name not in STRATEGIES:
        raise BadInput(f"There is no strategy called {name!r}.", fix=did_you_mean(name, (COVERING, *STRATEGIES)))
    rng = np.random.default_rng(0 if seed is None else seed)
    orders = [np.arange(count) for count in space.levels]
    if seed is not None:
        orders = [rng.permutation(order) for order in orders]
    if base is not None:
        first = np.asarray(base) - np.array(space.offsets)
        orders = [np.concatenate([[level], order[order != level]]) for level, order in zip(first, orders, strict=True)]
    turn = np.arange(space.slots) if seed is None else rng.permutation(space.slots)
    offsets = np.array(space.offsets)
    for levels in STRATEGIES[name]([orders[factor] for factor in turn], rng):
        row = np.empty(space.slots, np.int64)
        row[turn] = levels
        yield (row + offsets).astype(np.int32)


def length(name: str, space: ProductSpace) -> int | None:
    """The number of combinations of a strategy; None where it has no end."""
    levels = space.levels
    arms = 1 + sum(count - 1 for count in levels)
    known = {"no-variation": 1, "single-factor": max(levels), "diagonal": max(levels), "L": arms, "stair": arms}
    return known.get(name, space.size if name == "complete" else None)
