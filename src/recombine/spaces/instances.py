"""Numbered instances of a problem, without shared constituents."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.spaces.base import Space


class InstanceSpace(Space):
    """`number` instances. The only constituent of a combination is the instance itself."""

    kind: Literal["instances"] = "instances"
    number: int = Field(default=1280, ge=3, le=20_000)
    """The number of instances, for training and test together."""

    @property
    def width(self) -> int:
        return self.number

    @property
    def slots(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return self.number

    def sample(self, key: Array) -> Int[Array, " slots"]:
        return jax.random.randint(key, (1,), 0, self.number)

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> np.ndarray:
        rows = np.asarray(rows)
        return np.asarray(((rows >= 0) & (rows < self.number)).all(axis=1))

    def _rows(self) -> Int[np.ndarray, "size slots"]:
        return np.arange(self.number, dtype=np.int32)[:, None]

    def interactions(self, strength: int) -> int:
        return self.number if strength == 1 else 0

    def list_interactions(self, strength: int) -> Int[np.ndarray, "n strength"]:
        return self._rows() if strength == 1 else np.empty((0, max(0, strength)), np.int32)

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        return np.eye(self.number) / self.number

    @property
    def title(self) -> str:
        return f"{self.number} instances"

    def label(self, constituent: int) -> str:
        if not 0 <= constituent < self.number:
            raise IndexError(f"instance {constituent} of {self.number}")
        return f"instance {constituent + 1}"
