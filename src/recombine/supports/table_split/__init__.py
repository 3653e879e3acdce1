"""The split of a table of pairs: its training rows, and its other rows as the held-out combinations.

`certificate` says what is known about the split before training.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.spaces import Space, SubsetSpace
from recombine.spaces.pairs import PairSpace
from recombine.supports import Listed, SupportKind
from recombine.supports.certificate import Certificate, certify


class ListedPairs(Listed):
    """Pairs of a table. Only words are parts: the constituents that number pairs count as met with everything."""

    def parts_met(self) -> Float[np.ndarray, "width width"]:
        assert isinstance(self.space, PairSpace)
        moment, first = self.second_moment(), self.space.first_word
        moment[:first, :] = moment[:, :first] = 1
        return moment

    def certificate(self, strengths: tuple[int, ...] = (1, 2, 3)) -> Certificate:
        """What is known about the words of the training inputs, counted by the pairs that have them."""
        return certify(self.words(), tuple(strength for strength in strengths if strength < 3))

    def words(self) -> Listed:
        """The same list as sets of input words, each weighted by its number of pairs."""
        assert isinstance(self.space, PairSpace)
        first, width = self.space.first_word, self.space.width
        sets = np.where(self.rows[:, 2:] < width, self.rows[:, 2:] - first, width - first)
        sets, count = np.unique(sets, axis=0, return_counts=True)
        space = SubsetSpace(modules=width - first, max_active=sets.shape[1])
        return Listed(space, sets.astype(np.int32), count.astype(float))


class TableSplit(SupportKind):
    """Trains on the pairs whose split is `train`, or on a share of them. Pairs of the splits in `test` are held out."""

    kind: Literal["table-split"] = "table-split"
    defined_on = (PairSpace,)
    train: tuple[str, ...] = Field(default=("train",), min_length=1)
    """The names of splits that are trained on."""
    test: tuple[str, ...] = ()
    """The names of splits that are held out; by default all others."""
    share: float = Field(default=1.0, gt=0, le=1)
    """The share of the training pairs that is used. Smaller shares are subsets of larger ones."""

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, PairSpace)
        known = sorted(set(space.pairs.splits))
        for name in (*self.train, *self.test):
            if name not in known:
                return BadInput(
                    f"The table has no split {name!r}; it has {', '.join(known[:20])}.",
                    fix="support.train=... and support.test=...",
                )
        if both := set(self.train) & set(self.test):
            return BadInput(f"The split {min(both)!r} is both trained on and held out.", fix="choose one of the two")
        if not len(self._test(space)):
            return BadInput("No pair is held out.", fix="leave a split out of support.train")
        return None

    def length(self, space: Space) -> int:
        return max(1, round(self.share * len(self._train(space))))

    def _train(self, space: PairSpace | Space) -> Int[np.ndarray, " n"]:
        assert isinstance(space, PairSpace)
        return np.flatnonzero(np.isin(np.array(space.pairs.splits), self.train))

    def _test(self, space: PairSpace) -> Int[np.ndarray, " n"]:
        splits = np.array(space.pairs.splits)
        return np.flatnonzero(np.isin(splits, self.test) if self.test else ~np.isin(splits, self.train))

    def draw(self, space: Space, seed: int) -> ListedPairs:
        self.check(space)
        assert isinstance(space, PairSpace)
        train = np.random.default_rng([seed, 83]).permutation(self._train(space))[: self.length(space)]
        return ListedPairs(space, space.rows_of(np.sort(train)), reserved=space.rows_of(self._test(space)))
