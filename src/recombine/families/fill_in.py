"""Fill in the missing word of a sentence: masked-language pretraining on the grammar of odd-one-out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.odd_one_out.items import LENGTH, MASK, Sentences
from recombine.spaces import ProductSpace, Space

SPACE = ProductSpace(factors=(("gap", tuple(f"word {place}" for place in range(1, LENGTH + 1))), ("part", ("a", "b"))))
"""The place of the gap. The second factor changes nothing: some questions must be held out."""


class FillInTeacher(Teacher):
    """Draws sentences that obey both rules, with a gap."""

    sentences: Sentences = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, SPACE.width)

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        place = task.combination[0]
        sentences = jax.vmap(lambda own: self.sentences.draw(jnp.ones(2, bool), own))(jax.random.split(key, samples))
        targets = jax.nn.one_hot(sentences[:, place].astype(int), self.sentences.vocabulary)
        return Batch(inputs=sentences.at[:, place].set(MASK), targets=targets, mask=jnp.ones(samples))


class FillIn(ClassificationFamily):
    """Sentences of the grammar of `odd-one-out` with one word missing: which one?

    Most words can be guessed only by chance; the number of a verb and of the last determiner follows from other words.
    """

    kind: Literal["fill-in"] = "fill-in"
    defaults: ClassVar[Mapping[str, Any]] = {
        **ClassificationFamily.defaults,
        "space": SPACE.model_dump(mode="json"),
        "support": {"kind": "given", "combinations": [(f"word {place}", "a") for place in range(1, LENGTH + 1)]},
        "encoding": "unsaid",
        "model": "word-filler",
        "recipe": {"kind": "fast", "tasks": 128, "samples": 1, "steps": 500},
    }
    words: int = Field(default=12, ge=2)
    """Nouns, verbs and adjectives of the grammar, each."""

    def check(self, space: Space) -> None:
        if space != SPACE:
            raise BadInput(
                f"The family {self.kind!r} needs its own space of gaps, got {space.title}.", fix="leave the space out"
            )

    @property
    def input_size(self) -> int:
        return LENGTH

    @property
    def output_size(self) -> int:
        return Sentences(self.words).vocabulary

    @property
    def horizon(self) -> int:
        return 1

    def draw(self, space: Space, key: Array) -> FillInTeacher:
        return FillInTeacher(Sentences(self.words))
