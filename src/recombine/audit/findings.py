"""What an audit reports: plain records, each number with its interval and the name of its method."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from recombine._html import card, listing, paragraph, table
from recombine.audit.scales import UNKNOWN, Scale
from recombine.audit.value_findings import (
    Deviation as Deviation,
    EffectsFinding as EffectsFinding,
    FactorEffect as FactorEffect,
    Link as Link,
    Slice as Slice,
)
from recombine.audit.wording import counted, estimate, large, shown
from recombine.stats.intervals import Interval

SCORES_SHOWN, ADVICE_SHOWN, NOTES_SHOWN = 2, 3, 3
"""How much of an audit its `repr` shows."""


class Finding:
    """A result that prints a summary of itself. Its subclasses are dataclasses with `_lines`."""

    def record(self) -> dict[str, Any]:
        """The whole result as plain data, as the command prints it with `--json`."""
        return dataclasses.asdict(cast(Any, self))

    def __repr__(self) -> str:
        """A summary that fits a screen."""
        return shown(self._lines())

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class SupportFinding:
    """What the training combinations cover of the evaluated ones."""

    size: int
    """Training combinations."""
    unseen: tuple[str, ...]
    """Values that were evaluated but never trained on."""
    unmet: tuple[tuple[str, str], ...]
    """Evaluated pairs of values that never met in training, lowest score first; the first few of them."""
    unmet_count: int
    groups: tuple[tuple[str, ...], ...]
    """Groups of values that never share a training combination, largest first."""
    pair_coverage: float
    """The share of all pairs of values (of different slots) that met in training."""
    difference: dict[int, float]
    """Set-difference coverage by strength: the share of evaluated t-way interactions that training lacks."""
    sentences: tuple[str, ...]
    """The same in words."""
    possible_pairs: int = 0
    """The number of pairs that can exist; `pair_coverage` is a share of these."""
    single: tuple[str, ...] = ()
    """Evaluated values with a single trained combination, worst score first."""
    asked: tuple[tuple[str, str], ...] = ()
    """Pairs that never occur although both values are common, so that they may be impossible; the first few of them."""
    asked_count: int = 0


@dataclasses.dataclass(frozen=True)
class Stratum:
    """Combinations with the same coverage: trained, all pairs met, some pairs unmet, a part unseen."""

    name: str
    combinations: int
    rows: int
    score: Interval | None
    """Mean score over combinations; None if a single combination allows no interval."""


@dataclasses.dataclass(frozen=True)
class GapFinding:
    """Trained against held-out combinations."""

    strata: tuple[Stratum, ...]
    raw: Interval | None
    """Mean score of trained combinations minus that of held-out ones."""
    adjusted: Interval | None
    """The same with constituents held constant. Observational: training combinations were not chosen at random."""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Identification:
    """Whether a table can separate the effects of constituents from those of combinations."""

    combinations: int
    parameters: int
    """Of the additive model: an intercept, and for each slot its number of values minus one."""
    residual: int
    """Combinations minus the rank of the additive design: the degrees of freedom that can show an interaction."""
    connected: int
    """The number of groups of values that never meet in the table."""
    replicates: float
    """The median number of rows of a combination."""
    identified: bool
    reasons: tuple[str, ...]
    """Why not, in sentences; empty if identified."""
    advice: tuple[str, ...]
    """What to collect to make it identified: sentences with numbers."""
    collect: tuple[tuple[str, ...], ...] = ()
    """Combinations to collect, as labels."""
    rank: int = 0
    """The rank of the additive design."""

    @classmethod
    def left_out(cls, reason: str) -> Identification:
        """The question was not asked."""
        return cls(0, 0, 0, 0, 0.0, False, (reason,), ())


@dataclasses.dataclass(frozen=True)
class Fit:
    """Crossed random effects under one link."""

    link: Link
    part_variance: dict[str, float]
    """Variance between the values of each slot."""
    combination_variance: Interval
    p: float
    """Of no combination variance, by parametric bootstrap."""
    method: str


@dataclasses.dataclass(frozen=True)
class PartsFinding:
    """Do scores follow from the constituents alone, or do combinations matter beyond them?"""

    identification: Identification
    fits: tuple[Fit, ...] = ()
    interaction: bool | None = None
    """Whether every link rejects additivity; None if the table does not identify it."""
    hardest_parts: tuple[Deviation, ...] = ()
    hardest_pairs: tuple[Deviation, ...] = ()
    verdict: str = ""
    """One sentence."""
    easiest_pairs: tuple[Deviation, ...] = ()
    """Pairs that score better than their values predict: possibly memorised."""
    notes: tuple[str, ...] = ()
    """Limits of the answer: a part of the table, or few degrees of freedom."""
    easiest_parts: tuple[Deviation, ...] = ()
    """Values that score better than the average of their factor; of two values only the harder one is named."""


@dataclasses.dataclass(frozen=True)
class Site:
    """How well a factor can be decoded from one layer."""

    layer: str
    factor: str
    score: Interval
    """Accuracy over held-out combinations, balanced over values."""
    chance: float
    control: float
    """The accuracy on a control task: values assigned to combinations at random."""
    selectivity: float
    """Accuracy minus control."""


@dataclasses.dataclass(frozen=True)
class DecodabilityFinding:
    """What can be decoded from the activations."""

    sites: tuple[Site, ...]
    chosen: dict[str, str]
    """The layer of each factor, chosen on other combinations than those it is scored on."""
    relation: Interval | None
    """Rank correlation of a combination's decodability with its score, within coverage strata."""
    note: str = ""
    chosen_score: dict[str, Interval] = dataclasses.field(default_factory=dict)
    """Accuracy of each factor with the layer chosen anew in each fold on other combinations: no selection bias."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do, and the rule that says so."""

    rule: str
    """The name of the rule, as in docs/methods-audit.md."""
    sentence: str
    because: str
    """The numbers behind it."""
    collect: tuple[tuple[str, ...], ...] = ()
    """Combinations to collect, most useful first."""
    gain: float | None = None
    """How much the mean score could improve at most; None if the advice is not about a loss."""


