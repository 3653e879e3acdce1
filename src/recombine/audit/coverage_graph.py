"""What a table of facts covers by itself: which combinations follow from it, by how much evidence, and what to collect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from recombine.audit.coverage_facts import Facts, read_facts
from recombine.audit.coverage_graph_findings import (
    AtCutoff,
    Chain,
    Collect,
    CoverageGraphFinding,
    FragmentEvidence,
    SwapFinding,
    Uncovered,
)
from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.supports.coverage_graph import SEEN, CoverageGraph
from recombine.supports.coverage_next import CANDIDATES, NextExample, next_examples

if TYPE_CHECKING:
    import pandas as pd

LOOKED_AT = 100_000
"""So many of the combinations that training has not are looked at, unless a table names them."""
LISTED = 1000
"""So many uncovered combinations and fragments stand in the finding; the tables have them all."""

SHOWN = 3
"""So many groups of values that look alike are named."""

UNSEEN_FRAGMENT = "its fragment is not in training"
UNSEEN_CONTEXT = "its context is not in training"
ALONE = "no other fragment is known to be like its own"
NOT_THERE = "no fragment like its own was seen in its context"
UNSEEN_TOKEN = "it has a value that training has not at that place"
NO_CHAIN = "no chain of swaps leads to a training example"


@dataclasses.dataclass(frozen=True)
class Looked:
    """The facts, their graph, and the combinations that were looked at with their cutoffs."""

    facts: Facts
    graph: CoverageGraph
    combinations: Int[np.ndarray, "n column"]
    cutoffs: Int[np.ndarray, " n"]
    uncovered: Int[np.ndarray, " m"]
    """Places of the uncovered combinations, smallest cutoff first."""
    k: int

    def names(self, tokens: Sequence[int], places: Sequence[int] | None = None) -> tuple[str, ...]:
        """Tokens as the table writes them."""
        places = range(len(tokens)) if places is None else places
        return tuple(self.facts.values[place][token] for place, token in zip(places, tokens, strict=True))

    def reasons(self) -> list[str]:
        """Why each of the uncovered combinations is not covered."""
        cut = self.graph.cuts[0]
        codes = self.graph.codes(self.combinations[self.uncovered])
        if len(self.graph.cuts) > 1:
            return np.where((codes < 0).any(axis=1), UNSEEN_TOKEN, NO_CHAIN).tolist()
        fragment, context = cut.numbers(codes)
        classes = cut.classes(self.k)
        alone = np.bincount(classes)[classes[fragment]] == 1
        kinds = [fragment < 0, context < 0, alone]
        return np.select(kinds, [UNSEEN_FRAGMENT, UNSEEN_CONTEXT, ALONE], NOT_THERE).tolist()

    def evidence(self, most: int | None = None) -> list[FragmentEvidence]:
        """The fragments of training (of the first way of cutting), those with least evidence first."""
        cut = self.graph.cuts[0]
        shared, contexts = cut.evidence(), np.bincount(cut.fragment_of, minlength=len(cut.fragments))
        missing, _ = cut.numbers(self.graph.codes(self.combinations[self.uncovered]))
        uncovered = np.bincount(missing[missing >= 0], minlength=len(cut.fragments))
        order = np.lexsort((-uncovered, contexts, shared))[:most]
        tokens = [self.graph.tokens[place] for place in cut.fragment]
        told = np.stack([own[cut.fragments[order, n]] for n, own in enumerate(tokens)], axis=1).tolist()
        numbers = np.stack([contexts, shared, uncovered], axis=1)[order].tolist()
        return [
            FragmentEvidence(self.names(one, cut.fragment), *counts)
            for one, counts in zip(told, numbers, strict=True)
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
    on: Callable[..., None] | None = None,
) -> tuple[CoverageGraphFinding, Looked]:
    """Which combinations follow from a table of facts, and which `number` of examples to collect next.

    `fragments` names the columns of the fragment, once for each way of cutting an example; `test` is a table of the
    combinations to look at, by default all fragments in all contexts.
    """
    if k < 1:
        raise BadInput(f"k is {k}; expected 1 or more.", fix="1 asks for one shared context, 2 for two, ...")
    say = on or (lambda what, done=None: None)
    say("reading the table")
    facts = read_facts(source, fragments=fragments, context=context, outcome=outcome, test=test, where=where)
    say("comparing fragments")
    chosen = facts.chosen.positions
    graph = CoverageGraph(
        facts.inputs, facts.outcomes, chosen, lambda share: say("comparing fragments", share)
    )
    say("finding cutoffs")
    asked, possible = (
        graph.untrained(LOOKED_AT, seed) if facts.test is None else (facts.test, len(facts.test))
    )
    cutoffs = graph.cutoffs(asked)
    order = np.lexsort((*asked.T[::-1], cutoffs))
    uncovered = order[(cutoffs[order] != SEEN) & (cutoffs[order] < k)]
    looked = Looked(facts, graph, asked, cutoffs, uncovered, k)
    say("what to collect next")
    helpful = next_examples(
        graph,
        asked[uncovered],
        k=k,
        number=number,
        seed=seed,
        on=lambda share: say("what to collect next", share),
    )
    title = str(source) if isinstance(source, str | Path) else type(source).__name__
    return _finding(looked, title, possible, helpful), looked


def coverage_graph_tables(found: CoverageGraphFinding, looked: Looked) -> dict[str, pd.DataFrame]:
    """All that was looked at: combinations with cutoffs, fragments with their evidence, what to collect."""
    import pandas as pd

    seen = looked.cutoffs == SEEN
    cutoff = looked.cutoffs.astype(object)
    cutoff[seen] = None
    words = [np.array(values, dtype=object) for values in looked.facts.values]
    because = np.full(len(seen), "", dtype=object)
    because[looked.uncovered] = looked.reasons()
    combinations = {
        name: words[place][looked.combinations[:, place]] for place, name in enumerate(found.columns)
    } | {"cutoff": cutoff, "trained": seen, "because": because}
    fragments = [(*one.fragment, one.contexts, one.shared, one.uncovered) for one in looked.evidence()]
    collect = [(*one.combination, one.sure, one.at_best, one.outcome) for one in found.collect]
    order = np.lexsort((*looked.combinations.T[::-1], looked.cutoffs, seen))
    # All of them, even without rows: one of an earlier table would be taken for one of this.
    return {
        "combinations": pd.DataFrame(combinations).iloc[order],
        "fragments": pd.DataFrame(
            fragments, columns=[*found.fragments[0], "contexts", "shared", "uncovered"]
        ),
        "collect": pd.DataFrame(
            collect, columns=[*found.columns, "covers for sure", "covers at best", "with outcome"]
        ),
    }


def _finding(
    looked: Looked, title: str, possible: int, helpful: Sequence[NextExample]
) -> CoverageGraphFinding:
    facts, graph = looked.facts, looked.graph
    new = looked.cutoffs[looked.cutoffs != SEEN]
    # 0 is told even where there is none.
    levels, counts = np.unique(np.concatenate([[0], new]), return_counts=True)
    counts[0] -= 1
    reasons = looked.reasons()
    first = looked.uncovered[:LISTED]
    return CoverageGraphFinding(
        source=title,
        rows=facts.rows,
        examples=len(graph.inputs),
        columns=facts.chosen.columns,
        fragments=facts.chosen.fragments,
        outcome=facts.chosen.outcome,
        sizes=tuple((len(cut.fragments), len(cut.contexts)) for cut in graph.cuts),
        k=looked.k,
        possible=possible,
        looked_at=len(new),
        trained=len(looked.cutoffs) - len(new),
        cutoffs=tuple(AtCutoff(*both) for both in zip(levels.tolist(), counts.tolist(), strict=True)),
        uncovered_count=len(looked.uncovered),
        because={kind: reasons.count(kind) for kind in dict.fromkeys(reasons)},
        uncovered=tuple(
            Uncovered(looked.names(one), cutoff, because)
            for one, cutoff, because in zip(
                looked.combinations[first].tolist(), looked.cutoffs[first].tolist(), reasons, strict=False
            )
        ),
        thinnest=tuple(looked.evidence(LISTED)),
        collect=tuple(
            Collect(
                looked.names(one.example),
                one.sure,
                one.at_best,
                None if one.outcome is None else facts.said[one.outcome],
            )
            for one in helpful
        ),
        chain=_chain(looked),
        notes=tuple(_notes(looked, possible)),
    )


def _chain(looked: Looked) -> Chain | None:
    """How the combination that is covered by least evidence is covered."""
    covered = np.flatnonzero(looked.cutoffs >= looked.k)
    if not len(covered):
        return None
    weakest = covered[np.argmin(looked.cutoffs[covered])]
    found = looked.graph.explain(looked.combinations[weakest].tolist())
    if found.trained is None or found.outcome is None:
        return None
    columns = looked.facts.chosen.columns
    swaps = tuple(
        SwapFinding(
            tuple(columns[place] for place in one.positions),
            looked.names(one.before, one.positions),
            looked.names(one.after, one.positions),
            one.shared,
        )
        for one in found.swaps
    )
    said = looked.facts.said[found.outcome]
    return Chain(looked.names(found.example), found.cutoff, swaps, looked.names(found.trained), said)


def _notes(looked: Looked, possible: int) -> list[str]:
    facts, said = looked.facts, []
    repeats = facts.rows - len(looked.graph.inputs)
    if repeats:
        said.append(f"{counted(repeats, 'row repeats', 'rows repeat')} another one and counts only once.")
    said += [
        f"{name} has values that differ only by white space, and count as different: {' and '.join(map(repr, same))}."
        for name, same in facts.alike[:SHOWN]
    ]
    if len(facts.alike) > SHOWN:
        said.append(f"So do {len(facts.alike) - SHOWN:,} more groups of values.")
    contexts = max(len(cut.contexts) for cut in looked.graph.cuts)
    if looked.k > contexts:
        said.append(
            f"k is {looked.k}, but there {'is' if contexts == 1 else 'are'} only {counted(contexts, 'context')}: no two fragments can share so many."
        )
    if facts.test is None and possible > len(looked.combinations):
        said.append(
            f"{len(looked.combinations):,} of {possible:,} combinations that are not in training were drawn: all counts are of these."
        )
    if len(looked.uncovered) > CANDIDATES:
        said.append(
            f"{CANDIDATES:,} of the uncovered combinations were drawn to find what to collect; what these cover is counted over all."
        )
    if not any(len(cut.forest.weight) for cut in looked.graph.cuts):
        said.append(
            "No two fragments share a context and agree on all they share: nothing follows from anything. Are these the right columns?"
        )
    return said
