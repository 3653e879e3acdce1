"""Where a model fails to call functions: single functions, pairs of them, or depth."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from recombine._html import card, listing, table
from recombine.audit.findings import Audit, Finding
from recombine.audit.tools.grading import OUTCOMES, RIGHT, Graded
from recombine.audit.tools.questions import ToolQuestion
from recombine.audit.wording import counted, estimate
from recombine.calling import CallScores
from recombine.stats.intervals import Interval
from recombine.stats.shares import clustered_share

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress

FAILS = 0.5
"""A function or a pair fails if less than this share is right."""
MOST_NAMED = 5
EDGE_COLUMNS = ("question", "outer", "parameter", "inner", "depth", "level", "nested")


@dataclasses.dataclass(frozen=True)
class DepthShare:
    """Questions with chains of one length."""

    depth: int
    questions: int
    right: Interval


@dataclasses.dataclass(frozen=True)
class FunctionFinding:
    """One function: alone, and in nested calls."""

    name: str
    alone: float
    """The share of right calls without nesting; NaN if none was asked."""
    as_outer: float
    """The share of right nestings of other functions into it; NaN if none was asked."""
    as_inner: float
    """The share of right nestings of it into other functions; NaN if none was asked."""
    asked: int
    """Nestings in which it takes part."""


@dataclasses.dataclass(frozen=True)
class PairFinding:
    """One function inside another."""

    outer: str
    inner: str
    asked: int
    nested: int
    """How often the inner function's result went into the outer one, with right arguments of both."""
    fails: bool
    reason: str
    """Why it fails: `combination`, `outer function`, `inner function`, `both functions`; empty if it does not."""
    q: float | None = None
    """The q-value of a score below the sum of both functions' effects, where the audit names the pair; else None."""
    trained: int | None = None
    """How often the training data nests the pair; None if it is not known."""


@dataclasses.dataclass(frozen=True, repr=False)
class ToolsFindings(Finding):
    """What a model can call and nest."""

    questions: int
    right: Interval
    depths: tuple[DepthShare, ...]
    functions: tuple[FunctionFinding, ...]
    pairs: tuple[PairFinding, ...]
    """All pairs that were asked, worst first."""
    outcomes: dict[str, int]
    """The number of answers by outcome."""
    as_text: int
    """Answers with calls written as text where native calls were asked for."""
    scores: CallScores
    """Mean scores over questions."""
    audit: Audit | None
    """The audit of the nestings by outer function, inner function and depth; None if there are too few."""
    verdict: str
    """One sentence."""
    advice: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def failing(self) -> tuple[PairFinding, ...]:
        """The pairs that fail, worst first."""
        return tuple(pair for pair in self.pairs if pair.fails)

    def _repr_html_(self) -> str:
        rows = [(pair.outer, pair.inner, f"{pair.nested} of {pair.asked}", pair.reason) for pair in self.failing]
        return card(
            self._title(), table(["outer", "inner", "nested", "why"], rows), listing(self.advice), listing(self.notes)
        )

    def _title(self) -> str:
        return f"Tools: {counted(self.questions, 'answer')}, right {estimate(self.right)}. {self.verdict}"

    def _lines(self) -> Iterator[str]:
        yield self._title()
        for pair in self.failing:
            yield f"  {pair.outer}({pair.inner}(...)): nested {pair.nested} of {pair.asked}, {pair.reason}"
        for sentence in (*self.advice, *self.notes):
            yield f"  {sentence}"


