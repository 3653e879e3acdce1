"""The audit of function calling: questions, answers, findings."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from recombine import _html
from recombine.audit.tools.advice import training_examples
from recombine.audit.tools.findings import ToolsFindings, tools_findings
from recombine.audit.tools.grading import RIGHT, Graded, grade
from recombine.audit.tools.questions import Notation, ToolPlan, ToolQuestion, Wording, make_questions
from recombine.calling import Library, trained_pairs
from recombine.endpoints.answer_cache import AnswerCache
from recombine.endpoints.asking import Ask, answered, ask_all
from recombine.endpoints.dialogue import Chat, ask_natively
from recombine.errors import BadInput
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress

MAX_STORED = 20_000
"""The number of characters of an answer that are stored."""
VERSION = 1
"""The version of the questions. Answers of different versions are not mixed."""


@dataclasses.dataclass(frozen=True, repr=False)
class ToolsAudit:
    """The result of an audit of function calling: settings, answers and findings."""

    settings: dict[str, Any]
    """Everything that the answers depend on."""
    plan: ToolPlan
    answers: pd.DataFrame
    """One row per answer: name, depth, functions, expected, called, outcome, the scores, and said."""
    nestings: pd.DataFrame
    """One row per pair of neighbouring functions in a question: outer, parameter, inner, depth, level, nested."""
    findings: ToolsFindings | None
    """None if there is no answer."""
    examples: tuple[dict[str, Any], ...]
    """Worked examples of what fails, to train on."""
    lacking: tuple[str, ...]
    """Sentences about questions without an answer."""

    @property
    def missing(self) -> int:
        """The number of questions without an answer."""
        return len(self.plan.questions) - len(self.answers)

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences."""
        return (*self.lacking, *(self.plan.notes if self.findings is None else self.findings.notes))

    def __repr__(self) -> str:
        model = plain(str(self.settings.get("model", "")))
        head = f"ToolsAudit({model!r}, {len(self.plan.questions)} questions, {len(self.answers)} answered)"
        return head if self.findings is None else f"{head}\n{self.findings!r}"

    def _repr_html_(self) -> str:
        inner = "" if self.findings is None else self.findings._repr_html_()
        return _html.card(f"Audit of {self.settings.get('model', '')}", inner, _html.listing(self.lacking))

    def record(self) -> dict[str, Any]:
        """The result as a JSON record."""
        return {
            "settings": self.settings,
            "asked": len(self.plan.questions),
            "answered": len(self.answers),
            "pairs": {"asked": self.plan.pairs, "nestable": self.plan.nestable},
            "possible_chains": self.plan.possible,
            "findings": None if self.findings is None else self.findings.record(),
            "failing": [] if self.findings is None else [[one.outer, one.inner] for one in self.findings.failing],
            "examples": len(self.examples),
            "notes": list(self.notes),
        }


