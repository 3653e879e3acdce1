"""Which interactions some allowed combination has."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Bool, Int

from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering_rows import Builder
from recombine.supports.covering_rules import IN, Rules
from recombine.supports.covering_tally import choices, possible

TOGETHER = 256
"""So many combinations are made at a time."""

TRIES = 3
"""So often an interaction is completed at random before it is decided exactly."""


def coverable(
    space: Space, strength: int, rules: Rules, rng: np.random.Generator
) -> Bool[np.ndarray, "*table"]:
    """The table of `possible`, less what the rules exclude. Exact.

    Every allowed combination proves all its interactions. Random ones prove most; what is left is fixed and
    completed, at random while that works and by integer programming where it does not.
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
        # The modules alone are a combination too.
        bare = np.full((len(left), space.slots), space.width, np.int32)
        bare[:, :strength] = left
        proof.accept(bare[rules.allowed(bare)])
        left = proof.left()
    for begin in range(0, len(left), TOGETHER):
        _decide(left[begin : begin + TOGETHER], proof, builder)
    return proof.found


class _Proof:
    """What is known to be coverable, and what is not decided yet."""

    def __init__(self, space: Space, strength: int, unknown: Bool[np.ndarray, "*table"]) -> None:
        self.strength = strength
        self.places = choices(space.slots, strength)
        self.found = np.zeros_like(unknown)
        self.unknown = unknown

    def accept(self, rows: Int[np.ndarray, "n slots"]) -> int:
        """These combinations are allowed. How many interactions that proves."""
        parts = rows[:, self.places].reshape(-1, self.strength)
        flat = np.ravel_multi_index(tuple(parts.T), self.unknown.shape)
        flat = np.unique(flat[self.unknown.ravel()[flat]])
        parts = np.stack(np.unravel_index(flat, self.unknown.shape), axis=1)
        self.close(parts)
        for order in itertools.permutations(parts.T):
            self.found[order] = True
        return len(parts)

    def close(self, parts: Int[np.ndarray, "n strength"]) -> None:
        """These interactions are decided."""
        for order in itertools.permutations(parts.T):
            self.unknown[order] = False

    def left(self) -> Int[np.ndarray, "n strength"]:
        """The interactions that are not decided, each once."""
        every = np.argwhere(self.unknown)
        return every[(np.diff(every, axis=1) > 0).all(axis=1)]


def _decide(parts: Int[np.ndarray, "n strength"], proof: _Proof, builder: Builder) -> None:
    """Decide about a few interactions."""
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
    for one in parts[proof.unknown[tuple(parts.T)]]:
        if not proof.unknown[tuple(one)]:
            continue
        row = rules.witness(one.tolist())
        if row is None:
            proof.close(one[None])
        else:
            proof.accept(row[None])
