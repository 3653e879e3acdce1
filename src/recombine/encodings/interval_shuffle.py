"""The unit interval is cut into intervals that are permuted, so that near coefficients have distant codes."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.encodings.base import Encoder, Encoding
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space

NEAR = 1e-6
"""A number this little below a cut counts as the cut: .7 is slightly less than 7/10 in floating point."""


class IntervalShuffleEncoder(Encoder):
    """Moves each coordinate to the new place of its interval and keeps its offset in the interval."""

    places: Int[Array, " place"]
    """The new place of each interval. The last entry is for exact ones, which stay."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return self.forward(task.vector)

    def forward(self, vector: Float[Array, " width"]) -> Float[Array, " width"]:
        """The code of a task vector, whose coordinates are in [0, 1]."""
        intervals = len(self.places) - 1
        old = jnp.clip(jnp.floor((vector + NEAR) * intervals), 0, intervals).astype(jnp.int32)
        # Written as a sum, so that rounding does not change ones and numbers that stay.
        return vector + (self.places[old] - old) / intervals


class IntervalShuffle(Encoding):
    """The model sees every coordinate of z through one permutation of the intervals of [0, 1]; exact ones stay."""

    kind: Literal["interval-shuffle"] = "interval-shuffle"
    intervals: int = Field(default=10, ge=2, le=1000)
    """Number of intervals of [0, 1]."""

    def draw(self, space: Space, family: Family, key: Array) -> IntervalShuffleEncoder:
        places = jax.random.permutation(key, self.intervals)
        return IntervalShuffleEncoder(jnp.append(places, self.intervals))
