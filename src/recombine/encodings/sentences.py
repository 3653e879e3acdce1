"""An English sentence about the combination, read by a text encoder that is trained with the model."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt, model_validator

from recombine.encodings.base import Encoder, Encoding, coefficient_law
from recombine.encodings.script import PAD, Ids, Script, script_of
from recombine.encodings.text_reader import TextReader
from recombine.errors import BadInput
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class SentenceEncoder(Encoder):
    """Shows the numbers of the sentence's words, padded at the end."""

    fixed: tuple[Int[Array, " _"], ...]
    """What is said before each factor's phrase, and after the last."""
    phrases: Int[Array, "width longest"]
    """What is said of each constituent, padded."""
    order: tuple[int, ...] = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        parts: list[Array] = []
        for words, factor in zip(self.fixed, self.order, strict=False):
            parts += [words, self.phrases[task.combination[factor]]]
        ids = jnp.concatenate([*parts, self.fixed[-1]])
        # Pads inside the sentence go to its end; words keep their order.
        moved = ids[jnp.argsort(ids == PAD, stable=True)]
        return moved[: self.length].astype(jnp.float32)


class Sentences(Encoding):
    """The model sees a sentence with a phrase for each factor. For product spaces; coefficients are not told."""

    kind: Literal["sentences"] = "sentences"
    width: PositiveInt = 64
    """Numbers in the vector of a word, and in what the model is given."""
    layers: PositiveInt = 1
    """Blocks of the text encoder."""
    heads: PositiveInt = 4
    """Heads of attention; they divide the width."""

    @model_validator(mode="after")
    def _divides(self) -> Sentences:
        if self.width % self.heads:
            raise ValueError(f"heads must divide width, got width={self.width} and heads={self.heads}")
        return self

    def script(self, space: Space, family: Family) -> Script:
        """The words of a space: sentences in Python, and their tokens."""
        if coefficient_law(family) != "k-hot":
            raise BadInput(
                f"Sentences do not tell coefficients; those of this family are {coefficient_law(family)}.",
                fix="family.coefficients=k-hot, or encoding=token-embedding",
            )
        return script_of(space, family)

    def size(self, space: Space, family: Family) -> int:
        return self.script(space, family).length

    def draw(self, space: Space, family: Family, key: Array) -> SentenceEncoder:
        script = self.script(space, family)
        longest = max(map(len, script.phrases))
        table = [_padded(phrase, longest) for phrase in script.phrases]
        return SentenceEncoder(
            fixed=tuple(jnp.array(words, jnp.int32) for words in script.fixed),
            phrases=jnp.array(table, jnp.int32).reshape(space.width, longest),
            order=script.order,
            length=script.length,
        )

    def reader(self, space: Space, family: Family, key: Array) -> TextReader:
        script = self.script(space, family)
        return TextReader.draw(
            len(script.vocabulary), script.length, self.width, self.layers, self.heads, key
        )

    def features(self, space: Space, family: Family) -> int:
        return self.width


def _padded(phrase: Ids, length: int) -> Ids:
    return phrase + (PAD,) * (length - len(phrase))
