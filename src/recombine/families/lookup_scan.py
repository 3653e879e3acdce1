"""The control of SCAN: the answer to each command is the actions of another command, drawn at random."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.families.base import Task
from recombine.families.scan import Scan, ScanTeacher, action_tokens
from recombine.spaces.base import Space
from recombine.spaces.scan import language


class LookupScanTeacher(ScanTeacher):
    """Commands and answers are paired by a random permutation, so answers have the same lengths and frequencies as in SCAN."""

    other: Int[Array, " command"]

    def answer(self, task: Task) -> Int[Array, " token"]:
        number = self.other[jnp.asarray(language.numbers(task.combination))]
        return action_tokens(jnp.asarray(language.rows_of(number)))


class LookupScan(Scan):
    """Like `scan`, but an answer does not follow from the words of its command: what was not trained cannot be known."""

    kind: Literal["lookup-scan"] = "lookup-scan"

    def draw(self, space: Space, key: Array) -> LookupScanTeacher:
        self.check(space)
        return LookupScanTeacher(jax.random.permutation(key, language.SIZE))
