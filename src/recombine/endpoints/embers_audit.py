"""The whole audit of a language model by its embers: items, answers, findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from threadpoolctl import threadpool_limits

from recombine.audit.embers import COLUMNS, Embers, embers_findings, levels
from recombine.endpoints.asking import Ask, answered, ask_items
from recombine.endpoints.kept import Kept
from recombine.language.items import Item

if TYPE_CHECKING:
    from recombine.audit.audit import On


@dataclasses.dataclass(frozen=True)
class EmbersAudit:
    """What was asked and what came of it, for pages and tables."""

    settings: dict[str, Any]
    """How it was asked."""
    items: int
    answers: pd.DataFrame
    """A row an answer: the columns of `embers_findings`, and name, level, prompt, answer and what was said."""
    found: Embers | None
    """None where there is no answer."""
    lacking: tuple[str, ...]
    """Sentences about items without an answer."""
    remarks: tuple[str, ...]
    """Sentences about the items and the answers."""

    @property
    def notes(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.lacking, *self.remarks)

    @property
    def missing(self) -> int:
        """Items without an answer."""
        return self.items - len(self.answers)

    @property
    def empty(self) -> int:
        """Answers without a word."""
        return empty_answers(self.answers)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "settings": self.settings,
            "asked": self.items,
            "answered": len(self.answers),
            "empty": self.empty,
            "findings": None if self.found is None else self.found.record(),
            "notes": list(self.notes),
        }


def audit_embers(
    ask: Ask,
    items: Sequence[Item],
    out: str | Path,
    settings: Mapping[str, Any],
    *,
    at_once: int = 1,
    notes: Sequence[str] = (),
    on: On | None = None,
) -> EmbersAudit:
    """Asks what is missing in the folder `out`, and says what can be said. It may be called again.

    `settings` are all that an answer depends on beside the item; a folder with others is refused. `notes` are sentences
    about the items, which are passed on.
    """
    kept = Kept(out)
    kept.begin(settings)
    lacking = ask_items(items, ask, kept, at_once=at_once, on=on)
    answers = answers_frame(items, kept)
    if on is not None:
        on("fitting")
    # The matrices are small and many, and threads would wait for each other.
    with threadpool_limits(1, user_api="blas"):
        found = None if answers.empty else embers_findings(answers)
    remarks = (*notes, *_empty(answers))
    return EmbersAudit(dict(settings), len(items), answers, found, tuple(lacking), remarks)


def empty_answers(answers: pd.DataFrame) -> int:
    """How many answers have no word in them."""
    return sum(not str(said).strip() for said in answers["said"])


def _empty(answers: pd.DataFrame) -> list[str]:
    """A model that is cut off, or silenced, is not one that does not know."""
    if not (number := empty_answers(answers)):
        return []
    verb = "answers is empty and counts" if number == 1 else "answers are empty and count"
    return [
        f"{number} of {len(answers)} {verb} as wrong. See whether the model is cut off while it still reasons (a limit "
        "of tokens), or whether a filter takes its answers away."
    ]


def answers_frame(items: Sequence[Item], kept: Kept) -> pd.DataFrame:
    """The answers that are there, in the order of the items."""
    held = kept.read()
    rows = [(item, record) for item in items if answered(record := held.get(item.name))]
    columns = {
        "task": [item.task for item, _ in rows],
        "variant": [item.variant for item, _ in rows],
        "correct": [int(record["correct"]) for _, record in rows],
        "input_logprob": [_number(item.input_logprob) for item, _ in rows],
        "output_logprob": [_number(item.output_logprob) for item, _ in rows],
        "input_length": [len(item.input) for item, _ in rows],
        "output_length": [len(item.output) for item, _ in rows],
        "group": [item.group for item, _ in rows],
    }
    assert tuple(columns) == COLUMNS
    frame = pd.DataFrame(columns)
    return frame.assign(
        level=levels(frame),
        name=[item.name for item, _ in rows],
        prompt=[item.prompt for item, _ in rows],
        answer=[item.answer for item, _ in rows],
        said=[str(record.get("said", "")) for _, record in rows],
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
