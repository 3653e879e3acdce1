"""The result of a coverage-graph audit, as plain records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from recombine._html import card, listing, paragraph, table
from recombine.audit.findings import Finding
from recombine.audit.wording import counted, percent

SHOWN = 5
"""How many rows of each kind a `repr` shows."""


@dataclasses.dataclass(frozen=True)
class AtCutoff:
    """The number of combinations with one cutoff."""

    cutoff: int
    combinations: int
    right: int | None = None
    """How many of them have the implied outcome; None if the true outcomes are unknown."""


@dataclasses.dataclass(frozen=True)
class Implied:
    """A combination that follows from the facts, with the outcome that they imply."""

    combination: tuple[str, ...]
    cutoff: int
    outcome: str | None
    """None where chains of the same strength imply different outcomes."""
    true: str | None = None
    """The outcome in the table of combinations to examine, if it has one."""


@dataclasses.dataclass(frozen=True)
class Uncovered:
    """A combination whose cutoff is below k."""

    combination: tuple[str, ...]
    cutoff: int
    because: str


@dataclasses.dataclass(frozen=True)
class FragmentEvidence:
    """The evidence that a fragment is equivalent to another."""

    fragment: tuple[str, ...]
    contexts: int
    """Contexts that the fragment has in training."""
    shared: int
    """The most contexts that it shares with a fragment that agrees in all of them; 0 if there is none."""
    uncovered: int
    """Uncovered combinations with this fragment."""


@dataclasses.dataclass(frozen=True)
class Collect:
    """An example to collect."""

    combination: tuple[str, ...]
    sure: int
    """Uncovered combinations, itself included, that it covers with any outcome."""
    at_best: int
    """Uncovered combinations that it covers with the best outcome."""
    outcome: str | None
    """The outcome with which it covers most; None if the outcome makes no difference."""


@dataclasses.dataclass(frozen=True)
class SwapFinding:
    """A step of a chain: one fragment is replaced by another."""

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


@dataclasses.dataclass(frozen=True, repr=False)
class CoverageGraphFinding(Finding):
    """The result of a coverage-graph audit. Printing it shows a summary; `record()` is the whole result as plain data."""

    source: str
    rows: int
    examples: int
    """Distinct rows."""
    columns: tuple[str, ...]
    """The columns of a combination."""
    fragments: tuple[tuple[str, ...], ...]
    outcome: str
    sizes: tuple[tuple[int, int], ...]
    """The numbers of fragments and of contexts in training, for each way to cut examples."""
    k: int
    """Combinations with a smaller cutoff count as uncovered."""
    possible: int
    """Combinations that could be examined."""
    looked_at: int
    """Examined combinations that are not in training."""
    trained: int
    """Examined combinations that are in training."""
    cutoffs: tuple[AtCutoff, ...]
    uncovered_count: int
    because: dict[str, int]
    """Uncovered combinations by reason."""
    uncovered: tuple[Uncovered, ...]
    thinnest: tuple[FragmentEvidence, ...]
    """Fragments, least evidence first (of the first way to cut examples)."""
    collect: tuple[Collect, ...]
    chain: Chain | None
    """How the combination with the least evidence is covered."""
    notes: tuple[str, ...]
    implied: tuple[Implied, ...] = ()
    """Covered combinations with their implied outcomes, most evidence first."""

    def _repr_html_(self) -> str:
        pieces = [paragraph(self._covered())]
        pieces.append(listing(f"{reason}: {number:,}" for reason, number in self.because.items()))
        if self.collect:
            rows = [(*each.combination, each.sure, each.at_best) for each in self.collect]
            pieces += [paragraph("Collect next:"), table([*self.columns, "surely covers", "at best"], rows)]
        return card(self._title(), *pieces, listing(self.notes))

    def _title(self) -> str:
        return f"Coverage graph of {Path(self.source).name}: {counted(self.examples, 'fact')}, outcome {self.outcome}"

    def _covered(self) -> str:
        share = percent(1 - self.uncovered_count / max(1, self.looked_at))
        return (
            f"{share} of {counted(self.looked_at, 'untrained combination')} follow from the facts (k = {self.k}); "
            f"{self.uncovered_count:,} do not."
        )

    def _lines(self) -> Iterator[str]:
        yield self._title()
        yield self._covered()
        for reason, number in self.because.items():
            yield f"  {number:,}: {reason}"
        for each in self.collect[:SHOWN]:
            yield f"collect {' + '.join(each.combination)}: surely covers {each.sure}, at best {each.at_best}"
        for note in self.notes[:SHOWN]:
            yield f"note: {note}"
