"""The cost of collecting: one per combination, a cost per level, or one per changed factor."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows

CostKind = Literal["one", "levels", "changes"]
KINDS: tuple[CostKind, ...] = get_args(CostKind)

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