def tools_findings(
    questions: Sequence[ToolQuestion],
    graded: Sequence[Graded],
    *,
    seed: int = 0,
    trained: Mapping[tuple[str, str], int] | None = None,
    notes: Sequence[str] = (),
    on: OnProgress | None = None,
) -> ToolsFindings:
    """The findings about answers to questions of `make_questions`.

    Args:
        questions: The questions that have an answer.
        graded: Their answers.
        seed: The seed of the audit's resampling.
        trained: How often the training data nests each outer and inner function.
        notes: Sentences for the result.
        on: Called with the progress.
    """
    right = [float(each.outcome == RIGHT) for each in graded]
    chains = [" > ".join(question.functions) for question in questions]
    edges = edge_frame(questions, graded)
    functions = tuple(_functions(questions, right, edges))
    audit = _audited(edges, seed, trained, on)
    pairs = tuple(_pairs(edges, {each.name: each for each in functions}, _named(audit), trained))
    outcomes = collections.Counter(each.outcome for each in graded)
    as_text = sum(each.as_text for each in graded)
    return ToolsFindings(
        questions=len(questions),
        right=clustered_share(right, chains),
        depths=tuple(_depths(questions, right, chains)),
        functions=functions,
        pairs=pairs,
        outcomes={outcome: outcomes[outcome] for outcome in OUTCOMES if outcomes[outcome]},
        as_text=as_text,
        scores=CallScores.mean(each.scores for each in graded),
        audit=audit,
        verdict=_verdict(functions, pairs),
        advice=tuple(_advice(functions, pairs, trained)),
        notes=(*notes, *_remarks(outcomes, as_text, len(questions))),
    )


def _remarks(outcomes: Mapping[str, int], as_text: int, answers: int) -> Iterator[str]:
    """What may be wrong with the endpoint, not with the model."""
    if (prose := outcomes["prose"]) >= FAILS * answers:
        yield (
            f"{prose} of {answers} answers contain no call. Check whether the endpoint passes the functions on to the model "
            "(--calls native), and whether a limit on tokens cuts it off."
        )
    if as_text:
        yield f"{as_text} of {answers} answers have calls as text where native calls were asked for. They are read and graded."


def edge_frame(questions: Sequence[ToolQuestion], graded: Sequence[Graded]) -> pd.DataFrame:
    """One row per pair of neighbouring functions in a question: whether the inner one was nested rightly."""
    rows = [
        (question.name, outer, parameter, inner, question.depth, level, int(nested))
        for question, answer in zip(questions, graded, strict=True)
        for level, (outer, parameter, inner, nested) in enumerate(
            zip(question.functions[:-1], question.parameters, question.functions[1:], answer.nested, strict=True), 1
        )
    ]
    return pd.DataFrame(rows, columns=pd.Index(EDGE_COLUMNS))


def _depths(questions: Sequence[ToolQuestion], right: Sequence[float], chains: Sequence[str]) -> Iterator[DepthShare]:
    for depth in sorted({question.depth for question in questions}):
        here = [index for index, question in enumerate(questions) if question.depth == depth]
        share = clustered_share([right[index] for index in here], [chains[index] for index in here])
        yield DepthShare(depth, len(here), share)


def _functions(
    questions: Sequence[ToolQuestion], right: Sequence[float], edges: pd.DataFrame
) -> Iterator[FunctionFinding]:
    alone: dict[str, list[float]] = {}
    for question, value in zip(questions, right, strict=True):
        for name in question.functions:
            alone.setdefault(name, [])
        if question.depth == 1:
            alone[question.functions[0]].append(value)
    for name, values in sorted(alone.items()):
        outer, inner = edges["outer"] == name, edges["inner"] == name
        yield FunctionFinding(
            name,
            sum(values) / len(values) if values else math.nan,
            *(float(edges.loc[where, "nested"].mean()) if where.any() else math.nan for where in (outer, inner)),
            asked=int((outer | inner).sum()),
        )


def _pairs(
    edges: pd.DataFrame,
    functions: Mapping[str, FunctionFinding],
    named: Mapping[str, float],
    trained: Mapping[tuple[str, str], int] | None,
) -> Iterator[PairFinding]:
    found = []
    for (outer, inner), part in edges.groupby(["outer", "inner"], sort=True):
        share, reason = float(part["nested"].mean()), ""
        if share < FAILS:
            # What the two do without each other.
            others = [
                edges.loc[(edges["outer"] == outer) & (edges["inner"] != inner), "nested"].mean(),
                edges.loc[(edges["inner"] == inner) & (edges["outer"] != outer), "nested"].mean(),
            ]
            bad = [
                elsewhere < FAILS or functions[str(name)].alone < FAILS
                for name, elsewhere in zip((outer, inner), others, strict=True)
            ]
            reason = {
                (True, True): "both functions",
                (True, False): "outer function",
                (False, True): "inner function",
                (False, False): "combination",
            }[bad[0], bad[1]]
        names, nested = (str(outer), str(inner)), int(part["nested"].sum())
        q = named.get(f"outer={outer} + inner={inner}")
        times = None if trained is None else trained.get(names, 0)
        found.append(PairFinding(*names, len(part), nested, share < FAILS, reason, q, times))
    yield from sorted(found, key=lambda pair: (pair.nested / pair.asked, -pair.asked))


