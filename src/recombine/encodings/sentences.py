"""An English sentence about the combination, read by a text encoder that is trained with the model."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from recombine.encodings.base import Encoder
from recombine.encodings.script import PAD, Script, script_of
from recombine.encodings.text_encoder import TextEncoder, TextEncoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class SentenceEncoder(Encoder):
    """The code is the tokens of the sentence, padded at the end."""

    fixed: tuple[Int[Array, " _"], ...]
    """The fixed words before each factor's phrase, and after the last."""
    phrases: Int[Array, "width longest"]
    """The phrase of each constituent, padded."""
    order: tuple[int, ...] = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        parts: list[Array] = []
        for words, factor in zip(self.fixed, self.order, strict=False):
            parts += [words, self.phrases[task.combination[factor]]]
        tokens = jnp.concatenate([*parts, self.fixed[-1]])
        # Pads inside the sentence move to its end; words keep their order.
        sentence = tokens[jnp.argsort(tokens == PAD, stable=True)]
        return sentence[: self.length].astype(jnp.float32)


class Sentences(TextEncoding):
    """The model sees a sentence with a phrase for each factor. For product spaces without coefficients."""

    kind: Literal["sentences"] = "sentences"

    def script(self, space: Space, family: Family) -> Script:
        """The sentences of a space and their tokens."""
        self.refuse_coefficients(family, "family.coefficients=k-hot")
        return script_of(space, family)

    def size(self, space: Space, family: Family) -> int:
        return self.script(space, family).length

    def draw(self, space: Space, family: Family, key: Array) -> SentenceEncoder:
        script = self.script(space, family)
        longest = max(map(len, script.phrases))
        table = [phrase + (PAD,) * (longest - len(phrase)) for phrase in script.phrases]
        return SentenceEncoder(
            fixed=tuple(jnp.array(words, jnp.int32) for words in script.fixed),
            phrases=jnp.array(table, jnp.int32).reshape(space.width, longest),
            order=script.order,
            length=script.length,
        )

    def embedder(self, space: Space, family: Family, key: Array) -> TextEncoder:
        script = self.script(space, family)
        return TextEncoder.draw(len(script.vocabulary), script.length, self.width, self.layers, self.heads, key)
