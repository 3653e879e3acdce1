"""The combinations that a model is asked about, in the user's own values."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recombine.audit.wording import counted
from recombine.errors import BadInput, did_you_mean
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

MOST = 500
"""How many combinations are asked about by default."""
LISTED = 50_000
"""Spaces up to this size are listed, so that a function can say which combinations were trained on."""
SET = "modules"
"""The column of the sets of a subset space."""

Combination = dict[str, Any] | tuple[int, ...]
"""A value for each factor, or the numbers of modules."""


@dataclasses.dataclass(frozen=True)
class NamedSpace:
    """A space whose combinations are dictionaries of the user's values, or tuples of module numbers."""

    values: dict[str, tuple[Any, ...]]
    """The values of each factor; empty for a space of subsets."""
    subset: SubsetSpace | None = None

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns that hold one value each."""
        return tuple(self.values)

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that hold sets."""
        return () if self.subset is None else (SET,)

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(map(len, self.values.values())) if self.subset is None else self.subset.size

    def name(self, combination: Combination) -> str:
        """A combination as text: red + cube."""
        values = combination.values() if isinstance(combination, dict) else combination
        return " + ".join(map(str, values))

    def table(self, combinations: Iterable[Combination]) -> dict[str, list[Any]]:
        """Combinations as the columns of a table, with values as text."""
        rows = list(combinations)
        if self.subset is not None:
            return {SET: [[str(module) for module in row] for row in rows]}
        return {name: [str(row[name]) for row in rows if isinstance(row, dict)] for name in self.values}

    def listed(self, most: int = LISTED) -> list[Combination] | None:
        """All combinations, or None if there are more than `most`."""
        if self.size > most:
            return None
        if self.subset is not None:
            return [self.subset.constituents(row) for row in self.subset.enumerate(most)]
        return [dict(zip(self.values, values, strict=True)) for values in itertools.product(*self.values.values())]

    def choose(self, wanted: int | Iterable[Any] | None, seed: int) -> list[Combination]:
        """The combinations to ask about, without repeats: those given, or `wanted` at random (None: `MOST`)."""
        number = MOST if wanted is None else wanted
        rng = np.random.default_rng([seed, 7])
        if not isinstance(number, int):
            chosen = self.checked(number)
        elif (everything := self.listed()) is None:
            chosen = self._drawn(number, rng)
        elif number >= len(everything):
            chosen = everything
        else:
            chosen = [everything[index] for index in np.sort(rng.choice(len(everything), number, replace=False))]
        if len(chosen) < 2:
            raise BadInput(
                f"{counted(len(chosen), 'combination')} to ask about: there is nothing to compare.",
                fix="name two or more",
            )
        return chosen

    def checked(self, combinations: Iterable[Any]) -> list[Combination]:
        """The user's combinations, checked: dictionaries, tuples in the order of factors, or rows of the space."""
        rows = isinstance(combinations, np.ndarray) and combinations.dtype.kind in "iu"
        return _distinct(self._of_row(given) if rows else self._checked(given) for given in combinations)

    def _checked(self, given: Any) -> Combination:
        if self.subset is not None:
            return self.subset.constituents(self.subset.row([int(module) for module in given]))
        if not isinstance(given, Mapping) and (isinstance(given, str) or len(given) != len(self.values)):
            raise BadInput(
                f"A combination has a value for each of {', '.join(self.values)}, got {given!r}.",
                fix="give a dictionary by factor, or a tuple in their order",
            )
        given = given if isinstance(given, Mapping) else dict(zip(self.values, given, strict=True))
        if unknown := [name for name in given if name not in self.values]:
            raise BadInput(f"There is no factor {unknown[0]!r}.", fix=did_you_mean(str(unknown[0]), self.values))
        combination = {}
        for name, values in self.values.items():
            known = {str(value): value for value in values}
            if name not in given or str(given[name]) not in known:
                hint = did_you_mean(str(given.get(name)), known)
                raise BadInput(f"Factor {name!r} has no value {given.get(name)!r}.", fix=hint)
            combination[name] = known[str(given[name])]
        return combination

    def _of_row(self, row: np.ndarray) -> Combination:
        if self.subset is not None:
            return self._checked([module for module in row if module < self.subset.width])
        named = [(name, value) for name, values in self.values.items() for value in values]
        if len(row) != len(self.values) or row.min() < 0 or row.max() >= len(named):
            raise BadInput(f"{row.tolist()} is not a row of this space.", fix="give dictionaries by factor")
        return self._checked(dict(named[constituent] for constituent in row))

    def _drawn(self, number: int, rng: np.random.Generator) -> list[Combination]:
        """Different combinations, uniformly. The space is large, so few are drawn twice."""
        distinct: list[Combination] = []
        while len(distinct) < min(number, self.size):
            if self.subset is not None:
                import jax

                keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), number)
                rows = np.asarray(jax.vmap(self.subset.sample)(keys))
                drawn: list[Combination] = [self.subset.constituents(row) for row in rows]
            else:
                sides = self.values.values()
                picks = [[values[pick] for pick in rng.integers(len(values), size=number)] for values in sides]
                drawn = [dict(zip(self.values, row, strict=True)) for row in zip(*picks, strict=True)]
            distinct = _distinct([*distinct, *drawn])
        return distinct[:number]


def _distinct(combinations: Iterable[Combination]) -> list[Combination]:
    """The first of those that are equal."""
    unique: dict[tuple[Any, ...], Combination] = {}
    for combination in combinations:
        unique.setdefault(tuple(combination.values() if isinstance(combination, dict) else combination), combination)
    return list(unique.values())


def named_space(space: Any) -> NamedSpace:
    """The space to ask about.

    Args:
        space: A `ProductSpace`, a `SubsetSpace`, or a mapping from factors to their values or to how many there are.
    """
    if isinstance(space, SubsetSpace):
        return NamedSpace({}, space)
    if isinstance(space, ProductSpace):
        return NamedSpace(dict(space.factors))
    if not isinstance(space, Mapping) or not space:
        raise BadInput(
            f"A space was expected, got a {type(space).__name__}.",
            fix='give a ProductSpace, a SubsetSpace, or a mapping such as {"colour": ["red", "blue"], "shape": 3}',
        )
    values = {}
    for name, given in space.items():
        if isinstance(given, str) or not isinstance(given, int | Iterable):
            raise BadInput(
                f"Factor {name!r} needs a list of values or their number, got {given!r}.",
                fix=f'write {{"{name}": ["red", "blue"]}} or {{"{name}": 3}}',
            )
        values[str(name)] = tuple(range(given) if isinstance(given, int) else given)
        texts = [str(value) for value in values[str(name)]]
        if not texts or len(set(texts)) < len(texts):
            raise BadInput(
                f"Factor {name!r} needs at least one value, and none twice, got {texts[:10]}.",
                fix="give each value once",
            )
    return NamedSpace(values)
