"""Which interactions occur in some allowed combination."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Bool, Int

from recombine.spaces import Space, SubsetSpace
from recombine.spaces.rows import Rows
from recombine.supports.covering.builder import Builder
from recombine.supports.covering.constraints import IN, Rules
from recombine.supports.covering.tally import choices, possible

TOGETHER = 256
"""The number of combinations built at a time."""

TRIES = 3
"""The number of random attempts to complete an interaction before an exact solver decides."""


def coverable(space: Space, strength: int, rules: Rules, rng: np.random.Generator) -> Bool[np.ndarray, "*table"]:
    """The table of `possible`, without what the constraints exclude. Exact.

    Every allowed combination proves that all its interactions are possible. Random combinations prove most. Each
    remaining interaction is fixed and completed, at random where that works and by integer programming otherwise.
    """
    unknown = possible(space, strength)
    if not rules:
        return unknown
    rules.require_satisfiable()
    proof = _Proof(space, strength, unknown)
    builder = Builder(space, rules, rng)
    nothing = np.full((TOGETHER, 1), space.width)
    new = TOGETHER
    while new >= TOGETHER:
        rows, alive = builder.build(nothing)
        new = proof.accept(rows[alive])
    left = proof.left()
    if isinstance(space, SubsetSpace) and space.min_active <= strength:
        # The modules of an interaction alone are also a combination.
        bare = np.full((len(left), space.slots), space.width, np.int32)
        bare[:, :strength] = left
        proof.accept(bare[rules.allowed(bare)])
        left = proof.left()
    for begin in range(0, len(left), TOGETHER):
        _decide(left[begin : begin + TOGETHER], proof, builder)
    return proof.proven


class _Proof:
    """Which interactions are proven possible, and which are not decided yet."""

    def __init__(self, space: Space, strength: int, unknown: Bool[np.ndarray, "*table"]) -> None:
        self.strength = strength
        self.slots = choices(space.slots, strength)
        self.proven = np.zeros_like(unknown)
        self.unknown = unknown

    def accept(self, rows: Rows) -> int:
        """Record allowed combinations. Returns the number of interactions that they newly prove."""
        parts = rows[:, self.slots].reshape(-1, self.strength)
        flat = np.ravel_multi_index(tuple(parts.T), self.unknown.shape)
        flat = np.unique(flat[self.unknown.ravel()[flat]])
        parts = np.stack(np.unravel_index(flat, self.unknown.shape), axis=1)
        self.close(parts)
        for order in itertools.permutations(parts.T):
            self.proven[order] = True
        return len(parts)

    def close(self, parts: Int[np.ndarray, "n strength"]) -> None:
        """Mark these interactions as decided."""
        for order in itertools.permutations(parts.T):
            self.unknown[order] = False

    def left(self) -> Int[np.ndarray, "n strength"]:
        """The undecided interactions, each once."""
        every = np.argwhere(self.unknown)
        return every[(np.diff(every, axis=1) > 0).all(axis=1)]


def _decide(parts: Int[np.ndarray, "n strength"], proof: _Proof, builder: Builder) -> None:
    """Decide which of a few interactions are possible."""
    rules = builder.rules
    state = rules.start(len(parts))
    np.put_along_axis(state, parts, np.int8(IN), axis=1)
    excluded = ~rules.propagate(state)
    proof.close(parts[excluded])
    for _ in range(TRIES):
        parts = parts[proof.unknown[tuple(parts.T)]]
        if not len(parts):
            return
        rows, alive = builder.build(parts)
        proof.accept(rows[alive])
    for interaction in parts[proof.unknown[tuple(parts.T)]]:
        if not proof.unknown[tuple(interaction)]:
            continue
        row = rules.witness(interaction.tolist())
        if row is None:
            proof.close(interaction[None])
        else:
            proof.accept(row[None])
