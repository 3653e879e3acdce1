"""Groups of factors with a strength of their own: combinations that cover all sets of 3 of some factors, for example."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import Rows
from recombine.supports.covering import Forbidden, cover
from recombine.supports.covering.builder import Builder
from recombine.supports.covering.constraints import Rules
from recombine.supports.covering.feasible import coverable
from recombine.supports.covering.tally import Tally

MOST = 200_000
"""The most interactions of one group."""
CANDIDATES = 32
"""The number of combinations built at a time, of which the best is taken."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Factors whose interactions of a higher strength are covered too."""

    slots: tuple[int, ...]
    strength: int


def make_groups(
    space: Space, given: Mapping[Sequence[str], int] | Iterable[tuple[Sequence[str], int]]
) -> tuple[Group, ...]:
    """The groups that a user named: factors and a strength."""
    pairs = cast(list[tuple[Sequence[str], int]], list(given.items() if isinstance(given, Mapping) else given))
    if pairs and not isinstance(space, ProductSpace):
        raise BadInput("Groups with a strength of their own need factors, and subsets have none.", fix="use --strength")
    names = [name for name, _ in space.factors] if isinstance(space, ProductSpace) else []
    groups = []
    for factors, strength in pairs:
        for name in factors:
            if name not in names:
                raise BadInput(f"There is no factor called {name!r}.", fix=did_you_mean(str(name), names))
        slots = tuple(sorted({names.index(name) for name in factors}))
        if not 1 <= strength <= len(slots):
            raise BadInput(
                f"Strength {strength} is not possible for the {len(slots)} factors {', '.join(factors)}.",
                fix=f"choose a strength of 1 to {len(slots)}",
            )
        groups.append(Group(slots, strength))
    return tuple(groups)


def stronger_rows(
    space: Space, groups: Sequence[Group], there: Rows, forbidden: Sequence[Forbidden], seed: int, strength: int
) -> tuple[Int[np.ndarray, "more slots"], list[str]]:
    """Combinations that cover the interactions of the groups which `there` lacks, and a sentence about each group.

    Each group gets a covering design of its own factors. The designs stand side by side in the same combinations where
    the groups share no factor, and the other factors are chosen for the pairs that they cover. What constraints then
    still leave uncovered is covered one interaction at a time.
    """
    assert isinstance(space, ProductSpace)
    rng = np.random.default_rng(seed % 2**64)
    rules = Rules(space, forbidden)
    builder = Builder(space, rules, rng)
    tally = Tally(space, strength, coverable(space, strength, rules, rng))
    tally.add(there)
    rows, sentences = list(there), []
    parts = [_design(space, group, there, seed) for group in groups]
    for fixed in _side_by_side(groups, parts, space):
        made, alive = builder.build(np.tile(fixed, (CANDIDATES, 1)), tally, keep=True)
        if alive.any():
            row = made[np.where(alive, tally.worth(made), -1).argmax()]
            tally.add(row[None])
            rows.append(row)
    for group in groups:
        missing = _missing(space, group, np.array(rows, np.int32).reshape(-1, space.slots))
        wanted, impossible = len(missing), 0
        while missing:
            fixed = np.array([missing[index] for index in rng.permutation(len(missing))[:CANDIDATES]])
            made, alive = builder.build(fixed, tally, keep=True)
            row = (
                made[np.where(alive, tally.worth(made), -1).argmax()]
                if alive.any()
                else rules.witness(fixed[0].tolist())
            )
            if row is None:
                # No combination that is allowed has it.
                missing.remove(tuple(fixed[0].tolist()))
                impossible += 1
                continue
            tally.add(row[None])
            rows.append(row)
            has = set(row.tolist())
            missing = [parts for parts in missing if not has.issuperset(parts)]
        named = ", ".join(space.factors[slot][0] for slot in group.slots)
        total = _count(space, group)
        ruled_out = f"; the constraints rule out {impossible} of {total}" if impossible and wanted else ""
        sentences.append(f"All possible sets of {group.strength} levels of {named} are covered{ruled_out}.")
    return np.array(rows[len(there) :], np.int32).reshape(-1, space.slots), sentences


def _count(space: ProductSpace, group: Group) -> int:
    sets = itertools.combinations((space.levels[slot] for slot in group.slots), group.strength)
    return sum(math.prod(levels) for levels in sets)


def _design(space: ProductSpace, group: Group, there: Rows, seed: int) -> Int[np.ndarray, "rows few"]:
    """A covering design of the group's factors alone, without what is there, as constituents of the whole space."""
    if (number := _count(space, group)) > MOST:
        raise BadInput(
            f"The group of {len(group.slots)} factors has {in_words(number)} sets of {group.strength} levels, more than {in_words(MOST)}.",
            fix="lower its strength, or name fewer factors",
        )
    own = ProductSpace(factors=tuple(space.factors[slot] for slot in group.slots))
    shift = np.array([space.offsets[slot] for slot in group.slots]) - np.array(own.offsets)
    before = np.unique(there[:, group.slots] - shift, axis=0).astype(np.int32) if len(there) else None
    return cover(own, strength=group.strength, already=before, seed=seed).rows + shift


def _side_by_side(
    groups: Sequence[Group], parts: Sequence[Int[np.ndarray, "_ _"]], space: ProductSpace
) -> Iterable[Int[np.ndarray, " slots"]]:
    """Rows of the designs, one of each group where the groups share no factor; the rest is the pad."""
    together: list[tuple[set[int], list[np.ndarray]]] = []
    for group, rows in zip(groups, parts, strict=True):
        place = next((one for one in together if not one[0] & set(group.slots)), None)
        if place is None:
            place = (set[int](), [])
            together.append(place)
        place[0].update(group.slots)
        place[1].append(rows)
    for slots, designs in together:
        for index in range(max(map(len, designs), default=0)):
            fixed = np.concatenate([rows[index] for rows in designs if index < len(rows)])
            yield np.pad(fixed, (0, len(slots) - len(fixed)), constant_values=space.width)


def _missing(space: ProductSpace, group: Group, rows: Rows) -> list[tuple[int, ...]]:
    """The interactions of a group that no row has."""
    missing = []
    for slots in itertools.combinations(group.slots, group.strength):
        seen = {tuple(row) for row in rows[:, slots].tolist()}
        levels = [range(space.offsets[slot], space.offsets[slot] + space.levels[slot]) for slot in slots]
        missing += [parts for parts in itertools.product(*levels) if parts not in seen]
    return missing
