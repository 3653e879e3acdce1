"""The control of `chains`: the answer to each chain is drawn independently, so it does not follow from other chains."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.families.base import Task, combination_key
from recombine.families.chained.chains import Chains, ChainsTeacher
from recombine.language.vocabulary import END, SPECIAL
from recombine.spaces.base import Space


class LookupChainsTeacher(ChainsTeacher):
    """The answer to a chain is drawn from a hash of the chain."""

    key: Array

    def answer(self, task: Task) -> Int[Array, " token"]:
        key = combination_key(self.key, task.combination)
        value = jax.random.randint(key, (), 0, len(self.functions))
        return jnp.stack([SPECIAL + value, jnp.asarray(END, value.dtype)])


class LookupChains(Chains):
    """Like `chains`, but each chain has a random answer: a flat table of as many entries as there are chains."""

    kind: Literal["lookup-chains"] = "lookup-chains"

    def draw(self, space: Space, key: Array) -> LookupChainsTeacher:
        by_function, by_answer = jax.random.split(key)
        chains = super().draw(space, by_function)
        return LookupChainsTeacher(chains.functions, chains.width, chains.rule, by_answer)
