"""The cost of collecting: one per combination, a cost per level, or one per changed factor. The order that costs least."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows

CostKind = Literal["one", "levels", "changes"]
KINDS: tuple[CostKind, ...] = get_args(CostKind)

MOST = 20_000_000
"""The most interactions, summed over combinations, that are compared with costs."""

UNNAMED = 1.0
"""The cost of a level for which no cost is given."""


@dataclasses.dataclass(frozen=True, eq=False)
class Costs:
    """The cost of a combination that follows another. `make_costs` makes it."""

    kind: CostKind
    width: int
    levels: Float[np.ndarray, " width"]
    """The cost of each constituent, used by the kind `levels`."""

    @property
    def unit(self) -> str:
        """The unit of a cost, in the plural."""
        return {"one": "combinations", "levels": "units of cost", "changes": "factor changes"}[self.kind]

    def following(self, rows: Rows, last: Int[np.ndarray, " slots"] | None) -> Float[np.ndarray, " n"]:
        """The cost of each of these combinations if it follows `last`, or comes first where that is None."""
        if self.kind == "one":
            return np.ones(len(rows))
        if self.kind == "levels":
            return np.append(self.levels, 0.0)[rows].sum(axis=1)
        # For sets: the larger of the numbers of added and of removed modules, so a replacement costs one.
        before = np.zeros(self.width + 1, bool)
        before[last if last is not None else []] = True
        before[self.width] = False
        sizes = np.maximum((rows < self.width).sum(axis=1), before.sum())
        return (sizes - before[rows].sum(axis=1)).astype(float)

    def in_order(self, rows: Rows, last: Int[np.ndarray, " slots"] | None) -> Float[np.ndarray, " n"]:
        """The cost of each of these combinations when they are collected in this order, after `last`."""
        if self.kind != "changes":
            return self.following(rows, last)
        previous = [last, *rows[:-1]]
        return np.array([self.following(row[None], old)[0] for row, old in zip(rows, previous, strict=False)])


def make_costs(space: Space, kind: str | None = None, given: Mapping[str, Any] | None = None) -> Costs:
    """Make the costs of a plan.

    Args:
        space: The space of all combinations.
        kind: "one", "levels" or "changes". Without a kind it is "levels" where costs are given, and "one" otherwise.
        given: The cost of levels: a number for each factor, or for each level of a factor. For subsets: a number for
            each module.

    Returns:
        The costs. `BadInput` for unknown names and for costs that are negative or no numbers.
    """
    kind = kind or ("levels" if given else "one")
    if kind not in KINDS:
        raise BadInput(f"There is no cost called {kind!r}.", fix=did_you_mean(kind, KINDS))
    if given and kind != "levels":
        raise BadInput(
            f"Costs of levels were given, but the cost is {kind!r}.", fix="remove costs, or write cost: levels"
        )
    if kind == "levels" and not given:
        raise BadInput(
            "The cost is 'levels', but no level has a cost.",
            fix="write costs into the file: costs: {object: {dog: 5, cat: 1}}",
        )
    levels = np.full(space.width, UNNAMED)
    for name, value in (given or {}).items():
        if isinstance(space, ProductSpace):
            _of_factor(levels, space, str(name), value)
        elif str(name).isdecimal() and int(name) < space.width:
            levels[int(name)] = _amount(value, f"module {name}")
        else:
            raise BadInput(
                f"A cost is given for module {name!r}, which does not exist.",
                fix=f"modules are numbered 0 to {space.width - 1}",
            )
    return Costs(kind, space.width, levels)


def _of_factor(levels: Float[np.ndarray, " width"], space: ProductSpace, factor: str, value: Any) -> None:
    factors = dict(space.factors)
    if factor not in factors:
        raise BadInput(
            f"A cost is given for the factor {factor!r}, which does not exist.", fix=did_you_mean(factor, factors)
        )
    start = space.offsets[list(factors).index(factor)]
    names = factors[factor]
    if not isinstance(value, Mapping):
        levels[start : start + len(names)] = _amount(value, f"factor {factor!r}")
        return
    for level, cost in value.items():
        if str(level) not in names:
            raise BadInput(
                f"A cost is given for the level {str(level)!r} of {factor!r}, which does not exist.",
                fix=did_you_mean(str(level), names),
            )
        levels[start + names.index(str(level))] = _amount(cost, f"{factor}={level}")


def _amount(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0) or isinstance(value, bool):
        raise BadInput(f"The cost of {what} must be a number of at least 0, got {value!r}.")
    return number


def interactions_in(space: Space, rows: Rows, strength: int) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """All interactions of the rows: the index of the row and a code of the interaction, for each."""
    blocks = list(_blocks(space, rows, strength))
    return np.concatenate([owner for owner, _ in blocks]), np.concatenate([code for _, code in blocks])


def _blocks(space: Space, rows: Rows, strength: int) -> Iterator[tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]]:
    """The same, separately for each choice of slots."""
    for slots in itertools.combinations(range(space.slots), strength):
        held = np.nonzero(rows[:, slots[-1]] < space.width)[0]
        code = np.zeros(len(held), np.int64)
        for slot in slots:
            code = code * space.width + rows[held, slot]
        yield held, code


def weighable(space: Space, number: int, strength: int) -> bool:
    """Whether the interactions of `number` rows can be listed."""
    fits = space.width**strength < 2**62
    return fits and number * math.comb(space.slots, strength) <= MOST


def covered_by(space: Space, rows: Rows, strength: int) -> int:
    """The number of different interactions in these rows."""
    if isinstance(space, ProductSpace):
        # Here a slot is a factor: interactions of different slots differ, so each choice of slots is counted alone.
        return sum(len(np.unique(code)) for _, code in _blocks(space, rows, strength))
    return len(np.unique(interactions_in(space, rows, strength)[1]))


def ordered(
    space: Space,
    rows: Rows,
    costs: Costs,
    *,
    strength: int,
    already: Int[np.ndarray, "m slots"],
    budget: float = math.inf,
) -> Int[np.ndarray, " k"]:
    """The rows to take, in order. Each is the one that covers the most new interactions per cost.

    Rows that cover nothing new, and rows that no longer fit the budget, are left out.
    """
    last = already[-1] if len(already) else None
    left = np.ones(len(rows), bool)
    gain = _Gain(space, rows, strength, already)
    taken: list[int] = []
    while left.any():
        price = costs.following(rows, last)
        open_to = np.nonzero(left & (gain.of > 0) & (price <= budget + 1e-9))[0]
        if not len(open_to):
            break
        with np.errstate(divide="ignore"):
            worth = gain.of[open_to] / price[open_to]
        best = open_to[worth == worth.max()]
        chosen = int(best[np.argmax(gain.of[best])])
        budget -= float(price[chosen])
        left[chosen] = False
        gain.take(chosen)
        last = rows[chosen]
        taken.append(chosen)
    return np.array(taken, np.int64)


class _Gain:
    """The number of new interactions that each row would add, updated as rows are taken."""

    def __init__(self, space: Space, rows: Rows, strength: int, already: Int[np.ndarray, "m slots"]) -> None:
        from scipy import sparse  # Not at the top: most plans have no costs.

        owner, code = interactions_in(space, rows, strength)
        old = np.unique(interactions_in(space, already, strength)[1])
        new = ~np.isin(code, old)
        names, column = np.unique(code[new], return_inverse=True)
        shape = (len(names), len(rows))
        self._holders = sparse.csr_array((np.ones(len(column), np.int64), (column, owner[new])), shape=shape)
        self._held = sparse.csr_array(self._holders.T)
        self._open: Bool[np.ndarray, " names"] = np.ones(len(names), bool)
        self.of: Float[np.ndarray, " n"] = self._holders.sum(axis=0).astype(float)

    def take(self, row: int) -> None:
        held = self._held.indices[self._held.indptr[row] : self._held.indptr[row + 1]]
        newly = held[self._open[held]]
        self._open[newly] = False
        self.of -= self._holders[newly].sum(axis=0)
