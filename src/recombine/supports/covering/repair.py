"""Fewer rows with the same coverage: remove a row, then change single constituents until all is covered again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int, Int32

from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import Rows
from recombine.supports.covering.constraints import Rules
from recombine.supports.covering.tally import Tally, choices

EFFORT = 6 * 10**7
"""The most lookups of an interaction in one repair."""

MOVE = 10**4
"""The fixed cost of a move, in lookups."""

PATIENCE = (1500, 5)
"""The search ends after this many moves, or this multiple of the moves so far, without success."""

TENURE = (2, 10)
"""A changed constituent stays unchanged for a random number of moves in this range, to avoid cycles."""

Parts = tuple[int, ...]


class _Bag:
    """A set with constant-time random draws."""

    def __init__(self, items: Iterable[Parts]) -> None:
        self.items = list(items)
        self.index = {item: index for index, item in enumerate(self.items)}

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: Parts) -> None:
        if item not in self.index:
            self.index[item] = len(self.items)
            self.items.append(item)

    def discard(self, item: Parts) -> None:
        index = self.index.pop(item, None)
        if index is not None:
            last = self.items.pop()
            if last != item:
                self.items[index], self.index[last] = last, index


class Repair:
    """A tabu search over the constituents of all rows."""

    def __init__(self, tally: Tally, rows: Rows, rules: Rules, rng: np.random.Generator) -> None:
        self.space: Space = tally.space
        self.product = isinstance(self.space, ProductSpace)
        self.strength, self.rules, self.rng = tally.strength, rules, rng
        self.tally = tally
        self.count: Int32[np.ndarray, "*table"] = tally.count.copy()
        """How often each interaction occurs in the rows and in the rows that were there before."""
        self.rows = rows.astype(np.int64)
        self.beside = choices(self.space.slots - 1, self.strength - 1)
        if isinstance(self.space, ProductSpace):
            self.of = np.repeat(np.arange(self.space.slots), self.space.levels)
        self.moves = self.effort = 0
        never = np.argwhere(self.count == 0)
        self.missing = _Bag(map(tuple, never[(np.diff(never, axis=1) > 0).all(axis=1)].tolist()))

    def fill(self) -> Rows:
        """The same number of rows that leave as little uncovered as the search finds."""
        best, rows, since = len(self.missing), self.rows.copy(), self.moves
        self.until = np.zeros_like(self.rows)
        while self.missing and self._patient(since):
            self._move()
            if len(self.missing) < best:
                best, rows, since = len(self.missing), self.rows.copy(), self.moves
        return np.sort(rows, axis=1).astype(np.int32)

    def squeeze(self, least: int) -> Rows:
        """As few rows with the same coverage as the search finds, and at least `least`."""
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

    def _drop(self) -> None:
        """Remove the row that alone covers the fewest interactions."""
        slots = choices(self.space.slots, self.strength)
        block = max(1, 2**20 // len(slots))
        alone = np.concatenate(
            [
                (self.count[tuple(np.moveaxis(self.rows[begin : begin + block, slots], -1, 0))] == 1).sum(axis=1)
                for begin in range(0, len(self.rows), block)
            ]
        )
        index = int(alone.argmin())
        parts = self.rows[index, slots]
        parts = parts[self.count[tuple(parts.T)] >= 0]
        self._write(parts, -1)
        self.rows = np.delete(self.rows, index, axis=0)
        self.until = np.zeros_like(self.rows)

    def _write(self, parts: Int[np.ndarray, "n strength"], change: int) -> None:
        """Count these interactions once more, or once less."""
        now = self.count[tuple(parts.T)] + change
        for order in itertools.permutations(parts.T):
            self.count[order] = now
        switched = np.sort(parts[now == (0 if change < 0 else 1)], axis=1).tolist()
        for interaction in switched:
            (self.missing.add if change < 0 else self.missing.discard)(tuple(interaction))

    def _options(self, wanted: Int[np.ndarray, " strength"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes that cover a missing interaction or come closer to it: rows, slots and new constituents."""
        if self.product:
            factors = self.of[wanted]
            fits = self.rows[:, factors] == wanted
            near = fits.sum(axis=1)
            index, which = np.nonzero(~fits & (near == near.max())[:, None])
            return index, factors[which], wanted[which]
        fits = (self.rows[:, :, None] == wanted).any(axis=1)
        near = fits.sum(axis=1)
        nearest = np.flatnonzero(near == near.max())
        row, slot = np.nonzero(~np.isin(self.rows[nearest], wanted))
        lacking = (~fits[nearest]).argmax(axis=1)
        return nearest[row], slot, wanted[lacking[row]]

    def _move(self) -> None:
        """Choose a missing interaction and make the change towards it that loses least."""
        self.moves += 1
        wanted = np.array(self.missing.items[self.rng.integers(len(self.missing))])
        index, slot, new = self._options(wanted)
        if self.rules:
            changed = self.rows[index]
            changed[np.arange(len(index)), slot] = new
            changed = np.sort(changed, axis=1)
            fine = self.rules.allowed(changed)
            self.effort += MOVE + len(index) * self.rules.parts.size
            index, slot, new = index[fine], slot[fine], new[fine]
        self.effort += MOVE + 2 * len(index) * len(self.beside) * self.strength
        if not len(index):
            return
        others = self.beside + (self.beside >= slot[:, None, None])
        beside = self.rows[index[:, None, None], others].transpose(2, 0, 1)
        old = self.rows[index, slot]
        lost = (self.count[(old[:, None], *beside)] == 1).sum(axis=1)
        won = (self.count[(new[:, None], *beside)] == 0).sum(axis=1)
        price = lost - won + 0.5 * self.rng.random(len(index))
        price += 10**6 * (self.until[index, slot] > self.moves)
        best = int(price.argmin())
        self._change(int(index[best]), int(slot[best]), int(new[best]), beside[:, best].T)

    def _change(self, index: int, slot: int, new: int, beside: Int[np.ndarray, "n less"]) -> None:
        old = int(self.rows[index, slot])
        parts = np.empty((len(beside), self.strength), np.int64)
        parts[:, 1:] = beside
        for part, change in ((old, -1), (new, 1)):
            parts[:, 0] = part
            self._write(parts[self.count[tuple(parts.T)] >= 0], change)
        self.rows[index, slot] = new
        self.until[index, slot] = self.moves + self.rng.integers(*TENURE)
