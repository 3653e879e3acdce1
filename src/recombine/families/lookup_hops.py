"""The control of `hops`: the answer to each input is drawn by itself, so that nothing about it follows from other inputs."""

from __future__ import annotations

from typing import Any, Literal

import jax
from jaxtyping import Array, Int

from recombine.families.base import Task
from recombine.families.hops import Hops, HopsTeacher
from recombine.families.vocabulary import SPECIAL
from recombine.spaces.base import Space


class LookupHopsTeacher(HopsTeacher):
    """The answer to an input is drawn from a hash of it; no input is ever listed."""

    key: Array

    def answer(self, task: Task) -> Int[Array, " token"]:
        key = self.key
        for part in task.combination:
            key = jax.random.fold_in(key, part)
        # Before its END stands the answer; what lies in between, if it is said, is as in `hops`.
        return super().answer(task).at[-2].set(SPECIAL + jax.random.randint(key, (), 0, self.tokens))


class LookupHops(Hops):
    """As `hops`, but the last function is of the whole input: what was not trained cannot be known."""

    kind: Literal["lookup-hops"] = "lookup-hops"

    def draw_within(self, space: Space, structure: Any, key: Array) -> LookupHopsTeacher:
        by_last, by_answer = jax.random.split(key)
        own = super().draw_within(space, structure, by_last)
        return LookupHopsTeacher(own.inner, own.last, own.tokens, own.chain, own.thought, by_answer)
