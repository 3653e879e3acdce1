"""The published splits of SCAN: training commands, and the published test as the held-out commands.

`certificate` says what is known about a split before training.
"""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field

from recombine.spaces.base import Space
from recombine.spaces.rows import Rows
from recombine.spaces.scan import ScanSpace, language
from recombine.supports import Listed, SupportKind
from recombine.supports.certificate import Promise, whole

Split = Literal["simple", "length", "add-jump", "around-right"]

TRAINED = 0.8
"""The share of all commands that the split `simple` trains on."""

LONGEST = 22
"""The most actions of a training command in the split `length`. No command has 23; those with 24 to 48 are its test."""

JUMP_SHARE = 0.1
"""The share of "jump" alone in the published training lines of `add-jump`: 1,467 of 14,670 lines. The others are one
line for each of 13,203 commands."""


class ScanSplit(SupportKind):
    """Trains on the training commands of a published split, or on a share of them. The published test is held out.

    - `simple`: 16,728 random commands; the other 4,182 are the test.
    - `length`: the 16,990 commands of up to 22 actions; the 3,920 longer ones are the test.
    - `add-jump`: the 13,203 commands without "jump", and "jump" alone with the weight of its published 1,467 lines. The
      test is all 7,706 other commands with "jump".
    - `around-right`: the 15,225 commands without "around right". The test is the 4,476 commands that have it after walk,
      look, run or jump and never after "turn". The 1,209 commands with "turn around right" are in neither list, as
      published.
    """

    kind: Literal["scan-split"] = "scan-split"
    defined_on = (ScanSpace,)
    split: Split = "simple"
    """The split. All splits except `simple` are the same for every seed."""
    share: float = Field(default=1.0, gt=0, le=1)
    """The share of the training commands that is used. Smaller shares are subsets of larger ones. In `add-jump` the command
    "jump" always stays, with the same frequency. The test does not depend on the share."""

    def length(self, space: Space) -> int:
        always, others, _ = _sides(self.split, 0)
        return len(always) + self._kept(others)

    def _kept(self, others: Rows) -> int:
        return max(1, round(self.share * len(others)))

    def promises(self, space: Space) -> Promise:
        length = self.length(space)
        if self.split == "add-jump":
            # "jump" occurs only with itself in the other role.
            full = self.share == 1
            return Promise(
                complete=full or None,
                connected=False,
                groups=2 if full else None,
                unseen=0 if full else None,
                size=length,
            )
        return whole(length) if self.share == 1 and self.split != "simple" else Promise(size=length)

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        always, others, test = _sides(self.split, seed if self.split == "simple" else 0)
        order = np.random.default_rng([seed, 41]).permutation(len(others))
        kept = others[order[: self._kept(others)]]
        # Weights are written out for every split, so that all splits share one compiled program.
        often = len(kept) * JUMP_SHARE / (1 - JUMP_SHARE) / max(1, len(always))
        weights = np.concatenate([np.full(len(always), often), np.ones(len(kept))])
        return Listed(space, np.concatenate([always, kept]), weights, test.copy())


Sides = tuple[Int[np.ndarray, "always slots"], Int[np.ndarray, "others slots"], Int[np.ndarray, "test slots"]]


@functools.lru_cache(maxsize=16)
def _sides(split: Split, seed: int) -> Sides:
    """The commands trained on at every share, those of which a share is trained on, and the test."""
    rows = ScanSpace().enumerate()
    train = test = always = np.zeros(len(rows), bool)
    if split == "simple":
        train = np.random.default_rng([seed, 40]).permutation(len(rows)) < round(TRAINED * len(rows))
        test = ~train
    elif split == "length":
        train = language.action_counts(rows) <= LONGEST
        test = ~train
    elif split == "add-jump":
        has_jump = _holds(rows, {"jump"})
        always = language.numbers(rows) == language.PHRASES.index(("jump",))
        train, test = ~has_jump, has_jump & ~always
    elif split == "around-right":
        has_it = _holds(rows, {"around", "right"})
        train, test = ~has_it, has_it & ~_holds(rows, {"turn", "around", "right"})
    return rows[always], rows[train], rows[test]


def _holds(rows: Rows, words: set[str]) -> Bool[np.ndarray, " n"]:
    """Which commands have all these words in one of their phrases."""
    phrase = np.array([words <= set(phrase) for phrase in language.PHRASES])
    _, first, last = language.parts_of(language.numbers(rows))
    return phrase[first] | phrase[last]
