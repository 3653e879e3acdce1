"""What an audit says: plain records, each number with its interval and the name of its method."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from recombine.stats.intervals import Interval

Link = Literal["identity", "logit", "log"]


@dataclasses.dataclass(frozen=True)
class SupportFinding:
    """The certificate of what was trained on, in words and numbers."""

    size: int
    unseen: tuple[str, ...]
    """Values that were evaluated and never trained on."""
    unmet: tuple[tuple[str, str], ...]
    """Evaluated pairs of values that never met in training, worst score first; at most `shown` of them."""
    unmet_count: int
    groups: tuple[tuple[str, ...], ...]
    """Groups of values that never touch in training, largest first."""
    pair_coverage: float
    """The share of all pairs of values (of different places) that met in training."""
    difference: dict[int, float]
    """Set-difference coverage by strength: the share of evaluated t-way interactions that training lacks."""
    sentences: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Stratum:
    """Combinations that training covers alike: trained, all pairs met, some pairs unmet, a part unseen."""

    name: str
    combinations: int
    rows: int
    score: Interval | None
    """Mean score over combinations; None where a single combination allows no interval."""


@dataclasses.dataclass(frozen=True)
class GapFinding:
    """Trained against held-out combinations."""

    strata: tuple[Stratum, ...]
    raw: Interval | None
    adjusted: Interval | None
    """Trained less held out, with the parts held still: observational, nobody assigned combinations by chance."""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Identification:
    """What the table can say at all of parts and combinations."""

    combinations: int
    parameters: int
    """Of the additive model: a level, and for each place its values less one."""
    residual: int
    """Combinations less the rank of the additive design: what is left to tell an interaction by."""
    connected: int
    """Into how many groups of values that never meet the table falls."""
    replicates: float
    """The median number of rows of a combination."""
    identified: bool
    reasons: tuple[str, ...]
    """Why not, in sentences; empty if it is."""
    advice: tuple[str, ...]
    """What to collect so that it becomes so: sentences with numbers."""
    collect: tuple[tuple[str, ...], ...] = ()
    """Combinations that would do it, as labels."""
    rank: int = 0
    """Of the additive design: the parameters that the combinations there are can tell."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """Crossed random effects under one link."""

    link: Link
    part_variance: dict[str, float]
    """By place."""
    combination_variance: Interval
    p: float
    """Of no combination variance, by parametric bootstrap."""
    share: float
    """Share of the variance between combinations that the combination itself has, beyond its parts."""
    method: str


@dataclasses.dataclass(frozen=True)
class Deviation:
    """A part or a pair that is harder or easier than the rest, shrunken."""

    name: str
    effect: Interval
    q: float
    """The false-discovery rate at which it would be named."""
    scale: Link


@dataclasses.dataclass(frozen=True)
class PartsFinding:
    """Parts or combination?"""

    identification: Identification
    fits: tuple[Fit, ...] = ()
    interaction: bool | None = None
    """Both links reject additivity; None where nothing was identified."""
    hardest_parts: tuple[Deviation, ...] = ()
    hardest_pairs: tuple[Deviation, ...] = ()
    verdict: str = ""
    """One sentence."""
    easiest_pairs: tuple[Deviation, ...] = ()
    """Pairs that score better than their parts say: perhaps learned by heart."""
    notes: tuple[str, ...] = ()
    """What the answer rests on where that is not the whole table, or little."""


@dataclasses.dataclass(frozen=True)
class Site:
    """How well a factor can be read off one layer."""

    layer: str
    factor: str
    score: Interval
    """Accuracy over held-out combinations (balanced over values)."""
    chance: float
    control: float
    """The same for a control task: values dealt out to combinations at random."""
    selectivity: float


@dataclasses.dataclass(frozen=True)
class DecodabilityFinding:
    """What the activations say."""

    sites: tuple[Site, ...]
    chosen: dict[str, str]
    """The layer of each factor, chosen on other combinations than those it is scored on."""
    relation: Interval | None
    """Rank correlation of a combination's decodability with its score, within coverage strata."""
    note: str = ""
    chosen_score: dict[str, Interval] = dataclasses.field(default_factory=dict)
    """Accuracy of each factor at the layer that was chosen, fold by fold, on other combinations: free of the choice."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do, and the rule that says so."""

    rule: str
    """The name of the rule, as docs/methods.md has it."""
    sentence: str
    because: str
    """The numbers that it follows from."""
    collect: tuple[tuple[str, ...], ...] = ()
    """Combinations to collect, most useful first."""


@dataclasses.dataclass(frozen=True)
class Lowest:
    """A combination with a low score, as it is: neither shrunken nor tested."""

    name: str
    score: float
    rows: int


@dataclasses.dataclass(frozen=True)
class ScoreFinding:
    """All that is said of one score."""

    score: str
    rows: int
    overall: Interval | None
    gap: GapFinding | None
    parts: PartsFinding
    decodability: DecodabilityFinding | None
    advice: tuple[Advice, ...]
    lowest: tuple[Lowest, ...] = ()
    """The combinations with the lowest scores, of those that are not solved."""


@dataclasses.dataclass(frozen=True)
class Audit:
    """The whole of it."""

    source: str
    factors: dict[str, int]
    """Each factor with its number of values."""
    combinations: int
    space_size: int
    rows: int
    support: SupportFinding | None
    scores: tuple[ScoreFinding, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)
