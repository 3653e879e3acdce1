"""The control of SCAN: every command is answered by the actions of another one, drawn at random."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.families.base import Task
from recombine.families.scan import Scan, ScanTeacher, said
from recombine.spaces import scan_language as language
from recombine.spaces.base import Space


class LookupScanTeacher(ScanTeacher):
    """Which command's actions answer each: a permutation, so answers are as long and as frequent as in SCAN."""

    other: Int[Array, " command"]

    def answer(self, task: Task) -> Int[Array, " token"]:
        number = self.other[jnp.asarray(language.numbers(task.combination))]
        return said(jnp.asarray(language.rows_of(number)))


class LookupScan(Scan):
    """As `scan`, but nothing about an answer follows from the parts of its command: what was not trained cannot be known."""

    kind: Literal["lookup-scan"] = "lookup-scan"

    def draw(self, space: Space, key: Array) -> LookupScanTeacher:
        self.check(space)
        return LookupScanTeacher(jax.random.permutation(key, language.SIZE))
