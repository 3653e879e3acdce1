"""Which of four items breaks a rule? Two rules, on sentences of a made-up grammar or on small pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.odd_one_out.items import Pictures, Sentences
from recombine.spaces import ProductSpace, Space

RULES = ("first", "second")
BOTH, MIXED = "obey both rules", "may break the other rule"
ITEMS = 4
SPACE = ProductSpace(factors=(("odd one breaks", RULES), ("others", (BOTH, MIXED))))
"""The questions: which rule the odd item breaks, and whether the other items obey both rules or only this one."""


class OddOneOutTeacher(Teacher):
    """Draws four items of which one breaks a rule that the others obey. Nothing is fixed in a replicate but the kind of item."""

    items: Sentences | Pictures = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, SPACE.width)

    def obeyed(self, task: Task, place: Int[Array, ""], key: Array) -> Bool[Array, "item rule"]:
        """Which rules each of the four items obeys. The odd one is at `place`."""
        rule, mixed = task.combination[0], task.combination[1] == 3
        free = jax.random.bernoulli(key, 0.5, (ITEMS,)) | ~mixed
        odd = jnp.arange(ITEMS) == place
        return jnp.stack([jnp.where(rule == number, ~odd, free) for number in range(2)], axis=1)

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        def example(key: Array) -> tuple[Array, Array]:
            by_place, by_rules, by_items = jax.random.split(key, 3)
            place = jax.random.randint(by_place, (), 0, ITEMS)
            obeyed = self.obeyed(task, place, by_rules)
            items = jax.vmap(self.items.draw)(obeyed, jax.random.split(by_items, ITEMS))
            return items.ravel(), jax.nn.one_hot(place, ITEMS)

        inputs, targets = jax.vmap(example)(jax.random.split(key, samples))
        return Batch(inputs=inputs, targets=targets, mask=jnp.ones(samples))


class OddOneOut(ClassificationFamily):
    """Four items, of which one breaks one of two rules that the other three obey. Chance is .25.

    In sentences the first rule is that the verb agrees in number with its subject, past another noun; the second, that the last
    determiner agrees with its noun, past an adjective. In pictures the first rule is that two things have the same shape; the
    second, that they have the same size. A combination says which rule the odd one breaks, and whether the other items obey
    both rules or may break the other one: without this, one rule could be solved by way of the other.

    The items show the combination, so the encoding must not: use `unsaid`.
    """

    kind: Literal["odd-one-out"] = "odd-one-out"
    defaults: ClassVar[Mapping[str, Any]] = {
        **ClassificationFamily.defaults,
        "space": SPACE.model_dump(mode="json"),
        "support": {"kind": "given", "combinations": [(rule, BOTH) for rule in RULES]},
        "encoding": "unsaid",
        "model": "comparison",
        "recipe": {"kind": "fast", "tasks": 64, "samples": 1, "steps": 500},
    }
    items: Literal["sentences", "pictures"] = "sentences"
    """What is compared."""
    words: int = Field(default=12, ge=2)
    """Nouns, verbs and adjectives of the grammar, each."""
    pixels: Literal[16, 32] = 16
    """Pixels along each side of a picture."""

    def check(self, space: Space) -> None:
        if space != SPACE:
            raise BadInput(
                f"The family {self.kind!r} needs its own space of questions, got {space.title}.",
                fix="leave the space out",
            )

    @property
    def source(self) -> Sentences | Pictures:
        """What draws an item that obeys given rules."""
        return Sentences(self.words) if self.items == "sentences" else Pictures(self.pixels)

    @property
    def input_size(self) -> int:
        return ITEMS * self.source.size

    @property
    def output_size(self) -> int:
        return ITEMS

    @property
    def horizon(self) -> int:
        return 1

    def draw(self, space: Space, key: Array) -> OddOneOutTeacher:
        return OddOneOutTeacher(self.source)
