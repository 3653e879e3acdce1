"""What a table of facts covers by itself: which combinations follow from it, with how much evidence, and what to collect."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from recombine.audit.audit import silent
from recombine.audit.coverage_graph.facts import Facts, read_facts
from recombine.audit.coverage_graph.findings import (
    AtCutoff,
    Chain,
    Collect,
    CoverageGraphFinding,
    FragmentEvidence,
    Implied,
    SwapFinding,
    Uncovered,
)
from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.supports.coverage_graph import SEEN, CoverageGraph
from recombine.supports.coverage_graph.implied import implied_outcomes
from recombine.supports.coverage_graph.next_examples import CANDIDATES, NextExample, next_examples

if TYPE_CHECKING:
    import pandas as pd

LOOKED_AT = 100_000
"""The most untrained combinations that are examined, unless a table lists them."""
LISTED = 1000
"""How many uncovered combinations and fragments the finding lists; the tables have all."""

SHOWN = 3
"""How many groups of similar values the notes show."""


@dataclasses.dataclass(frozen=True)
class Examined:
    """The facts, their graph, and the examined combinations with their cutoffs."""

    facts: Facts
    graph: CoverageGraph
    combinations: Int[np.ndarray, "n column"]
    cutoffs: Int[np.ndarray, " n"]
    uncovered: Int[np.ndarray, " m"]
    """The indices of the uncovered combinations, smallest cutoff first."""
    k: int
    implied: Int[np.ndarray, " n"]
    """The numbers of the implied outcomes; negative where there is none."""

    def outcome(self, number: int) -> str | None:
        """An outcome as the table writes it; None for a negative number."""
        return None if number < 0 else self.facts.outcome_values[number]

    def names(self, tokens: Sequence[int], columns: Sequence[int] | None = None) -> tuple[str, ...]:
        """Tokens as the table writes them; `columns` are their columns (None: all)."""
        columns = range(len(tokens)) if columns is None else columns
        return tuple(self.facts.values[column][token] for column, token in zip(columns, tokens, strict=True))

    def reasons(self) -> list[str]:
        """Why each of the uncovered combinations is not covered."""
        cut = self.graph.cuts[0]
        codes = self.graph.codes(self.combinations[self.uncovered])
        if len(self.graph.cuts) > 1:
            unseen = "it has a value that training lacks in that column"
            return np.where((codes < 0).any(axis=1), unseen, "no chain of swaps leads to a training example").tolist()
        fragment, context = cut.numbers(codes)
        classes = cut.classes(self.k)
        alone = np.bincount(classes)[classes[fragment]] == 1
        why = {
            "its fragment is not in training": fragment < 0,
            "its context is not in training": context < 0,
            "no other fragment is known to be equivalent to its own": alone,
        }
        return np.select([*why.values()], [*why], "no equivalent fragment was seen in its context").tolist()

    def evidence(self, most: int | None = None) -> list[FragmentEvidence]:
        """The fragments of training (of the first way to cut examples), least evidence first."""
        cut = self.graph.cuts[0]
        shared, contexts = cut.evidence(), np.bincount(cut.fragment_of, minlength=len(cut.fragments))
        missing, _ = cut.numbers(self.graph.codes(self.combinations[self.uncovered]))
        uncovered = np.bincount(missing[missing >= 0], minlength=len(cut.fragments))
        order = np.lexsort((-uncovered, contexts, shared))[:most]
        tokens = [self.graph.tokens[place] for place in cut.fragment]
        ordered = np.stack([own[cut.fragments[order, n]] for n, own in enumerate(tokens)], axis=1).tolist()
        numbers = np.stack([contexts, shared, uncovered], axis=1)[order].tolist()
        return [
            FragmentEvidence(self.names(fragment, cut.fragment), *counts)
            for fragment, counts in zip(ordered, numbers, strict=True)
        ]


def audit_coverage_graph(
    source: Any,
    *,
    fragments: Sequence[Sequence[str]] = (),
    context: Sequence[str] = (),
    outcome: str | None = None,
    test: Any = None,
    where: str | None = None,
    k: int = 1,
    number: int = 10,
    seed: int = 0,
    progress: Callable[..., None] | None = None,
) -> tuple[CoverageGraphFinding, Examined]:
    """Which combinations follow from a table of facts, and which examples to collect next?

    Two fragments are equivalent if they have the same outcome in at least `k` shared contexts and never a different one.
    A combination is covered if swaps of equivalent fragments lead to a training example.

    Args:
        source: A table with one fact per row: a file or a frame.
        fragments: The columns of the fragment, once for each way to cut an example. By default all columns that are
            neither context nor outcome.
        context: The columns of the context. By default the last column before the outcome.
        outcome: The column of the outcome. By default the last one.
        test: A table of the combinations to examine. By default all fragments in all contexts.
        where: A filter, as an SQL expression over the columns of a row.
        k: The fewest shared contexts that count as evidence.
        number: How many examples to recommend.
        seed: The seed of all sampling.
        progress: Called with each stage.

    Returns:
        The finding, and the data behind it for `coverage_graph_tables`.

    Example:
        ```python
        finding, examined = audit_coverage_graph("facts.csv", outcome="answer", k=2)
        finding.collect
        ```
    """
    if k < 1:
        raise BadInput(f"k is {k}; expected 1 or more.", fix="k=1 requires one shared context, k=2 two, and so on")
    report = progress or silent
    report("reading the table")
    facts = read_facts(source, fragments=fragments, context=context, outcome=outcome, test=test, where=where)
    report("comparing fragments")
    stage = functools.partial(report, "comparing fragments")
    graph = CoverageGraph(facts.inputs, facts.outcomes, facts.chosen.positions, stage)
    report("finding cutoffs")
    combinations, possible = graph.untrained(LOOKED_AT, seed) if facts.test is None else (facts.test, len(facts.test))
    cutoffs = graph.cutoffs(combinations)
    order = np.lexsort((*combinations.T[::-1], cutoffs))
    uncovered = order[(cutoffs[order] != SEEN) & (cutoffs[order] < k)]
    implied = implied_outcomes(graph, combinations, cutoffs)
    implied = np.where(implied < 0, implied, graph.values[implied])
    examined = Examined(facts, graph, combinations, cutoffs, uncovered, k, implied)
    report("what to collect next")
    stage = functools.partial(report, "what to collect next")
    helpful = next_examples(graph, combinations[uncovered], k=k, number=number, seed=seed, progress=stage)
    title = str(source) if isinstance(source, str | Path) else type(source).__name__
    return _finding(examined, title, possible, helpful), examined


def coverage_graph_tables(finding: CoverageGraphFinding, examined: Examined) -> dict[str, pd.DataFrame]:
    """The examined combinations with their cutoffs, the fragments with their evidence, and what to collect, as frames.

    Args:
        finding: The finding of `audit_coverage_graph`.
        examined: The data behind it.
    """
    import pandas as pd

    seen = examined.cutoffs == SEEN
    cutoff = examined.cutoffs.astype(object)
    cutoff[seen] = None
    words = [np.array(values, dtype=object) for values in examined.facts.values]
    because = np.full(len(seen), "", dtype=object)
    because[examined.uncovered] = examined.reasons()
    combinations = {
        name: words[place][examined.combinations[:, place]] for place, name in enumerate(finding.columns)
    } | {"cutoff": cutoff, "trained": seen, "because": because}
    combinations[f"implied {finding.outcome}"] = [examined.outcome(number) for number in examined.implied.tolist()]
    if examined.facts.answers is not None:
        combinations[finding.outcome] = [examined.outcome(number) for number in examined.facts.answers.tolist()]
    fragments = [(*each.fragment, each.contexts, each.shared, each.uncovered) for each in examined.evidence()]
    collect = [(*each.combination, each.sure, each.at_best, each.outcome) for each in finding.collect]
    order = np.lexsort((*examined.combinations.T[::-1], examined.cutoffs, seen))
    # Empty tables are written too, so that a file of an earlier audit cannot be mistaken for one of this audit.
    return {
        "combinations": pd.DataFrame(combinations).iloc[order],
        "fragments": pd.DataFrame(fragments, columns=[*finding.fragments[0], "contexts", "shared", "uncovered"]),
        "collect": pd.DataFrame(
            collect, columns=[*finding.columns, "covers for sure", "covers at best", "with outcome"]
        ),
    }


def _finding(examined: Examined, title: str, possible: int, helpful: Sequence[NextExample]) -> CoverageGraphFinding:
    facts, graph = examined.facts, examined.graph
    new = examined.cutoffs[examined.cutoffs != SEEN]
    # Cutoff 0 is listed even if no combination has it.
    levels, counts = np.unique(np.concatenate([[0], new]), return_counts=True)
    counts[0] -= 1
    reasons = examined.reasons()
    right = _right(examined, levels)
    first = examined.uncovered[:LISTED]
    uncovered = zip(examined.combinations[first].tolist(), examined.cutoffs[first].tolist(), reasons, strict=False)
    outcomes: dict[int | None, str] = dict(enumerate(facts.outcome_values))
    return CoverageGraphFinding(
        source=title,
        rows=facts.rows,
        examples=len(graph.inputs),
        columns=facts.chosen.columns,
        fragments=facts.chosen.fragments,
        outcome=facts.chosen.outcome,
        sizes=tuple((len(cut.fragments), len(cut.contexts)) for cut in graph.cuts),
        k=examined.k,
        possible=possible,
        looked_at=len(new),
        trained=len(examined.cutoffs) - len(new),
        cutoffs=tuple(AtCutoff(*each) for each in zip(levels.tolist(), counts.tolist(), right, strict=True)),
        uncovered_count=len(examined.uncovered),
        because={kind: reasons.count(kind) for kind in dict.fromkeys(reasons)},
        uncovered=tuple(Uncovered(examined.names(tokens), cutoff, why) for tokens, cutoff, why in uncovered),
        thinnest=tuple(examined.evidence(LISTED)),
        collect=tuple(
            Collect(examined.names(each.example), each.sure, each.at_best, outcomes.get(each.outcome))
            for each in helpful
        ),
        chain=_chain(examined),
        notes=tuple(_notes(examined, possible)),
        implied=tuple(_implied(examined)),
    )


def _right(examined: Examined, levels: Int[np.ndarray, " level"]) -> list[int | None]:
    """For each cutoff, how many combinations have the implied outcome; None for 0 and where outcomes are unknown."""
    answers = examined.facts.answers
    if answers is None:
        return [None] * len(levels)
    same = examined.implied == answers
    return [int(same[examined.cutoffs == level].sum()) if level > 0 else None for level in levels.tolist()]


def _implied(examined: Examined) -> Iterator[Implied]:
    """The covered combinations, most evidence first."""
    covered = np.flatnonzero((examined.cutoffs >= examined.k) & (examined.cutoffs > 0))
    answers = examined.facts.answers
    for index in covered[np.argsort(-examined.cutoffs[covered], kind="stable")][:LISTED].tolist():
        names = examined.names(examined.combinations[index].tolist())
        true = None if answers is None else examined.outcome(int(answers[index]))
        yield Implied(names, int(examined.cutoffs[index]), examined.outcome(int(examined.implied[index])), true)


def _chain(examined: Examined) -> Chain | None:
    """The chain of the combination that is covered by the least evidence."""
    covered = np.flatnonzero(examined.cutoffs >= examined.k)
    if not len(covered):
        return None
    weakest = covered[np.argmin(examined.cutoffs[covered])]
    explained = examined.graph.explain(examined.combinations[weakest].tolist())
    if explained.trained is None or explained.outcome is None:
        return None
    swaps = []
    for swap in explained.swaps:
        columns = tuple(examined.facts.chosen.columns[place] for place in swap.positions)
        before, after = (examined.names(tokens, swap.positions) for tokens in (swap.before, swap.after))
        swaps.append(SwapFinding(columns, before, after, swap.shared))
    example, trained = examined.names(explained.example), examined.names(explained.trained)
    outcome = examined.facts.outcome_values[explained.outcome]
    return Chain(example, explained.cutoff, tuple(swaps), trained, outcome)


def _notes(examined: Examined, possible: int) -> list[str]:
    facts, notes = examined.facts, []
    if repeats := facts.rows - len(examined.graph.inputs):
        notes.append(f"{counted(repeats, 'row repeats', 'rows repeat')} another row; repeats count once.")
    notes += [
        f"{name} has values that differ only in white space and count as different: {' and '.join(map(repr, same))}."
        for name, same in facts.alike[:SHOWN]
    ]
    if len(facts.alike) > SHOWN:
        notes.append(f"So do {len(facts.alike) - SHOWN:,} more groups of values.")
    contexts = max(len(cut.contexts) for cut in examined.graph.cuts)
    if examined.k > contexts:
        notes.append(
            f"k is {examined.k}, but there {'is' if contexts == 1 else 'are'} only {counted(contexts, 'context')}: no two fragments can share {examined.k}."
        )
    if facts.test is None and possible > len(examined.combinations):
        notes.append(
            f"{len(examined.combinations):,} of {possible:,} combinations that are not in training were drawn; all counts refer to these."
        )
    if len(examined.uncovered) > CANDIDATES:
        notes.append(
            f"{CANDIDATES:,} of the uncovered combinations were drawn as candidates for what to collect; their coverage is counted over all."
        )
    if not any(len(cut.forest.weight) for cut in examined.graph.cuts):
        notes.append(
            "No two fragments share a context and agree in all shared contexts, so no combination follows from the facts. Check the columns."
        )
    return notes