@dataclasses.dataclass(frozen=True)
class Lowest:
    """A combination with a low mean score, neither shrunken nor tested."""

    name: str
    score: float
    rows: int


@dataclasses.dataclass(frozen=True)
class ScoreFinding:
    """All findings about one score."""

    score: str
    rows: int
    overall: Interval | None
    gap: GapFinding | None
    parts: PartsFinding
    decodability: DecodabilityFinding | None
    advice: tuple[Advice, ...]
    lowest: tuple[Lowest, ...] = ()
    """The combinations with the worst scores, without those that score best."""
    slices: tuple[Slice, ...] = ()
    """The weakest values and pairs of values, the most certain loss first."""
    values: tuple[Slice, ...] = ()
    """Every value, factor by factor."""
    effects: EffectsFinding = dataclasses.field(default_factory=EffectsFinding)
    """Which factors matter and which interact."""
    scale: Scale = UNKNOWN
    """What the values of the score mean."""


@dataclasses.dataclass(frozen=True, repr=False)
class Audit(Finding):
    """The result of an audit.

    Printing it shows a summary. `audit.scores[0].advice` lists what to do, most useful first, and `audit.record()` is
    the whole result as plain data.
    """

    source: str
    factors: dict[str, int]
    """The number of values of each factor."""
    combinations: int
    """Combinations with a score."""
    space_size: int
    """Possible combinations of the values in the table."""
    rows: int
    support: SupportFinding | None
    """What training covers; None if the training combinations are unknown."""
    scores: tuple[ScoreFinding, ...]
    notes: tuple[str, ...]
    """What happened while the table was read."""

    def _repr_html_(self) -> str:
        pieces = [paragraph(sentence) for sentence in (self.support.sentences if self.support else ())]
        for score in self.scores:
            pieces.append(paragraph(f"{score.score}: mean {estimate(score.overall)}"))
            if score.gap is not None:
                rows = [(s.name, s.combinations, s.rows, estimate(s.score)) for s in score.gap.strata]
                pieces.append(table(["combinations", "number", "rows", "mean score"], rows))
            pieces.append(paragraph(score.parts.verdict))
            pieces.append(listing([advice.sentence for advice in score.advice], ordered=True))
        return card(self._title(), *pieces, listing(self.notes))

    def _title(self) -> str:
        values = " x ".join(f"{number:,} {name}" for name, number in self.factors.items())
        return (
            f"Audit of {Path(self.source).name or 'a table'}: {counted(self.rows, 'row')}, {self.combinations:,} of "
            f"{large(self.space_size)} combinations ({values})"
        )

    def _lines(self) -> Iterator[str]:
        yield self._title()
        for score in self.scores[:SCORES_SHOWN]:
            yield f"{score.score}: mean {estimate(score.overall)}"
            strata = () if score.gap is None else score.gap.strata
            if strata:
                yield "  " + ", ".join(f"{s.name} {estimate(s.score)} (n={s.combinations:,})" for s in strata)
            yield f"  {score.parts.verdict}"
            for advice in score.advice[:ADVICE_SHOWN]:
                yield f"  {advice.rule}: {advice.sentence}"
            if len(score.advice) > ADVICE_SHOWN:
                yield f"  and {len(score.advice) - ADVICE_SHOWN} more: see .scores[...].advice"
        if len(self.scores) > SCORES_SHOWN:
            yield f"and {counted(len(self.scores) - SCORES_SHOWN, 'more score')}"
        for note in self.notes[:NOTES_SHOWN]:
            yield f"note: {note}"
