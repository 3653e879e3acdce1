"""Tokens for the active constituents and their coefficients, read through a learned embedding."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.encodings.base import Encoder, Encoding, Reader
from recombine.encodings.tokens import TENTHS
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class TokenEncoder(Encoder):
    """Shows part, tenths, part, tenths, ... of the active parts in rising order, padded with (width, 0)."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        parts = task.combination.astype(task.coefficients.dtype)
        return jnp.stack([parts, TENTHS * task.coefficients], axis=1).ravel()


class TokenReader(Reader):
    """Two tables, for parts and for coefficients. The vectors of all tokens stand side by side."""

    parts: Float[Array, "part width"]
    """One for each constituent, and one for the pad."""
    values: Float[Array, "value width"]
    """One for each number of tenths. What lies between two of them is read as their mixture."""

    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        parts = jnp.round(code[0::2]).astype(jnp.int32)
        below = jnp.clip(jnp.floor(code[1::2]), 0, TENTHS - 1).astype(jnp.int32)
        share = (code[1::2] - below)[:, None]
        values = (1 - share) * self.values[below] + share * self.values[below + 1]
        return jnp.stack([self.parts[parts], values], axis=1).ravel()


class TokenEmbedding(Encoding):
    """The model sees learned vectors of 2K tokens: the active modules and their coefficients.

    This is what the raw integers of `tokens` stand for: symbols, whose order means nothing. Coefficients must be
    in [0, 1]; continuous ones are read by interpolation.
    """

    kind: Literal["token-embedding"] = "token-embedding"
    width: PositiveInt = 16
    """Numbers in the vector of one token."""

    def size(self, space: Space, family: Family) -> int:
        return 2 * space.slots

    def draw(self, space: Space, family: Family, key: Array) -> TokenEncoder:
        return TokenEncoder()

    def reader(self, space: Space, family: Family, key: Array) -> TokenReader:
        by_part, by_value = jax.random.split(key)
        return TokenReader(
            jax.random.normal(by_part, (space.width + 1, self.width)),
            jax.random.normal(by_value, (TENTHS + 1, self.width)),
        )

    def features(self, space: Space, family: Family) -> int:
        return 2 * space.slots * self.width
