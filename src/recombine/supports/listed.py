"""A support given by the list of its combinations. Costs memory by the length of the list."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32
from scipy import sparse

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.supports.base import Sampler, Support
from recombine.supports.rows import RowSet

BLOCK = 2**24
"""How many bytes a search for interactions works on at a time."""


class ListedSampler(Sampler):
    """Inverts the cumulative weights. Pads repeat the last row and the largest threshold: they are never drawn."""

    rows: Int[Array, "n slots"]
    thresholds: UInt32[Array, " n"]
    count: Int[Array, ""]
    uniform: bool = eqx.field(static=True)

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        if self.uniform:
            index = jax.random.randint(key, (), 0, self.count)
        else:
            # Whole numbers of 32 bits, as a float's 24 bits would blur the shares of a list of 100,000.
            draw = jax.random.bits(key, dtype=jnp.uint32)
            index = jnp.minimum(jnp.searchsorted(self.thresholds, draw, side="right"), self.count - 1)
        return self.rows[index]


class Listed(Support):
    """The combinations in `rows`, drawn uniformly or by `weights`."""

    def __init__(
        self,
        space: Space,
        rows: np.ndarray,
        weights: np.ndarray | None = None,
        reserved: np.ndarray | None = None,
    ) -> None:
        # Lists come from users' files too, so shapes and kinds are checked here and not by the annotations.
        super().__init__(space, None if reserved is None else _checked(space, reserved))
        self.rows = _checked(space, rows)
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        if not len(self.rows):
            raise BadInput("A listed support needs at least one row.")
        if self.weights is not None and (
            self.weights.shape != (len(self.rows),)
            or not np.isfinite(self.weights).all()
            or (self.weights <= 0).any()
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

    def contains(self, rows: Int[np.ndarray, "n slots"]) -> Bool[np.ndarray, " n"]:
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
        used = self.rows < self.space.width
        parts, starts = self.rows[used], np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        shape = (len(self.rows), self.space.width)
        holds = sparse.csr_array((np.ones(len(parts)), parts, starts), shape=shape)
        weighted = sparse.csr_array((np.repeat(self.shares, np.diff(starts)), parts, starts), shape=shape)
        return (holds.T @ weighted).toarray()

    def covers(self, interactions: Int[np.ndarray, "n strength"]) -> Bool[np.ndarray, " n"]:
        missing = np.arange(len(interactions))
        # Blocks of rows bound the memory, and what an early block meets is not looked for again.
        block = max(64, BLOCK // (self.space.width + 1))
        for start in range(0, len(self.rows), block):
            holds = _holds(self.rows[start : start + block], self.space.width)
            chunk = max(1, BLOCK // holds.shape[1])
            parts = [missing[at : at + chunk] for at in range(0, len(missing), chunk)]
            missing = np.concatenate([missing[:0], *(p[~_met(holds, interactions[p])] for p in parts)])
        covered = np.ones(len(interactions), bool)
        covered[missing] = False
        return covered


def _checked(space: Space, rows: np.ndarray) -> Int[np.ndarray, "n slots"]:
    """The rows as int32, or an error if one is not a combination of the space."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != space.slots or not np.issubdtype(rows.dtype, np.integer):
        raise BadInput(
            f"Combinations must be rows of {space.slots} whole numbers, got {rows.dtype} of shape {rows.shape}.",
            fix="make rows with space.row(constituents)",
        )
    inside = space.contains(rows)
    if not inside.all():
        raise BadInput(f"The row {rows[~inside][0].tolist()} is not a combination of {space!r}.")
    return np.ascontiguousarray(rows, dtype=np.int32)


def _holds(rows: Int[np.ndarray, "n slots"], width: int) -> UInt8[np.ndarray, "width bytes"]:
    """For each constituent the rows that hold it, a bit each."""
    dense = np.zeros((width + 1, len(rows)), bool)
    dense[rows, np.arange(len(rows))[:, None]] = True
    return np.packbits(dense[:width], axis=1)


def _met(
    holds: UInt8[np.ndarray, "width bytes"], interactions: Int[np.ndarray, "m strength"]
) -> Bool[np.ndarray, " m"]:
    """Which interactions have a row that holds all their parts."""
    together = holds[interactions[:, 0]]
    for column in interactions.T[1:]:
        together &= holds[column]
    return np.any(together, axis=1)
