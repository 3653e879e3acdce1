"""The published splits of SCAN: a list of commands to train on, and the published test as the held-out one."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.spaces import scan_language as language
from recombine.spaces.base import Space
from recombine.spaces.scan import ScanSpace
from recombine.supports.base import SupportKind
from recombine.supports.listed import Listed
from recombine.supports.promise import Promise, whole

Split = Literal["simple", "length", "add-jump", "around-right"]

TRAINED = 0.8
"""The share of all commands that the split `simple` trains on."""

LONGEST = 22
"""The most actions that a command of the split `length` has in training. None has 23; those of 24 to 48 are its test."""

JUMP_SHARE = 0.1
"""How much of the published training lines of `add-jump` is "jump" alone: 1,467 of 14,670 lines, beside one line for each
of 13,203 other commands."""


class ScanSplit(SupportKind):
    """Trains on a published split's training commands, or a part of them; the published test is held out.

    `simple`: 16,728 commands drawn at random, the other 4,182 are the test. `length`: the 16,990 commands of up to 22
    actions, tested on the 3,920 longer ones. `add-jump`: the 13,203 commands without "jump", and "jump" alone, drawn as
    often as its published 1,467 lines say; tested on all 7,706 others with "jump". `around-right`: the 15,225 commands
    without "around right", tested on those 4,476 that have it after walk, look, run or jump and nowhere after "turn". The
    1,209 with "turn around right" are in neither list, as published.
    """

    kind: Literal["scan-split"] = "scan-split"
    split: Split = "simple"
    """Which one. All but `simple` are the same for every seed."""
    share: float = Field(default=1.0, gt=0, le=1)
    """The part of the training commands that is trained on. Less is a part of more; "jump" stays, and as frequent, in
    `add-jump`. The test is the same whatever the share."""

    def obstacle(self, space: Space) -> BadInput | None:
        return not_scan(self.kind, space)

    def check(self, space: Space) -> None:
        self.require_possible(space)

    def length(self, space: Space) -> int:
        always, others, _ = _sides(self.split, 0)
        return len(always) + self._kept(others)

    def _kept(self, others: Int[np.ndarray, "n slots"]) -> int:
        return max(1, round(self.share * len(others)))

    def promises(self, space: Space) -> Promise:
        length = self.length(space)
        if self.split == "add-jump":
            # "jump" has met itself in the other role and nothing else.
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
        # Also where none is there more often than others: so all splits share one compiled program.
        often = len(kept) * JUMP_SHARE / (1 - JUMP_SHARE) / max(1, len(always))
        weights = np.concatenate([np.full(len(always), often), np.ones(len(kept))])
        return Listed(space, np.concatenate([always, kept]), weights, test.copy())


def not_scan(kind: str, space: Space) -> BadInput | None:
    """The obstacle of a kind of support that is for SCAN alone, in any other space."""
    if isinstance(space, ScanSpace):
        return None
    return BadInput(f"{kind} is a split of SCAN, got a space of kind {space.kind!r}.", fix="space=scan")


Sides = tuple[Int[np.ndarray, "always slots"], Int[np.ndarray, "others slots"], Int[np.ndarray, "test slots"]]


@functools.lru_cache(maxsize=16)
def _sides(split: Split, seed: int) -> Sides:
    """What is trained on at every share, what is trained on in part, and the test."""
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


def _holds(rows: Int[np.ndarray, "n slots"], words: set[str]) -> Bool[np.ndarray, " n"]:
    """Which commands have all these words in one of their phrases."""
    phrase = np.array([words <= set(one) for one in language.PHRASES])
    _, first, last = language.parts_of(language.numbers(rows))
    return phrase[first] | phrase[last]