def _audited(
    edges: pd.DataFrame, seed: int, trained: Mapping[tuple[str, str], int] | None, on: OnProgress | None
) -> Audit | None:
    """Parts or combinations, by the audit of tables."""
    from recombine.audit.audit import audit_table

    if edges.groupby(["outer", "inner"]).ngroups < 2 or edges["nested"].nunique() < 2:
        return None
    train = None if not trained else pd.DataFrame(list(trained), columns=pd.Index(["outer", "inner"]))
    audit = audit_table(
        edges, factors=["outer", "inner"], scores="nested", train=train, cluster="question", seed=seed, progress=on
    )
    return dataclasses.replace(audit, source="nested calls")


def _named(audit: Audit | None) -> dict[str, float]:
    """The pairs that the audit names as worse than the sum of both functions' effects, with their q-values."""
    if audit is None:
        return {}
    effects = [effect for score in audit.scores for effect in score.effects.effects if effect.kind == "pair"]
    return {worse.name: worse.q for effect in effects for worse in effect.worse}


def _verdict(functions: Sequence[FunctionFinding], pairs: Sequence[PairFinding]) -> str:
    alone = [each for each in functions if each.alone < FAILS]
    failing = [pair for pair in pairs if pair.fails]
    known = [each for each in functions if not math.isnan(each.alone)]
    first = (
        f"{len(known) - len(alone)} of {counted(len(known), 'function')} are called rightly alone"
        if known
        else "No function was asked alone"
    )
    if not pairs:
        return f"{first}."
    if not failing:
        return f"{first}, and all {len(pairs)} pairs nest."
    combined = sum(pair.reason == "combination" for pair in failing)
    why = f"{combined} of these because of the combination, as both functions are right elsewhere"
    if combined == len(failing):
        why = "because of the combination: both functions are right elsewhere"
    if not combined:
        why = "because of a function that is wrong elsewhere, too"
    verb = "does" if len(failing) == 1 else "do"
    return f"{first}. {len(failing)} of {counted(len(pairs), 'pair')} {verb} not nest, {why}."


def _advice(
    functions: Sequence[FunctionFinding], pairs: Sequence[PairFinding], trained: Mapping[tuple[str, str], int] | None
) -> Iterator[str]:
    """What to add to the training data, the parts first: a pair cannot be right if a part of it is wrong."""

    def listed(names: Sequence[str]) -> str:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return ", ".join(names[:MOST_NAMED]) + more

    if alone := [each.name for each in functions if each.alone < FAILS]:
        yield f"Add examples of single calls: {listed(alone)}."
    for place in ("outer", "inner"):
        share = {each.name: each.as_outer if place == "outer" else each.as_inner for each in functions}
        names = [name for name, value in share.items() if value < FAILS and name not in alone]
        if names:
            with_it = "other functions inside" if place == "outer" else "their results given to several other functions"
            yield f"Add examples with {with_it}: {listed(names)}, which fail with most other functions."
    combined = [f"{pair.outer}({pair.inner}(...))" for pair in pairs if pair.reason == "combination"]
    if combined:
        yield f"Add examples in which these pairs nest, at several depths: {listed(combined)}."
    if trained is not None and (failing := [pair for pair in pairs if pair.fails]):
        unmet = sum(not pair.trained for pair in failing)
        others = [pair for pair in pairs if not pair.fails]
        there = f"of the {len(others)} that nest, {sum(not pair.trained for pair in others)} do not"
        yield f"Of the {counted(len(failing), 'failing pair')}, {unmet} do not nest in the training data; {there}."
