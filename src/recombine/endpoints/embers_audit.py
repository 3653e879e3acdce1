"""The audit of a language model by embers of autoregression: items, answers, findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from threadpoolctl import threadpool_limits

from recombine import _html
from recombine.audit.embers.findings import COLUMNS, Embers, embers_findings, levels
from recombine.endpoints.answer_cache import AnswerCache
from recombine.endpoints.asking import Ask, answered, ask_items
from recombine.language.answers import MAX_STORED, is_right
from recombine.language.items import Item
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress


@dataclasses.dataclass(frozen=True, repr=False)
class EmbersAudit:
    """The result of an audit: settings, answers and findings."""

    settings: dict[str, Any]
    """Everything that the answers depend on, apart from the items."""
    items: int
    answers: pd.DataFrame
    """One row per answer: the columns of `embers_findings`, and level, name, prompt, answer (expected) and said (given)."""
    findings: Embers | None
    """None if there is no answer."""
    lacking: tuple[str, ...]
    """Sentences about items without an answer."""
    remarks: tuple[str, ...]
    """Sentences about the items and the answers."""

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences."""
        return (*self.lacking, *self.remarks)

    @property
    def missing(self) -> int:
        """The number of items without an answer."""
        return self.items - len(self.answers)

    def __repr__(self) -> str:
        model = plain(str(self.settings.get("model", "")))
        return f"EmbersAudit({model!r}, {self.items} items, {len(self.answers)} answered)"

    def _repr_html_(self) -> str:
        verdicts = () if self.findings is None else self.findings.verdicts
        rows = [(verdict.claim.statement, verdict.verdict) for verdict in verdicts]
        return _html.card(self, _html.table(["claim", "verdict"], rows), _html.listing(self.notes))

    def record(self) -> dict[str, Any]:
        """The result as a JSON record."""
        return {
            "settings": self.settings,
            "asked": self.items,
            "answered": len(self.answers),
            "empty": _empty(self.answers),
            "findings": None if self.findings is None else self.findings.record(),
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
    on: OnProgress | None = None,
) -> EmbersAudit:
    """Ask the missing items, and compute the findings. Call it again to continue an interrupted audit.

    Args:
        ask: The model: a function from a prompt to an answer.
        items: The items.
        out: The folder for the answers.
        settings: Everything that an answer depends on, apart from the item. A folder with other settings is refused.
        at_once: The number of questions in parallel.
        notes: Sentences about the items, for the result.
        on: Called with the progress.

    Returns:
        The answers and the findings.
    """
    cache = AnswerCache(out)
    cache.begin(settings)
    lacking = ask_items(items, ask, cache, at_once=at_once, on=on)
    answers = _answers_frame(items, cache)
    if on is not None:
        on("fitting")
    # There are many small matrices: threads would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        findings = None if answers.empty else embers_findings(answers)
    remarks = list(notes)
    if empty := _empty(answers):
        verb = "answers is empty and counts" if empty == 1 else "answers are empty and count"
        remarks.append(
            f"{empty} of {len(answers)} {verb} as wrong. Check whether a limit on tokens cuts off the model while it "
            "reasons, or whether a filter removes its answers."
        )
    return EmbersAudit(dict(settings), len(items), answers, findings, tuple(lacking), tuple(remarks))


def _empty(answers: pd.DataFrame) -> int:
    """The number of answers without any text."""
    return sum(not str(said).strip() for said in answers["said"])


def _graded(item: Item, record: Mapping[str, Any]) -> bool:
    """Whether an answer is right, by the rules of today; of an answer that was cut, by those of the day it was given."""
    said = str(record.get("said", ""))
    return is_right(said, item.answer) if said and len(said) < MAX_STORED else bool(record["correct"])


def _answers_frame(items: Sequence[Item], cache: AnswerCache) -> pd.DataFrame:
    """The answers in the cache, in the order of the items."""
    held = cache.read()
    rows = [(item, record) for item in items if answered(record := held.get(item.name))]
    asked = pd.DataFrame([dataclasses.asdict(item) for item, _ in rows], columns=[*Item.__dataclass_fields__])
    frame = asked.astype({"input_logprob": float, "output_logprob": float}).assign(
        correct=[int(_graded(item, record)) for item, record in rows],
        input_length=[len(item.input) for item, _ in rows],
        output_length=[len(item.output) for item, _ in rows],
        name=[item.name for item, _ in rows],
        said=[str(record.get("said", "")) for _, record in rows],
    )
    return frame.assign(level=levels(frame))[[*COLUMNS, "level", "name", "prompt", "answer", "said"]]
