"""What an audit of images says: plain records, each number with its interval."""

from __future__ import annotations

import dataclasses
from typing import Any

from recombine.audit.findings import Audit
from recombine.stats.intervals import Interval


@dataclasses.dataclass(frozen=True)
class SiteFinding:
    """How well a place can be read off one block at one point of the schedule."""

    block: str
    time: str
    place: str
    validation: float
    """On the prompts on which sites are chosen."""
    test: float
    """On prompts that had no say in anything. Both: accuracy, balanced over answers."""


@dataclasses.dataclass(frozen=True)
class PlaceFinding:
    """A place (a slot, or all concepts of a set) at the site that was chosen on validation prompts."""

    place: str
    block: str
    time: str
    score: Interval
    """On test prompts."""
    chance: float
    control: float
    """The same with labels dealt out to prompts at random."""
    selectivity: float
    text: Interval | None
    """The same from the text encoder alone; None where none was seen."""
    text_encoder: str = ""


@dataclasses.dataclass(frozen=True)
class ConceptFinding:
    """One concept."""

    place: str
    concept: str
    prompts: int
    images: int
    """Those that were judged for it."""
    success: Interval | None
    """How often it was right, over prompts."""
    decodability: float
    """How often it was read where it was asked for, on prompts that the probe was not fitted on."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One combination."""

    prompt: str
    """The name of its folder."""
    text: str
    decodability: float
    """The mean over its concepts of the log-probability of the truth, by probes that were fitted on other prompts."""
    from_text: float
    frequency: float
    """The mean over its concepts of the logarithm of the share of prompts that hold it."""
    success: float
    fold: int
    related: bool
    """Whether it takes part in the relation: those on which sites were chosen do not."""
    concepts: tuple[str, ...] = ()
    """What it is made of."""


@dataclasses.dataclass(frozen=True)
class Relation:
    """Decodability and success over combinations."""

    combinations: int
    plain: Interval | None
    """Rank correlation; None where it cannot be had."""
    rivals: dict[str, Interval]
    """Of each rival its own correlation with success."""
    partial: dict[str, Interval]
    """That of decodability, with a rival held still; under `all`, with all of them."""
    verdict: str
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Joint:
    """Whether all concepts come together as often as the product of how often each comes."""

    combinations: int
    joint: Interval
    product: Interval
    difference: Interval
    sentence: str


@dataclasses.dataclass(frozen=True)
class SetFinding:
    """All that is said of one set of prompts."""

    name: str
    kind: str
    prompts: int
    combinations: int
    """In the whole space."""
    images: int
    judged: int
    success: Interval | None
    """Over prompts."""
    sites: tuple[SiteFinding, ...]
    places: tuple[PlaceFinding, ...]
    concepts: tuple[ConceptFinding, ...]
    points: tuple[Point, ...]
    relation: Relation
    joint: Joint | None
    table: Audit | None
    """The audit of the table of successes: parts or combination, the lowest ones, what to do."""
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ImagesAudit:
    """The whole of it."""

    pipeline: str
    kind: str
    """The class of the pipeline."""
    settings: dict[str, Any]
    judge: str
    sets: tuple[SetFinding, ...]
    relation: Relation | None
    """Over all sets, within each; None where there is one."""
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)