def audit_tools(
    library: Library,
    ask: Ask | Chat,
    out: str | Path,
    *,
    calls: Notation = "text",
    depth: int = 3,
    values: int = 2,
    questions: int | None = None,
    wording: Wording = "names",
    seed: int = 0,
    train: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    at_once: int = 1,
    on: OnProgress | None = None,
) -> ToolsAudit:
    """Which functions can a model call, and which pairs of them can it nest? Call it again to continue.

    Args:
        library: The functions, for example of `recombine.calling.read_tools`.
        ask: The model. With `calls="text"`, a function from a prompt to a text; with `calls="native"`, one from messages and
            tools to a message with `tool_calls` or `content`.
        out: The folder for the answers.
        calls: How calls are made.
        depth: The number of functions in the deepest chains.
        values: How many questions, with other values, are asked of each chain.
        questions: Most questions. By default as many as cover all pairs.
        wording: Whether questions give the names of functions, or their descriptions.
        seed: The seed of the plan and of the values.
        train: The training data, as JSON lines: were the pairs that fail nested in it? See `trained_pairs`.
        settings: What else an answer depends on, such as the model's name.
        at_once: The number of questions in parallel.
        on: Called with the progress.

    Returns:
        The answers and the findings.

    Example:
        ```python
        result = audit_tools(read_tools("tools.json"), my_model, "audit", settings={"model": "mine"})
        result.findings.failing
        ```
    """
    plan = make_questions(
        library, depth=depth, values=values, questions=questions, wording=wording, notation=calls, seed=seed
    )
    trained, records = (None, 0) if train is None else trained_pairs(train, library)
    settings = tools_settings(library, calls, wording, seed, settings or {})
    cache = AnswerCache(out)
    cache.begin(settings)

    def put(question: ToolQuestion) -> Any:
        if calls == "text":
            return ask(question.prompt)  # type: ignore[call-arg]
        return ask_natively(question, library, ask)  # type: ignore[arg-type]

    def graded(question: ToolQuestion, said: str) -> bool:
        return grade(question, said, library, calls).outcome == RIGHT

    lacking = ask_all(plan.questions, put, graded, cache, at_once=at_once, most=MAX_STORED, on=on)
    held = cache.read()
    kept = [(question, record) for question in plan.questions if answered(record := held.get(question.name))]
    answers = [(question, grade(question, str(record["said"]), library, calls)) for question, record in kept]
    said = [str(record["said"]) for _, record in kept]
    findings, examples = None, list[dict[str, Any]]()
    if answers:
        if on is not None:
            on("fitting")
        notes = list(plan.notes)
        if trained is not None:
            notes.append(f"{records:,} training examples have calls; {sum(trained.values()):,} nestings in them.")
        cut = sum(len(text) >= MAX_STORED for text in said)
        if cut:
            notes.append(
                f"{cut} answers are longer than {MAX_STORED:,} characters. Only this much of them is kept and read."
            )
        findings = tools_findings(*map(list, zip(*answers, strict=True)), seed=seed, trained=trained, notes=notes)  # type: ignore[arg-type]
        examples = training_examples(findings, library, wording=wording, notation=calls, depth=depth, seed=seed)
    return ToolsAudit(
        settings, plan, _frame(answers, said), _nestings(answers), findings, tuple(examples), tuple(lacking)
    )


def tools_settings(
    library: Library, calls: Notation, wording: Wording, seed: int, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that an answer depends on, apart from the question."""
    if calls not in ("native", "text"):
        raise BadInput(f"Calls are native or text, got {calls!r}.", fix="calls='text'")
    if wording not in ("names", "descriptions"):
        raise BadInput(f"The wording is names or descriptions, got {wording!r}.", fix="wording='names'")
    digest = hashlib.sha256(json.dumps(library.tools(), sort_keys=True, default=str).encode()).hexdigest()[:16]
    own = {"audit": "tools", "version": VERSION, "functions": digest, "calls": calls, "wording": wording, "seed": seed}
    return {**more, **own}


def _frame(answers: Sequence[tuple[ToolQuestion, Graded]], said: Sequence[str]) -> pd.DataFrame:
    rows = [
        {
            "name": question.name,
            "depth": question.depth,
            "functions": " > ".join(question.functions),
            "expected": str(question.call),
            "called": "; ".join(map(str, graded.calls)),
            "outcome": graded.outcome,
            "why": "; ".join(map(str, graded.differences)),
            **{name: value for name, value in dataclasses.asdict(graded.scores).items() if name != "executed"},
            "prompt": question.prompt,
            "said": text,
        }
        for (question, graded), text in zip(answers, said, strict=True)
    ]
    columns = ("name", "depth", "functions", "expected", "called", "outcome", "why")
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=pd.Index(columns))


def _nestings(answers: Sequence[tuple[ToolQuestion, Graded]]) -> pd.DataFrame:
    from recombine.audit.tools.findings import edge_frame

    return edge_frame([question for question, _ in answers], [graded for _, graded in answers])
