"""The control of `hops`: the answer to each input is drawn independently, so it does not follow from other inputs."""

from __future__ import annotations

from typing import Any, Literal

import jax
from jaxtyping import Array, Int

from recombine.families.base import Task, combination_key
from recombine.families.chained.hops import Hops, HopsTeacher
from recombine.language.vocabulary import SPECIAL
from recombine.spaces.base import Space


class LookupHopsTeacher(HopsTeacher):
    """The answer to an input is drawn from a hash of the input."""

    key: Array

    def answer(self, task: Task) -> Int[Array, " token"]:
        key = combination_key(self.key, task.combination)
        # The answer is the token before END. A chain of thought is the same as in `hops`.
        return super().answer(task).at[-2].set(SPECIAL + jax.random.randint(key, (), 0, self.tokens))


class LookupHops(Hops):
    """Like `hops`, but the last function depends on the whole input: what was not trained cannot be known."""

    kind: Literal["lookup-hops"] = "lookup-hops"

    def draw_within(self, space: Space, structure: Any, key: Array) -> LookupHopsTeacher:
        by_last, by_answer = jax.random.split(key)
        hops = super().draw_within(space, structure, by_last)
        return LookupHopsTeacher(hops.inner, hops.last, hops.tokens, hops.chain, hops.chain_of_thought, by_answer)
