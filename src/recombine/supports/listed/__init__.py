"""Listed supports: the training combinations as a list, with memory proportional to its length.

`Listed` is the drawn support. `kinds` has the base classes of kinds that make lists, and
`drawing` draws distinct combinations.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32
from scipy import sparse

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.rows import Rows, RowSet, checked_rows, membership
from recombine.supports.base import Sampler, Support

BLOCK = 2**24
"""The number of bytes that a search for interactions works on at a time."""


class ListedSampler(Sampler):
    """Inverts the cumulative weights. Padding repeats the last row and the largest threshold, and is never drawn."""

    rows: Int[Array, "n slots"]
    thresholds: UInt32[Array, " n"]
    count: Int[Array, ""]
    uniform: bool = eqx.field(static=True)

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        if self.uniform:
            index = jax.random.randint(key, (), 0, self.count)
        else:
            # 32-bit integers: the 24 bits of a float would round the shares of a list of 100,000.
            draw = jax.random.bits(key, dtype=jnp.uint32)
            index = jnp.minimum(jnp.searchsorted(self.thresholds, draw, side="right"), self.count - 1)
        return self.rows[index]


class Listed(Support):
    """The combinations in `rows`, drawn uniformly or by `weights`.

    Args:
        space: The space of all combinations.
        rows: The training combinations, each once. `space.row` makes a row.
        weights: How often each row is drawn, relative to the others. Equally often by default.
        reserved: Combinations that are kept for the test and never trained on.
    """

    def __init__(
        self, space: Space, rows: np.ndarray, weights: np.ndarray | None = None, reserved: np.ndarray | None = None
    ) -> None:
        # Lists also come from users' files, so shapes and types are checked here and not by the annotations.
        super().__init__(space, None if reserved is None else checked_rows(space, reserved))
        self.rows = checked_rows(space, rows)
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        if not len(self.rows):
            raise BadInput("A listed support needs at least one combination.")
        if self.weights is not None and (
            self.weights.shape != (len(self.rows),) or not np.isfinite(self.weights).all() or (self.weights <= 0).any()
        ):
            raise BadInput("Sampling weights must be positive numbers, one for each row.")
        self._set = RowSet(self.rows)
        if len(self._set) < len(self.rows):
            raise BadInput("A combination is listed twice.", fix="list it once and give it a larger weight")
        if self.contains(self.reserved).any():
            raise BadInput("A reserved combination is also listed for training.")

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def most_parts(self) -> int:
        return int((self.rows < self.space.width).sum(axis=1).max())

    def contains(self, rows: Rows) -> Bool[np.ndarray, " n"]:
        return self._set.contains(rows)

    @property
    def shares(self) -> Float[np.ndarray, " n"]:
        """The probability of each row."""
        if self.weights is None:
            return np.full(len(self.rows), 1 / len(self.rows))
        relative = self.weights / self.weights.max()
        return relative / relative.sum()

    def sampler(self, pad_to: int | None = None) -> ListedSampler:
        extra = 0 if pad_to is None else pad_to - len(self.rows)
        if extra < 0:
            raise BadInput(f"pad_to={pad_to} is shorter than the list of {len(self.rows)} combinations.")
        most = 2**32 - 1
        thresholds = np.minimum(np.cumsum(self.shares) * 2**32, most).astype(np.uint32)
        return ListedSampler(
            rows=jnp.asarray(np.pad(self.rows, ((0, extra), (0, 0)), mode="edge")),
            thresholds=jnp.asarray(np.pad(thresholds, (0, extra), constant_values=most)),
            count=jnp.asarray(len(self.rows), jnp.int32),
            uniform=self.weights is None,
        )

    def second_moment(self) -> Float[np.ndarray, "width width"]:
        members = membership(self.rows, self.space.width)
        shares = np.repeat(self.shares, np.diff(members.indptr))
        weighted = sparse.csr_array((shares, members.indices, members.indptr), shape=members.shape)
        return (members.T @ weighted).toarray()

    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        missing = np.arange(len(interactions))
        # Blocks of rows bound the memory. An interaction found in one block is not searched for in the next.
        block = max(64, BLOCK // (self.space.width + 1))
        for start in range(0, len(self.rows), block):
            holds = _holds(self.rows[start : start + block], self.space.width)
            chunk = max(1, BLOCK // holds.shape[1])
            pieces = [missing[start : start + chunk] for start in range(0, len(missing), chunk)]
            missing = np.concatenate([missing[:0], *(p[~_met(holds, interactions[p])] for p in pieces)])
        covered = np.ones(len(interactions), bool)
        covered[missing] = False
        return covered


def _holds(rows: Rows, width: int) -> UInt8[np.ndarray, "width bytes"]:
    """For each constituent the rows that contain it, one bit per row."""
    dense = np.zeros((width + 1, len(rows)), bool)
    dense[rows, np.arange(len(rows))[:, None]] = True
    return np.packbits(dense[:width], axis=1)


def _met(
    holds: UInt8[np.ndarray, "width bytes"], interactions: Int[np.ndarray, "m strength"]
) -> Bool[np.ndarray, " m"]:
    """Which interactions occur in some row."""
    together = holds[interactions[:, 0]]
    for column in interactions.T[1:]:
        together &= holds[column]
    return np.any(together, axis=1)
