"""Build combinations constituent by constituent, many at a time, so that they cover the least covered interactions."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float32, Int

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space
from recombine.spaces.base import in_words
from recombine.spaces.rows import Rows
from recombine.supports.covering.constraints import IN, OPEN, OUT, Rules
from recombine.supports.covering.tally import Tally, choices

MOST_ENTRIES = 2**29
"""The most numbers that are compared to exchange one module of a row; 2 GB."""

LEAST = 1e-4
"""The smallest improvement that counts, in units of a tally's smallest worth. Less may be rounding."""

IMPROVED = 8
"""The number of best rows that are improved after they are built (one for sets, where it takes longer)."""


def require_few_entries(space: Space, strength: int) -> None:
    """Raise BadInput if exchanging one module of a row would compare too many numbers."""
    entries = space.slots * math.comb(space.slots - 1, strength - 1) * (space.width + 1)
    if not isinstance(space, ProductSpace) and entries > MOST_ENTRIES:
        raise BadInput(
            f"Choosing up to {space.slots} of {space.width} modules compares {in_words(entries)} numbers for each exchange, "
            f"more than the limit of {in_words(MOST_ENTRIES)}.",
            fix="combine fewer modules at a time",
        )


class Builder:
    """Builds rows of a space that satisfy its constraints."""

    def __init__(self, space: Space, rules: Rules, rng: np.random.Generator) -> None:
        self.space, self.rules, self.rng = space, rules, rng
        self.width, self.slots = space.width, space.slots
        self.product = isinstance(space, ProductSpace)
        if isinstance(space, ProductSpace):
            self.of = np.repeat(np.arange(space.slots), space.levels)
            self.begins = np.array(space.offsets)
            # The values of each factor, filled up with the pad.
            self.values = np.full((space.slots, max(space.levels)), space.width)
            self.values[self.of, np.arange(space.width) - self.begins[self.of]] = np.arange(space.width)

    def build(
        self, fixed: Int[np.ndarray, "n few"], tally: Tally | None = None, *, keep: bool = False
    ) -> tuple[Rows, Bool[np.ndarray, " n"]]:
        """One row for each set of `fixed` constituents (padded), and which rows were completed without contradiction.

        With a tally, each next constituent is the one that is worth most together with those before it, ties at random.
        Without a tally, all constituents are random. In the end the best rows are improved, which may change fixed
        constituents too, unless they are to be kept (in a product space).
        """
        work = _Work(self, fixed, tally)
        for step in range(self.slots):
            work.step(step)
        rows = np.sort(work.rows, axis=1).astype(np.int32)
        # A contradiction may appear only when an excluded constituent is taken.
        alive = work.alive & self.space.contains(rows) & self.rules.allowed(rows)
        if tally is not None and alive.any():
            best = np.argsort(np.where(alive, -tally.worth(rows), 0), kind="stable")
            best = best[: min(IMPROVED if self.product else 1, int(alive.sum()))]
            if self.product:
                rows[best] = self._by_values(rows[best], work.gains[best], tally, fixed[best] if keep else None)
            else:
                rows[best[0]] = self._by_modules(rows[best[0]], tally)
        return rows, alive

    def _by_values(
        self,
        rows: Rows,
        gains: Float32[np.ndarray, "n width_and_pad"],
        tally: Tally,
        kept: Int[np.ndarray, "n few"] | None,
    ) -> Rows:
        """Change the value that improves each row most, as long as one does.

        Two values of one factor never occur together, so the gain of a value is its worth in place of another.
        """
        rows = rows.astype(np.int64)
        every = np.arange(len(rows))
        gains[:, -1] = -np.inf
        stays = np.zeros(rows.shape, bool)
        if kept is not None:
            row, few = np.nonzero(kept < self.width)
            stays[row, self.of[kept[row, few]]] = True
        for _ in range(2 * self.slots):
            now = np.take_along_axis(gains, rows, axis=1)
            better = np.maximum.reduceat(gains[:, :-1], self.begins, axis=1) - now
            better[stays] = -np.inf
            slot = better.argmax(axis=1)
            moved = every[better[every, slot] > LEAST * tally.small + 1e-6 * now.max()]
            if not len(moved):
                break
            slot = slot[moved]
            values = self.values[slot]
            new = values[np.arange(len(moved)), np.take_along_axis(gains[moved], values, axis=1).argmax(axis=1)]
            changed = rows[moved]
            old = changed[np.arange(len(moved)), slot]
            changed[np.arange(len(moved)), slot] = new
            fine = self.rules.allowed(changed)
            gains[moved[~fine], new[~fine]] = -np.inf
            moved, changed, slot = moved[fine], changed[fine], slot[fine]
            gains[moved] += worth(tally, changed, slot, new[fine]) - worth(tally, changed, slot, old[fine])
            rows[moved] = changed
        return rows.astype(np.int32)

    def _by_modules(self, row: Int[np.ndarray, " slots"], tally: Tally) -> Int[np.ndarray, " slots"]:
        """Exchange the module that improves the row most, as long as one does."""
        row = row.astype(np.int64)
        slots = np.arange(self.slots)
        for _ in range(2 * self.slots):
            each = np.tile(row, (len(slots), 1))
            # The worth of each module together with all but one module of the row.
            gains = alone(tally, each, slots)
            now = gains[slots, row]
            gains[:, row] = gains[:, -1] = -np.inf
            better = gains - now[:, None]
            slot, new = np.unravel_index(better.argmax(), better.shape)
            if better[slot, new] <= LEAST * tally.small + 1e-6 * abs(now).max():
                break
            changed = np.sort(np.where(slots == slot, new, row))
            if not (self.rules.allowed(changed[None]) & self.space.contains(changed[None]))[0]:
                break
            row = changed
        return row.astype(np.int32)


