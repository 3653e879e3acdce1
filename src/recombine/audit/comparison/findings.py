"""What a comparison of two audits reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from recombine._html import card, listing, paragraph, table
from recombine.audit.findings import Finding
from recombine.audit.wording import counted, decimal, estimate
from recombine.stats.intervals import Interval

SHOWN = 5
"""How many rows of each kind a `repr` shows."""


@dataclasses.dataclass(frozen=True)
class Change:
    """The mean score of some combinations before and after."""

    name: str
    combinations: int
    """Combinations that both tables score."""
    before: float
    after: float
    difference: Interval | None
    """After minus before, paired by combination; None for a single combination."""
    q: float | None = None
    """The p value of no difference, adjusted for the number of values (Benjamini-Hochberg); None for strata."""

    @property
    def estimate(self) -> float:
        """After minus before."""
        return self.after - self.before


@dataclasses.dataclass(frozen=True)
class ChangedCombination:
    """A combination whose mean score changed."""

    values: tuple[str, ...]
    """One text per slot."""
    before: float
    after: float
    rows_before: int
    rows_after: int

    @property
    def name(self) -> str:
        """The values joined: red + cube."""
        return " + ".join(filter(None, self.values))


@dataclasses.dataclass(frozen=True)
class ScoreComparison:
    """All changes of one score."""

    score: str
    overall: Change
    strata: tuple[Change, ...]
    """By coverage of the old training data; empty if it is unknown."""
    values: tuple[Change, ...]
    """By value of each factor, the largest loss first."""
    solved_at: float | None
    """From this mean score on, a combination counts as solved; None if that is not defined."""
    lost: tuple[ChangedCombination, ...]
    """Combinations that were solved and are not any more, the largest loss first."""
    gained: tuple[ChangedCombination, ...]
    flips_p: float | None
    """The sign test of as many lost as gained combinations; None without either."""
    drops: tuple[ChangedCombination, ...]
    """The largest losses, solved or not."""
    worse: tuple[Change, ...]
    """Strata whose interval lies on the worse side of 0, and values that are worse at a false discovery rate of .1."""
    better: tuple[Change, ...]
    sentence: str
    lower_is_better: bool = False


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Finding):
    """Two audits, paired by combination. Printing it shows a summary; `record()` is the whole result as plain data."""

    old: str
    new: str
    slots: tuple[str, ...]
    shared: int
    """Combinations that both tables score. All differences are over these."""
    only_old: int
    only_new: int
    scores: tuple[ScoreComparison, ...]
    notes: tuple[str, ...]

    def _title(self) -> str:
        return f"{self.old} to {self.new}: {counted(self.shared, 'combination')} scored in both"

    def _repr_html_(self) -> str:
        pieces = []
        for score in self.scores:
            pieces.append(paragraph(score.sentence))
            pieces.append(table(CHANGE_COLUMNS, [change_row(change) for change in (score.overall, *score.strata)]))
            rows = [(each.name, decimal(each.before), decimal(each.after)) for each in score.lost[:SHOWN]]
            if rows:
                pieces += [paragraph("Lost:"), table(["combination", "before", "after"], rows)]
        return card(self._title(), *pieces, listing(self.notes))

    def _lines(self) -> Iterator[str]:
        yield self._title()
        for score in self.scores:
            yield score.sentence
            for change in score.strata:
                yield f"  {change.name}: {decimal(change.before)} to {decimal(change.after)}, {estimate(change.difference)}"
            for each in score.lost[:SHOWN]:
                yield f"  lost: {each.name} ({decimal(each.before)} to {decimal(each.after)})"
        for note in self.notes:
            yield f"note: {note}"


CHANGE_COLUMNS = ["", "combinations", "before", "after", "difference"]


def change_row(change: Change) -> tuple[str, str, str, str, str]:
    """A change as texts, one for each of `CHANGE_COLUMNS`."""
    shown = estimate(change.difference) if change.difference is not None else decimal(change.estimate)
    return change.name, f"{change.combinations:,}", decimal(change.before), decimal(change.after), shown
