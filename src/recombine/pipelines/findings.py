"""The findings of an audit of images: plain records, each number with its interval."""

from __future__ import annotations

import dataclasses
from typing import Any

from recombine import _html
from recombine.audit.findings import Audit
from recombine.plain import plain
from recombine.stats.intervals import Interval


@dataclasses.dataclass(frozen=True)
class SiteFinding:
    """The accuracy of probes for a slot at one block and one point of the schedule."""

    block: str
    time: str
    place: str
    validation: float
    """On the prompts that choose the site."""
    test: float
    """On prompts that were used for nothing else. Both are balanced accuracies."""


@dataclasses.dataclass(frozen=True)
class PlaceFinding:
    """A slot (or all concepts of a set) at the site that was chosen on validation prompts."""

    place: str
    block: str
    time: str
    score: Interval
    """Balanced accuracy on test prompts."""
    chance: float
    control: float
    """The same with labels assigned to prompts at random."""
    selectivity: float
    text: Interval | None
    """The same from the text encoder alone; None if none was recorded."""
    text_encoder: str = ""


@dataclasses.dataclass(frozen=True)
class ConceptFinding:
    """One concept: its success and its decodability."""

    place: str
    concept: str
    prompts: int
    images: int
    """Images that were judged for it."""
    success: Interval | None
    """The share of images that show it, over prompts."""
    decodability: float
    """The recall of the probe on prompts that it was not fitted on."""


@dataclasses.dataclass(frozen=True)
class CombinationFinding:
    """One combination: its decodability, its rivals and its success."""

    prompt: str
    """The name of its folder."""
    text: str
    decodability: float
    """The mean log-probability of its true concepts, by probes fitted on other prompts."""
    from_text: float
    frequency: float
    """The mean over its concepts of the log share of prompts that contain the concept."""
    success: float
    fold: int
    related: bool
    """It is part of the relation. Prompts that chose the site are not."""
    concepts: tuple[str, ...] = ()
    """Its concepts."""


@dataclasses.dataclass(frozen=True)
class Relation:
    """The relation of decodability and success over combinations."""

    combinations: int
    plain: Interval | None
    """Rank correlation; None if it cannot be computed."""
    rivals: dict[str, Interval]
    """The correlation of each rival explanation with success."""
    partial: dict[str, Interval]
    """The correlation of decodability with success, controlled for each rival; under `all`, for all of them."""
    verdict: str
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Joint:
    """The joint success of all concepts, compared with the product of their single successes."""

    combinations: int
    joint: Interval
    product: Interval
    difference: Interval
    sentence: str


@dataclasses.dataclass(frozen=True)
class SetFinding:
    """All findings about one set of prompts."""

    name: str
    kind: str
    prompts: int
    combinations: int
    """Combinations in the whole space."""
    images: int
    judged: int
    success: Interval | None
    """Mean over prompts."""
    sites: tuple[SiteFinding, ...]
    places: tuple[PlaceFinding, ...]
    concepts: tuple[ConceptFinding, ...]
    points: tuple[CombinationFinding, ...]
    relation: Relation
    joint: Joint | None
    table: Audit | None
    """The audit of the table of successes: parts or combination, lowest scores, advice."""
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class ImagesAudit:
    """The findings of an audit of a text-to-image pipeline."""

    pipeline: str
    kind: str
    """The class of the pipeline."""
    settings: dict[str, Any]
    judge: str
    sets: tuple[SetFinding, ...]
    relation: Relation | None
    """The relation within sets, over all sets; None for a single set."""
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        sets = ", ".join(f"{plain(finding.name)} ({finding.prompts} prompts)" for finding in self.sets)
        return f"ImagesAudit({plain(self.pipeline)!r}, judge={plain(self.judge)!r}, sets: {sets})"

    def _repr_html_(self) -> str:
        rows = [
            (each.name, each.images, f"{each.success.estimate:.2f}" if each.success else "", each.relation.verdict)
            for each in self.sets
        ]
        columns = ["set", "images", "success", "decodability and success"]
        return _html.card(f"{self.pipeline}: {self.kind}", _html.table(columns, rows), _html.listing(self.notes))

    def record(self) -> dict[str, Any]:
        """The findings as a JSON record."""
        return dataclasses.asdict(self)
