"""A split of SCAN by divergence: training and test use words equally often, but combine them differently.

`divergence` defines atoms, compounds and their divergence.
"""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.scan import ScanSpace, language
from recombine.supports import Listed, SupportKind
from recombine.supports.compound_divergence import divergence as apart
from recombine.supports.compound_divergence.divergence import Usage

STARTS = 4
"""The number of random splits from which the search starts. The best result is taken."""

STEPS = 1500
"""The number of exchanges that a search tries."""

NEAR = 1e-3
"""The search ends at this distance to the target."""

DOUBLINGS = 9
"""An exchange has 1, 2, 4, ... commands, with this many sizes."""

POOL = 8
"""An exchange takes the best commands of a random pool that is this many times as large."""

TOO_FAR = 10.0
"""Added to the loss where the atom divergence is above its limit."""

TRAIN, TEST, REST = range(3)


class CompoundDivergence(SupportKind):
    """A search finds the lists, starting from the seed. `scan_certificate` says which divergence it reached.

    After the maximum compound divergence splits of Keysers et al. 2020. By default half of all commands are used, so that
    the search has a choice: four fifths of them for training and one fifth for the test.
    """

    kind: Literal["compound-divergence"] = "compound-divergence"
    defined_on = (ScanSpace,)
    target: float = Field(default=1.0, ge=0, le=1)
    """The compound divergence to approach: 0 for as low as possible, 1 for as high as possible."""
    atom_limit: float = Field(default=0.02, gt=0, le=1)
    """The largest atom divergence."""
    train: PositiveInt = 8365
    """The number of training commands."""
    test: int = Field(default=2090, ge=2)
    """The number of held-out commands."""

    def check(self, space: Space) -> None:
        super().check(space)
        if self.train + self.test > space.size:
            raise BadInput(
                f"train={self.train} and test={self.test} need more than the {space.size} commands of SCAN.",
                fix="lower one of them",
            )

    def length(self, space: Space) -> int:
        return self.train

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        train, test = _searched(self.train, self.test, self.target, self.atom_limit, seed)
        # Equal weights are written out: this shares one compiled program with the published splits.
        return Listed(space, train.copy(), np.ones(len(train)), test.copy())


@functools.lru_cache(maxsize=32)
def _searched(
    train: int, test: int, target: float, atom_limit: float, seed: int
) -> tuple[Int[np.ndarray, "train slots"], Int[np.ndarray, "test slots"]]:
    """The rows to train on and to test on."""
    best = None
    for start in range(STARTS):
        search = _Search(train, test, target, atom_limit, np.random.default_rng([seed, 43, start]))
        for _ in range(STEPS):
            if search.off <= NEAR:
                break
            search.step()
        if best is None or search.off < best.off:
            best = search
        if best.off <= NEAR:
            break
    if best is None or not np.isfinite(best.off):
        raise BadInput(
            f"The search found no split with an atom divergence of at most {atom_limit}.",
            fix="choose a larger atom_limit, or longer lists",
        )
    rows = [np.asarray(language.rows_of(np.sort(best.sides[side]))) for side in (TRAIN, TEST)]
    return rows[TRAIN], rows[TEST]


