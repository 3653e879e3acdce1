"""Fewer rows for the same coverage: take a row away, then change single parts until all is covered again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int, Int32

from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.supports.covering_rules import Rules
from recombine.supports.covering_tally import Tally, choices

EFFORT = 6 * 10**7
"""The most looks at an interaction in one repair."""

MOVE = 10**4
"""What a move costs, in looks, whatever it looks at."""

PATIENCE = (1500, 5)
"""It ends after so many moves, or so many times the moves made so far, without success."""

TENURE = (2, 10)
"""For so many moves a changed part is left alone, or the search would go in circles."""

Parts = tuple[int, ...]


class _Bag:
    """A set one can draw from."""

    def __init__(self, items: Iterable[Parts]) -> None:
        self.items = list(items)
        self.place = {item: index for index, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: Parts) -> None:
        if item not in self.place:
            self.place[item] = len(self.items)
            self.items.append(item)

    def discard(self, item: Parts) -> None:
        index = self.place.pop(item, None)
        if index is not None:
            last = self.items.pop()
            if last != item:
                self.items[index], self.place[last] = last, index


class Repair:
    """A tabu search over the parts of all rows."""

    def __init__(
        self,
        tally: Tally,
        rows: Int[np.ndarray, "n slots"],
        rules: Rules,
        rng: np.random.Generator,
    ) -> None:
        self.space: Space = tally.space
        self.product = isinstance(self.space, ProductSpace)
        self.strength, self.rules, self.rng = tally.strength, rules, rng
        self.tally = tally
        self.count: Int32[np.ndarray, "*table"] = tally.count.copy()
        """Times that an interaction is met, by the rows and by what was there before."""
        self.rows = rows.astype(np.int64)
        self.beside = choices(self.space.slots - 1, self.strength - 1)
        if isinstance(self.space, ProductSpace):
            self.of = np.repeat(np.arange(self.space.slots), self.space.levels)
        self.moves = self.effort = 0
        self.missing = self._missing()

    def _missing(self) -> _Bag:
        never = np.argwhere(self.count == 0)
        never = never[(np.diff(never, axis=1) > 0).all(axis=1)]
        return _Bag(map(tuple, never.tolist()))

    def fill(self) -> Int[np.ndarray, "n slots"]:
        """As many rows that leave as little uncovered as could be found."""
        best, rows, since = len(self.missing), self.rows.copy(), self.moves
        self._still()
        while self.missing and self._patient(since):
            self._move()
            if len(self.missing) < best:
                best, rows, since = len(self.missing), self.rows.copy(), self.moves
        return np.sort(rows, axis=1).astype(np.int32)

    def squeeze(self, least: int) -> Int[np.ndarray, "n slots"]:
        """As few rows that cover the same as could be found, not fewer than `least`."""
        kept = self.rows.copy()
        while len(self.rows) > least:
            self._drop()
            since = self.moves
            while self.missing and self._patient(since):
                self._move()
            if self.missing:
                break
            kept = self.rows.copy()
        return np.sort(kept, axis=1).astype(np.int32)

    def _patient(self, since: int) -> bool:
        few, times = PATIENCE
        return self.moves - since < max(few, times * since) and self.effort < EFFORT

    def _still(self) -> None:
        self.until = np.zeros(self.rows.shape, np.int64)

    def _drop(self) -> None:
        """Take away the row whose loss is least."""
        places = choices(self.space.slots, self.strength)
        block = max(1, 2**20 // len(places))
        alone = np.concatenate(
            [
                (self.count[tuple(np.moveaxis(self.rows[begin : begin + block, places], -1, 0))] == 1).sum(
                    axis=1
                )
                for begin in range(0, len(self.rows), block)
            ]
        )
        index = int(alone.argmin())
        parts = self.rows[index, places]
        parts = parts[self.count[tuple(parts.T)] >= 0]
        self._write(parts, -1)
        self.rows = np.delete(self.rows, index, axis=0)
        self._still()

    def _write(self, parts: Int[np.ndarray, "n strength"], change: int) -> None:
        """Interactions that are met once more, or once less."""
        now = self.count[tuple(parts.T)] + change
        for order in itertools.permutations(parts.T):
            self.count[order] = now
        turned = np.sort(parts[now == (0 if change < 0 else 1)], axis=1).tolist()
        for one in turned:
            (self.missing.add if change < 0 else self.missing.discard)(tuple(one))

    def _options(self, wanted: Int[np.ndarray, " strength"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes that bring a missing interaction, or nearer to it: which row, which place, which new part."""
        if self.product:
            factors = self.of[wanted]
            fits = self.rows[:, factors] == wanted
            near = fits.sum(axis=1)
            index, which = np.nonzero(~fits & (near == near.max())[:, None])
            return index, factors[which], wanted[which]
        fits = (self.rows[:, :, None] == wanted).any(axis=1)
        near = fits.sum(axis=1)
        found = np.flatnonzero(near == near.max())
        row, place = np.nonzero(~np.isin(self.rows[found], wanted))
        lacking = (~fits[found]).argmax(axis=1)
        return found[row], place, wanted[lacking[row]]

    def _move(self) -> None:
        """Choose a missing interaction and make the change that brings it at the least loss."""
        self.moves += 1
        wanted = np.array(self.missing.items[self.rng.integers(len(self.missing))])
        index, place, new = self._options(wanted)
        if self.rules:
            changed = self.rows[index]
            changed[np.arange(len(index)), place] = new
            changed = np.sort(changed, axis=1)
            fine = self.rules.allowed(changed)
            self.effort += MOVE + len(index) * self.rules.parts.size
            index, place, new = index[fine], place[fine], new[fine]
        self.effort += MOVE + 2 * len(index) * len(self.beside) * self.strength
        if not len(index):
            return
        others = self.beside + (self.beside >= place[:, None, None])
        beside = np.moveaxis(self.rows[index[:, None, None], others], -1, 0)
        old = self.rows[index, place]
        lost = (self.count[(old[:, None], *beside)] == 1).sum(axis=1)
        won = (self.count[(new[:, None], *beside)] == 0).sum(axis=1)
        price = lost - won + 0.5 * self.rng.random(len(index))
        price += 10**6 * (self.until[index, place] > self.moves)
        best = int(price.argmin())
        self._change(int(index[best]), int(place[best]), int(new[best]), beside[:, best].T)

    def _change(self, index: int, place: int, new: int, beside: Int[np.ndarray, "n less"]) -> None:
        old = int(self.rows[index, place])
        for part, change in ((old, -1), (new, 1)):
            parts = np.column_stack([np.full(len(beside), part), beside])
            self._write(parts[self.count[tuple(parts.T)] >= 0], change)
        self.rows[index, place] = new
        self.until[index, place] = self.moves + self.rng.integers(*TENURE)
