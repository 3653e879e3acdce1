"""What a table of facts covers by itself, as plain records."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class AtCutoff:
    """Combinations of one cutoff."""

    cutoff: int
    combinations: int


@dataclasses.dataclass(frozen=True)
class Uncovered:
    """A combination whose cutoff is below the k that was asked for."""

    combination: tuple[str, ...]
    cutoff: int
    because: str


@dataclasses.dataclass(frozen=True)
class FragmentEvidence:
    """How much says that a fragment is like another."""

    fragment: tuple[str, ...]
    contexts: int
    """In so many contexts training has it."""
    shared: int
    """The most contexts that it shares with another fragment and agrees with it on all; 0: there is no such other."""
    uncovered: int
    """Uncovered combinations that have it."""


@dataclasses.dataclass(frozen=True)
class Collect:
    """An example to collect."""

    combination: tuple[str, ...]
    sure: int
    """So many uncovered combinations, itself included, it covers whatever its outcome."""
    at_best: int
    outcome: str | None
    """The outcome with which it covers the most; None if none helps more than another."""


@dataclasses.dataclass(frozen=True)
class SwapFinding:
    """A step of a chain: a fragment for another."""

    columns: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    shared: int


@dataclasses.dataclass(frozen=True)
class Chain:
    """How one combination follows from training."""

    combination: tuple[str, ...]
    cutoff: int
    swaps: tuple[SwapFinding, ...]
    trained: tuple[str, ...]
    outcome: str


@dataclasses.dataclass(frozen=True)
class CoverageGraphFinding:
    """The whole of it."""

    source: str
    rows: int
    examples: int
    """Different rows."""
    columns: tuple[str, ...]
    """Of a combination."""
    fragments: tuple[tuple[str, ...], ...]
    outcome: str
    sizes: tuple[tuple[int, int], ...]
    """Different fragments and different contexts in training, for each way of cutting."""
    k: int
    """Combinations with a smaller cutoff count as uncovered."""
    possible: int
    """Combinations that could be looked at."""
    looked_at: int
    """Those that were and are not in training."""
    trained: int
    """Those that were and are in training."""
    cutoffs: tuple[AtCutoff, ...]
    uncovered_count: int
    because: dict[str, int]
    """Uncovered combinations by reason."""
    uncovered: tuple[Uncovered, ...]
    thinnest: tuple[FragmentEvidence, ...]
    """Fragments with least evidence first (of the first way of cutting)."""
    collect: tuple[Collect, ...]
    chain: Chain | None
    """Of a combination that is covered by least evidence."""
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)