class _Search:
    """Exchanges commands between training, test and the unused rest, and keeps exchanges that lower the loss."""

    def __init__(self, train: int, test: int, target: float, atom_limit: float, rng: np.random.Generator) -> None:
        self.target, self.atom_limit, self.rng = target, atom_limit, rng
        order = rng.permutation(language.SIZE)
        self.sides = [side.copy() for side in np.split(order, [train, train + test])]
        used = [apart.usage_of(self.sides[side]) for side in (TRAIN, TEST)]
        self._keep(used, self._loss(used))

    def _keep(self, used: list[Usage], loss: float) -> None:
        self.used, self.loss = used, loss
        self.compounds = apart.compound_divergence(*used)
        self.off = abs(self.compounds - self.target) if loss < TOO_FAR else float("inf")
        """The distance of the compound divergence to the target; infinite where the atom divergence is too large."""
        self.worth = self._worth()

    def step(self) -> None:
        """Try one exchange of the most promising commands of a random pool."""
        side, other = ((TRAIN, TEST), (TRAIN, REST), (TEST, REST))[self.rng.integers(3)]
        number = min(2 ** int(self.rng.integers(DOUBLINGS)), len(self.sides[side]), len(self.sides[other]))
        if not number:
            return
        leaving = self._best(side, self.worth[other] - self.worth[side], number)
        entering = self._best(other, self.worth[side] - self.worth[other], number)
        moved = apart.usage_of(self.sides[other][entering]) - apart.usage_of(self.sides[side][leaving])
        tried = list(self.used)
        for changed, gain in ((side, moved), (other, -moved)):
            if changed != REST:
                tried[changed] = tried[changed] + gain
        loss = self._loss(tried)
        if loss < self.loss:
            self._keep(tried, loss)
            left = self.sides[side][leaving]
            self.sides[side][leaving] = self.sides[other][entering]
            self.sides[other][entering] = left

    def _loss(self, used: list[Usage]) -> float:
        """The distance to the target plus the atom divergence, which keeps the search away from its limit."""
        atoms = apart.atom_divergence(*used)
        if atoms > self.atom_limit:
            return TOO_FAR + atoms
        return abs(apart.compound_divergence(*used) - self.target) + atoms

    def _worth(self) -> list[Usage]:
        """The decrease of the loss per use of each phrase in training, in the test and in the rest."""
        atoms = _slope([apart.atom_counts(used) for used in self.used], apart.ATOM_ALPHA)
        worth = [_by_atom(-slope) for slope in atoms]
        if self.loss < TOO_FAR:
            up = 1 if self.compounds < self.target else -1
            compounds = _slope([apart.compound_counts(used) for used in self.used], apart.COMPOUND_ALPHA)
            worth = [atom + _by_compound(up * slope) for atom, slope in zip(worth, compounds, strict=True)]
        return [*worth, np.zeros_like(worth[0])]

    def _best(self, side: int, worth: Usage, number: int) -> Int[np.ndarray, " number"]:
        """The indices, on one side, of the commands of a random pool that are worth most."""
        members = self.sides[side]
        pool = self.rng.choice(len(members), min(len(members), POOL * number), replace=False, shuffle=False)
        conjunction, first, last = (np.asarray(part) for part in language.parts_of(members[pool]))
        value = worth[conjunction, 0, first] + worth[conjunction, 1, last]
        return pool[np.argpartition(-value, number - 1)[:number]]


def _slope(counts: list[Float[np.ndarray, " n"]], alpha: float) -> list[Float[np.ndarray, " n"]]:
    """The derivative of the divergence by each count of the first list and of the second."""
    p, q = counts
    # At a count of zero the derivative is infinite, so half an occurrence is used.
    near_p, near_q = np.maximum(p, 0.5), np.maximum(q, 0.5)
    whole = p.sum() ** alpha * q.sum() ** (1 - alpha)
    shared = np.sum(p**alpha * q ** (1 - alpha)) / whole
    by_p = alpha * (shared / p.sum() - near_p ** (alpha - 1) * q ** (1 - alpha) / whole)
    by_q = (1 - alpha) * (shared / q.sum() - p**alpha * near_q**-alpha / whole)
    return [by_p, by_q]


def _by_compound(slope: Float[np.ndarray, " compounds"]) -> Usage:
    """Slopes of compounds as slopes of the use of phrases."""
    inside = apart.PHRASE_COMPOUNDS.shape[1]
    cells = np.tile(apart.PHRASE_COMPOUNDS @ slope[:inside], (3, 2, 1))
    cells[1:] += slope[inside:].reshape(cells[1:].shape)
    cells[0, 1] = 0  # A phrase alone counts as first.
    return cells


def _by_atom(slope: Float[np.ndarray, " atoms"]) -> Usage:
    """Slopes of atoms as slopes of the use of phrases."""
    cells = np.tile(apart.PHRASE_ATOMS @ slope, (3, 2, 1))
    cells[1:, 0] += slope[: len(language.CONJUNCTIONS), None]
    cells[0, 1] = 0
    return cells
