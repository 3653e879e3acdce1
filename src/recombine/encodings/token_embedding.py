"""Tokens for the active constituents and their coefficients, with a learned embedding."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.encodings.base import Embedder, Encoder, Encoding
from recombine.encodings.tokens import TENTHS
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class TokenEncoder(Encoder):
    """The code is constituent, tenths, constituent, tenths, ... in ascending order, padded with (width, 0)."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        constituents = task.combination.astype(task.coefficients.dtype)
        return jnp.stack([constituents, TENTHS * task.coefficients], axis=1).ravel()


class TokenEmbedder(Embedder):
    """Two tables of vectors, for constituents and for coefficients. The vectors of all tokens are concatenated."""

    parts: Float[Array, "part width"]
    """One vector per constituent, and one for the pad."""
    values: Float[Array, "value width"]
    """One vector per number of tenths. Values in between are interpolated."""

    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        parts = jnp.round(code[0::2]).astype(jnp.int32)
        below = jnp.clip(jnp.floor(code[1::2]), 0, TENTHS - 1).astype(jnp.int32)
        share = (code[1::2] - below)[:, None]
        values = (1 - share) * self.values[below] + share * self.values[below + 1]
        return jnp.stack([self.parts[parts], values], axis=1).ravel()


class TokenEmbedding(Encoding):
    """The model sees learned vectors of 2K tokens: the active modules and their coefficients.

    The raw integers of `tokens` as symbols, whose order means nothing. Coefficients must be in [0, 1]; continuous ones are
    interpolated.
    """

    kind: Literal["token-embedding"] = "token-embedding"
    width: PositiveInt = 16
    """Size of the vector of one token."""

    def size(self, space: Space, family: Family) -> int:
        return 2 * space.slots

    def draw(self, space: Space, family: Family, key: Array) -> TokenEncoder:
        return TokenEncoder()

    def embedder(self, space: Space, family: Family, key: Array) -> TokenEmbedder:
        by_part, by_value = jax.random.split(key)
        return TokenEmbedder(
            jax.random.normal(by_part, (space.width + 1, self.width)),
            jax.random.normal(by_value, (TENTHS + 1, self.width)),
        )

    def features(self, space: Space, family: Family) -> int:
        return 2 * space.slots * self.width
