"""What collecting costs: one for each combination, a cost for each level, or the factors that are changed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

CostKind = Literal["one", "levels", "changes"]
KINDS: tuple[CostKind, ...] = get_args(CostKind)

UNNAMED = 1.0
"""What a level costs that no cost was given for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Costs:
    """What one combination costs after another. Made by `costs_of`."""

    kind: CostKind
    width: int
    levels: Float[np.ndarray, " width"]
    """The cost of each constituent; counts for the kind `levels` only."""

    @property
    def unit(self) -> str:
        """What is counted, in the plural."""
        return {"one": "combinations", "levels": "of cost", "changes": "factor changes"}[self.kind]

    def next(
        self, rows: Int[np.ndarray, "n slots"], last: Int[np.ndarray, " slots"] | None
    ) -> Float[np.ndarray, " n"]:
        """What each of these would cost as the one that follows `last`; as the very first where that is None."""
        if self.kind == "one":
            return np.ones(len(rows))
        if self.kind == "levels":
            return np.append(self.levels, 0.0)[rows].sum(axis=1)
        # Of a set as many as come in or go out, whichever is more: one for a module that replaces another.
        before = np.zeros(self.width + 1, bool)
        before[last if last is not None else []] = True
        before[self.width] = False
        sizes = np.maximum((rows < self.width).sum(axis=1), before.sum())
        return (sizes - before[rows].sum(axis=1)).astype(float)

    def each(
        self, rows: Int[np.ndarray, "n slots"], last: Int[np.ndarray, " slots"] | None
    ) -> Float[np.ndarray, " n"]:
        """What these cost one after the other."""
        if self.kind != "changes":
            return self.next(rows, last)
        before = [last, *rows[:-1]]
        return np.array([self.next(row[None], one)[0] for row, one in zip(rows, before, strict=False)])


def costs_of(space: Space, kind: str | None = None, given: Mapping[str, Any] | None = None) -> Costs:
    """The costs of a plan. `given` has by factor a number, or by factor and level; of subsets, by module.

    Where costs are given and no kind is, levels cost; else each combination costs one.
    """
    kind = kind or ("levels" if given else "one")
    if kind not in KINDS:
        raise BadInput(f"There is no cost called {kind!r}.", fix=did_you_mean(kind, KINDS))
    if given and kind != "levels":
        raise BadInput(
            f"Costs of levels were given, but the cost is {kind!r}.",
            fix="leave costs out, or say cost: levels",
        )
    if kind == "levels" and not given:
        raise BadInput(
            "No level has a cost.", fix="write costs into the file: costs: {object: {dog: 5, cat: 1}}"
        )
    levels = np.full(space.width, UNNAMED)
    for name, value in (given or {}).items():
        if isinstance(space, ProductSpace):
            _of_factor(levels, space, str(name), value)
        elif str(name).isdecimal() and int(name) < space.width:
            levels[int(name)] = _amount(value, f"module {name}")
        else:
            raise BadInput(
                f"There is no module {name!r} that could cost something.",
                fix=f"modules are numbered 0 to {space.width - 1}",
            )
    return Costs(kind, space.width, levels)


def _of_factor(levels: Float[np.ndarray, " width"], space: ProductSpace, factor: str, value: Any) -> None:
    factors = dict(space.factors)
    if factor not in factors:
        raise BadInput(
            f"There is no factor called {factor!r} that could cost something.",
            fix=did_you_mean(factor, factors),
        )
    start = space.offsets[list(factors).index(factor)]
    names = factors[factor]
    if not isinstance(value, Mapping):
        levels[start : start + len(names)] = _amount(value, f"factor {factor!r}")
        return
    for level, cost in value.items():
        if str(level) not in names:
            raise BadInput(
                f"The factor {factor!r} has no level {str(level)!r} that could cost something.",
                fix=did_you_mean(str(level), names),
            )
        levels[start + names.index(str(level))] = _amount(cost, f"{factor}={level}")


def _amount(value: Any, what: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not (math.isfinite(found) and found >= 0) or isinstance(value, bool):
        raise BadInput(f"The cost of {what} must be a number from 0 on, got {value!r}.")
    return found
