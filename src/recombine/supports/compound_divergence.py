"""A split of SCAN by divergence: training and test use the same words as often, and put them together otherwise."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import scan_language as language
from recombine.spaces.base import Space
from recombine.supports import divergence as apart
from recombine.supports.base import SupportKind
from recombine.supports.divergence import Usage
from recombine.supports.listed import Listed
from recombine.supports.scan_split import not_scan

STARTS = 4
"""So many random splits are searched from, and the best end is taken."""

STEPS = 1500
"""How many exchanges a search tries."""

NEAR = 1e-3
"""So near to the target the search ends."""

DOUBLINGS = 9
"""An exchange is of 1, 2, 4 ... commands; there are so many sizes."""

POOL = 8
"""An exchange takes the best of so many times as many commands, drawn at random."""

TOO_FAR = 10.0
"""Added to the loss where the atoms are further apart than allowed."""

TRAIN, TEST, REST = range(3)


class CompoundDivergence(SupportKind):
    """Lists found by a search from the seed. What it reached is in the certificate (`scan_certificate`).

    After the maximum compound divergence splits of Keysers et al. 2020. By default half of all commands are used, four
    fifths of them to train on, so that there is room to choose; the other half is in neither list.
    """

    kind: Literal["compound-divergence"] = "compound-divergence"
    target: float = Field(default=1.0, ge=0, le=1)
    """The compound divergence to come as near to as can be: 0 for as low, 1 for as high as possible."""
    atom_limit: float = Field(default=0.02, gt=0, le=1)
    """The atom divergence stays at or below this."""
    train: PositiveInt = 8365
    """How many commands are trained on."""
    test: int = Field(default=2090, ge=2)
    """How many commands are held out."""

    def obstacle(self, space: Space) -> BadInput | None:
        return not_scan(self.kind, space)

    def check(self, space: Space) -> None:
        self.require_possible(space)
        if self.train + self.test > space.size:
            raise BadInput(
                f"train={self.train} and test={self.test} are more than the {space.size} commands of SCAN.",
                fix="fewer of one of them",
            )

    def length(self, space: Space) -> int:
        return self.train

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        train, test = _searched(self.train, self.test, self.target, self.atom_limit, seed)
        # All as often, and said so: thus it shares its compiled program with the published splits.
        return Listed(space, train.copy(), np.ones(len(train)), test.copy())


@functools.lru_cache(maxsize=32)
def _searched(
    train: int, test: int, target: float, atom_limit: float, seed: int
) -> tuple[Int[np.ndarray, "train slots"], Int[np.ndarray, "test slots"]]:
    """The rows to train on and to test on."""
    found = None
    for start in range(STARTS):
        search = _Search(train, test, target, atom_limit, np.random.default_rng([seed, 43, start]))
        for _ in range(STEPS):
            if search.off <= NEAR:
                break
            search.step()
        if found is None or search.off < found.off:
            found = search
        if found.off <= NEAR:
            break
    if found is None or not np.isfinite(found.off):
        raise BadInput(
            f"No split with an atom divergence of at most {atom_limit} was found.",
            fix="a larger atom_limit, or longer lists",
        )
    rows = [np.asarray(language.rows_of(np.sort(found.sides[side]))) for side in (TRAIN, TEST)]
    return rows[TRAIN], rows[TEST]


class _Search:
    """Exchanges commands between training, test and neither, and keeps what brings the loss down."""

    def __init__(
        self, train: int, test: int, target: float, atom_limit: float, rng: np.random.Generator
    ) -> None:
        self.target, self.atom_limit, self.rng = target, atom_limit, rng
        order = rng.permutation(language.SIZE)
        self.sides = [side.copy() for side in np.split(order, [train, train + test])]
        used = [apart.usage_of(self.sides[side]) for side in (TRAIN, TEST)]
        self._keep(used, self._loss(used))

    def _keep(self, used: list[Usage], loss: float) -> None:
        self.used, self.loss = used, loss
        self.compounds = apart.compound_divergence(*used)
        self.off = abs(self.compounds - self.target) if loss < TOO_FAR else float("inf")
        """How far from the target the compounds are; infinitely far where the atoms are too far apart."""
        self.worth = self._worth()

    def step(self) -> None:
        """Try one exchange: commands that are drawn at random, of which the steepest are taken."""
        one, other = ((TRAIN, TEST), (TRAIN, REST), (TEST, REST))[self.rng.integers(3)]
        number = min(2 ** int(self.rng.integers(DOUBLINGS)), len(self.sides[one]), len(self.sides[other]))
        if not number:
            return
        going = self._best(one, self.worth[other] - self.worth[one], number)
        coming = self._best(other, self.worth[one] - self.worth[other], number)
        moved = apart.usage_of(self.sides[other][coming]) - apart.usage_of(self.sides[one][going])
        tried = list(self.used)
        for side, gain in ((one, moved), (other, -moved)):
            if side != REST:
                tried[side] = tried[side] + gain
        loss = self._loss(tried)
        if loss < self.loss:
            self._keep(tried, loss)
            left = self.sides[one][going]
            self.sides[one][going] = self.sides[other][coming]
            self.sides[other][coming] = left

    def _loss(self, used: list[Usage]) -> float:
        """The distance to the target and that of the atoms, which keeps the search off its limit."""
        atoms = apart.atom_divergence(*used)
        if atoms > self.atom_limit:
            return TOO_FAR + atoms
        return abs(apart.compound_divergence(*used) - self.target) + atoms

    def _worth(self) -> list[Usage]:
        """By how much the loss falls with the use of each phrase in training, in the test and in neither."""
        atoms = _slope([apart.atom_counts(used) for used in self.used], apart.ATOM_ALPHA)
        worth = [_by_atom(-slope) for slope in atoms]
        if self.loss < TOO_FAR:
            up = 1 if self.compounds < self.target else -1
            compounds = _slope([apart.compound_counts(used) for used in self.used], apart.COMPOUND_ALPHA)
            worth = [one + _by_compound(up * slope) for one, slope in zip(worth, compounds, strict=True)]
        return [*worth, np.zeros_like(worth[0])]

    def _best(self, side: int, worth: Usage, number: int) -> Int[np.ndarray, " number"]:
        """The places on a side of those commands, of a random pool, that are worth most."""
        members = self.sides[side]
        pool = self.rng.choice(len(members), min(len(members), POOL * number), replace=False, shuffle=False)
        conjunction, first, last = (np.asarray(part) for part in language.parts_of(members[pool]))
        value = worth[conjunction, 0, first] + worth[conjunction, 1, last]
        return pool[np.argpartition(-value, number - 1)[:number]]


def _slope(counts: list[Float[np.ndarray, " n"]], alpha: float) -> list[Float[np.ndarray, " n"]]:
    """By how much the divergence grows with each count, of the first list and of the second."""
    p, q = counts
    # Half an occurrence where there is none: the true slope has no end there.
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
    cells[0, 1] = 0  # Alone, a phrase is a first.
    return cells


def _by_atom(slope: Float[np.ndarray, " atoms"]) -> Usage:
    """Slopes of atoms as slopes of the use of phrases."""
    cells = np.tile(apart.PHRASE_ATOMS @ slope, (3, 2, 1))
    cells[1:, 0] += slope[: len(language.CONJUNCTIONS), None]
    cells[0, 1] = 0
    return cells
