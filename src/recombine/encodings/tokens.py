"""Integers: each constituent's number, then its coefficient in tenths."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding, coefficient_law
from recombine.errors import BadInput
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space

TENTHS = 10
"""A coefficient is written as a whole number of tenths: 6 is .6."""


class TokensEncoder(Encoder):
    """The code is 0, tenths of constituent 0, 1, tenths of constituent 1, ..."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        # Rounded, because ten times .6 may not be 6 in floating point.
        values = jnp.round(TENTHS * task.vector)
        numbers = jnp.arange(len(values), dtype=values.dtype)
        return jnp.stack([numbers, values], axis=1).ravel()


class Tokens(Encoding):
    """The model sees 2M raw integers, the published "language".

    Published: numbers and coefficients of the modules, interleaved, as 2M integers. Not published: their order and unit.
    Here every module has a fixed place and absent modules have coefficient 0 (otherwise z would not be linear in the code,
    but the published linear decoder is perfect), and the unit is a tenth.
    """

    kind: Literal["tokens"] = "tokens"

    def size(self, space: Space, family: Family) -> int:
        if coefficient_law(family) == "continuous":
            raise BadInput(
                "The encoding 'tokens' writes coefficients as whole tenths; those of this family are continuous.",
                fix="encoding=identity, or family.coefficients=discrete",
            )
        return 2 * space.width

    def draw(self, space: Space, family: Family, key: Array) -> TokensEncoder:
        return TokensEncoder()
