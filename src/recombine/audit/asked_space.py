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
"""So many combinations are asked about where nobody says how many."""
LISTED = 50_000
"""Spaces up to this size are gone through where a function tells what was trained on."""
SET = "modules"
"""The column of the sets of a subset space."""

Combination = dict[str, Any] | tuple[int, ...]
"""A value for each factor, or the numbers of modules."""


@dataclasses.dataclass(frozen=True)
class AskedSpace:
    """A value for each factor; or, where there are no values, sets of modules."""

    values: dict[str, tuple[Any, ...]]
    subset: SubsetSpace | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table of combinations."""
        return tuple(self.values) if self.subset is None else (SET,)

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
        """How many combinations there are."""
        return math.prod(map(len, self.values.values())) if self.subset is None else self.subset.size

    def name(self, combination: Combination) -> str:
        """A combination in words."""
        values = combination.values() if isinstance(combination, dict) else combination
        return " + ".join(map(str, values))

    def table(self, combinations: Iterable[Combination]) -> dict[str, list[Any]]:
        """Combinations as the columns of a table; values are text there."""
        rows = list(combinations)
        if self.subset is not None:
            return {SET: [[str(part) for part in row] for row in rows]}
        return {name: [str(row[name]) for row in rows if isinstance(row, dict)] for name in self.values}

    def listed(self, most: int = LISTED) -> list[Combination] | None:
        """All combinations, or None where they are too many."""
        if self.size > most:
            return None
        if self.subset is not None:
            return [self.subset.constituents(row) for row in self.subset.enumerate(most)]
        return [
            dict(zip(self.values, each, strict=True)) for each in itertools.product(*self.values.values())
        ]

    def chosen(self, wanted: int | Iterable[Any] | None, seed: int) -> list[Combination]:
        """The combinations to ask about, none twice."""
        if wanted is not None and not isinstance(wanted, int):
            found = self.given(wanted)
        else:
            number = MOST if wanted is None else wanted
            rng = np.random.default_rng([seed, 7])
            every = self.listed()
            if every is None:
                found = self._drawn(number, rng)
            elif number >= len(every):
                found = every
            else:
                found = [every[index] for index in np.sort(rng.choice(len(every), number, replace=False))]
        if len(found) < 2:
            raise BadInput(
                f"{counted(len(found), 'combination')} to ask about: there is nothing to compare.",
                fix="name two or more",
            )
        return found

    def given(self, combinations: Iterable[Any]) -> list[Combination]:
        """Combinations that the user named, checked: dictionaries, tuples in the order of factors, or rows of the space."""
        rows = isinstance(combinations, np.ndarray) and combinations.dtype.kind in "iu"
        found = {}
        for one in combinations:
            made = self._of_row(one) if rows else self._checked(one)
            found.setdefault(tuple(made.values()) if isinstance(made, dict) else made, made)
        return list(found.values())

    def _checked(self, one: Any) -> Combination:
        if self.subset is not None:
            row = self.subset.row([int(part) for part in one])
            return self.subset.constituents(row)
        if not isinstance(one, Mapping):
            if isinstance(one, str) or len(one) != len(self.values):
                raise BadInput(
                    f"A combination has a value for each of {', '.join(self.values)}, got {one!r}.",
                    fix="give a dictionary by factor, or a tuple in their order",
                )
            one = dict(zip(self.values, one, strict=True))
        for name in one:
            if name not in self.values:
                raise BadInput(f"There is no factor {name!r}.", fix=did_you_mean(str(name), self.values))
        made = {}
        for name, values in self.values.items():
            known = {str(value): value for value in values}
            if name not in one or str(one[name]) not in known:
                hint = did_you_mean(str(one.get(name)), known)
                raise BadInput(f"Factor {name!r} has no value {one.get(name)!r}.", fix=hint)
            made[name] = known[str(one[name])]
        return made

    def _of_row(self, row: np.ndarray) -> Combination:
        if self.subset is not None:
            return self._checked([part for part in row if part < self.subset.width])
        every = [(name, value) for name, values in self.values.items() for value in values]
        if len(row) != len(self.values) or row.min() < 0 or row.max() >= len(every):
            raise BadInput(f"{row.tolist()} is not a row of this space.", fix="give dictionaries by factor")
        return self._checked(dict(every[part] for part in row))

    def _drawn(self, number: int, rng: np.random.Generator) -> list[Combination]:
        """Different combinations, uniformly. The space is large: few are drawn twice."""
        found: dict[tuple[Any, ...], Combination] = {}
        while len(found) < min(number, self.size):
            if self.subset is not None:
                import jax

                keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), number)
                rows = np.asarray(jax.vmap(self.subset.sample)(keys))
                drawn: list[Combination] = [self.subset.constituents(row) for row in rows]
            else:
                picks = {name: rng.integers(len(values), size=number) for name, values in self.values.items()}
                drawn = [
                    {name: values[picks[name][index]] for name, values in self.values.items()}
                    for index in range(number)
                ]
            for one in drawn:
                found.setdefault(tuple(one.values()) if isinstance(one, dict) else one, one)
        return list(found.values())[:number]


def asked_space(space: Any) -> AskedSpace:
    """A space of recombine, or a mapping from factors to their values (or to how many there are)."""
    if isinstance(space, SubsetSpace):
        return AskedSpace({}, space)
    if isinstance(space, ProductSpace):
        return AskedSpace(dict(space.factors))
    if not isinstance(space, Mapping) or not space:
        raise BadInput(
            f"A space was expected, got a {type(space).__name__}.",
            fix='give a ProductSpace, a SubsetSpace, or a mapping such as {"colour": ["red", "blue"], "shape": 3}',
        )
    values = {}
    for name, given in space.items():
        if isinstance(given, str) or not isinstance(given, int | Iterable):
            raise BadInput(f"Factor {name!r} needs a list of values or their number, got {given!r}.")
        values[str(name)] = tuple(range(given) if isinstance(given, int) else given)
        texts = [str(value) for value in values[str(name)]]
        if not texts or len(set(texts)) < len(texts):
            raise BadInput(f"Factor {name!r} needs a value at least, and none twice, got {texts[:10]}.")
    return AskedSpace(values)
