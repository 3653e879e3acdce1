"""Composed random functions, f2(f1(x1, x2), x3): answered at once, or with a chain of thought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, SPECIAL, Vocabulary
from recombine.spaces import ProductSpace, Space
from recombine.supports.hops import INNER, Chain


class HopsTeacher(SequenceTeacher):
    """The functions of one replicate. The support draws the inner ones, because it decides which of their facts are seen."""

    inner: Int[Array, "function token token"]
    last: Int[Array, "*argument"]
    tokens: int = eqx.field(static=True)
    chain: Chain = eqx.field(static=True)
    chain_of_thought: bool = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.tokens * len(row))

    def _inputs(self, task: Task) -> Int[Array, " position"]:
        return task.combination - self.tokens * jnp.arange(len(task.combination))

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return SPECIAL + self._inputs(task)

    def answer(self, task: Task) -> Int[Array, " token"]:
        x = self._inputs(task)
        bridges = [self.inner[0, x[0], x[1]]]
        if self.chain == "three-hop":
            bridges.append(self.inner[1, bridges[0], x[2]])
        arguments = (bridges[-1], x[1], x[2]) if self.chain == "non-tree" else (bridges[-1], x[-1])
        values = [*(bridges if self.chain_of_thought else []), self.last[arguments]]
        return jnp.concatenate([SPECIAL + jnp.stack(values), jnp.array([END])])


class Hops(SequenceFamily):
    """Tokens x1, x2, x3 (and x4), answered by t = f2(f1(x1, x2), x3) or another `chain`. All functions are random.

    Training never shows a single fact of a function, only whole chains.
    """

    kind: Literal["hops"] = "hops"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": {"kind": "product", "factors": {"x1": 20, "x2": 20, "x3": 20}},
        "support": "hops",
        "model": "decoder",
    }
    tokens: PositiveInt = 20
    """Number of tokens."""
    chain: Chain = "two-hop"
    """`three-hop`: t = f3(f2(f1(x1, x2), x3), x4); `non-tree`: t = f2(f1(x1, x2), x2, x3)."""
    chain_of_thought: bool = False
    """Whether an answer states the intermediate values first."""

    def check(self, space: Space) -> None:
        wanted = INNER[self.chain] + 2
        if not isinstance(space, ProductSpace) or space.levels != (self.tokens,) * wanted:
            raise BadInput(
                f"hops with tokens={self.tokens} and chain={self.chain} needs {wanted} factors of {self.tokens} values, got "
                f"{space.title}.",
                fix="change family.tokens, family.chain or the space",
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=tuple(str(number) for number in range(self.tokens)))

    @property
    def longest_prompt(self) -> int:
        return INNER[self.chain] + 2

    @property
    def longest_answer(self) -> int:
        return 2 + (INNER[self.chain] if self.chain_of_thought else 0)

    def draw(self, space: Space, key: Array) -> HopsTeacher:
        by_inner, by_last = jax.random.split(key)
        shape = (INNER[self.chain], self.tokens, self.tokens)
        return self.draw_within(space, jax.random.randint(by_inner, shape, 0, self.tokens), by_last)

    def draw_within(self, space: Space, structure: Any, key: Array) -> HopsTeacher:
        self.check(space)
        arguments = 3 if self.chain == "non-tree" else 2
        last = jax.random.randint(key, (self.tokens,) * arguments, 0, self.tokens)
        return HopsTeacher(structure, last, self.tokens, self.chain, self.chain_of_thought)