def worth(
    tally: Tally, rows: Rows, slot: Int[np.ndarray, " n"], part: Int[np.ndarray, " n"]
) -> Float32[np.ndarray, "n width_and_pad"]:
    """The worth of every constituent together with `part` and the rest of the row, without the one in `slot`."""
    if tally.strength == 1:
        return np.zeros((len(rows), len(tally.weight)), np.float32)
    if tally.strength == 2:
        return tally.weight[part]
    others = choices(rows.shape[1] - 1, tally.strength - 2)
    beside = rows[np.arange(len(rows))[:, None, None], others + (others >= slot[:, None, None])]
    return tally.weight[(part[:, None], *np.moveaxis(beside, -1, 0))].sum(axis=1)


def alone(tally: Tally, rows: Rows, slot: Int[np.ndarray, " n"]) -> Float32[np.ndarray, "n width_and_pad"]:
    """The worth of every constituent together with the row, without the one in `slot`."""
    if tally.strength == 1:
        return np.tile(tally.weight, (len(rows), 1))
    others = choices(rows.shape[1] - 1, tally.strength - 1)
    beside = rows[np.arange(len(rows))[:, None, None], others + (others >= slot[:, None, None])]
    return tally.weight[tuple(np.moveaxis(beside, -1, 0))].sum(axis=1)


class _Work:
    """Rows under construction."""

    def __init__(self, builder: Builder, fixed: Int[np.ndarray, "n few"], tally: Tally | None) -> None:
        self.builder, self.fixed, self.tally = builder, fixed, tally
        space, rules, number = builder.space, builder.rules, len(fixed)
        self.every = np.arange(number)
        self.rows = np.full((number, space.slots), space.width, np.int64)
        """The constituents in the order in which they were taken."""
        self.gains = np.zeros((number, space.width + 1), np.float32)
        if tally is not None and tally.strength == 1:
            self.gains += tally.weight
        self.taken = np.zeros((number, space.width + 1), bool)
        self.state = rules.start(number)
        np.put_along_axis(self.state, fixed.astype(np.int64), np.int8(IN), axis=1)
        self.alive = rules.propagate(self.state)
        if builder.product:
            self.order = self._order()
        self.noise = np.float32(0)
        if tally is not None:
            # Ties are broken at random, but the less covered interaction must still win.
            usual = 1 if tally.left else (1 + tally.met / max(1, tally.coverable)) ** 2
            self.noise = np.float32(tally.small * (0.05 if tally.left else 1e-3) / usual)

    def _order(self) -> Rows:
        """The factors of fixed constituents first, the others in random order."""
        builder = self.builder
        keys = builder.rng.random((len(self.every), builder.slots))
        real = self.fixed < builder.width
        rows = np.nonzero(real)[0]
        keys[rows, builder.of[self.fixed[real]]] = -1
        return keys.argsort(axis=1)

    def step(self, step: int) -> None:
        """Take one more constituent in every row."""
        builder, every = self.builder, self.every
        width = builder.width
        if builder.product:
            options = builder.values[self.order[:, step]]
            known = np.take_along_axis(self.state, options, axis=1)
            barred = (known == OUT) | (options == width)
        else:
            options = None
            known = self.state[:, :-1]
            barred = (known == OUT) | self.taken[:, :-1]
        score = builder.rng.random(known.shape, dtype=np.float32)
        if self.tally is not None:
            score *= self.noise
            score += self.gains[:, :-1] if options is None else np.take_along_axis(self.gains, options, axis=1)
        # Required modules come first: later there may be no free slot.
        score[known == IN] = np.inf
        score[barred] = -np.inf
        best = score.argmax(axis=1)
        part = np.where(barred[every, best], width, best if options is None else options[every, best])
        self._take(step, part)

    def _take(self, step: int, part: Int[np.ndarray, " n"]) -> None:
        builder, tally, every = self.builder, self.tally, self.every
        if tally is not None and tally.strength > 1:
            before = choices(step, tally.strength - 2)
            if tally.strength == 2:
                self.gains += tally.weight[part]
            elif len(before):
                beside = np.moveaxis(self.rows[:, before], -1, 0)
                self.gains += tally.weight[(part[:, None], *beside)].sum(axis=1)
        self.rows[:, step] = part
        self.taken[every, part] = True
        changed = (self.state[every, part] == OPEN) & (part < builder.width)
        self.state[every, part] = IN
        if builder.product:
            # Where constraints need it, the propagation excludes the other values of the factor.
            changed &= builder.rules.concerned[part]
        elif not builder.rules:
            return
        todo = every[changed & self.alive]
        if len(todo) and builder.rules:
            some = self.state[todo]
            self.alive[todo] = builder.rules.propagate(some)
            self.state[todo] = some
