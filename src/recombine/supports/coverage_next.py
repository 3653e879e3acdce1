"""Which examples to collect next, so that more combinations follow from training."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse

from recombine.supports.coverage_cut import BLOCK
from recombine.supports.coverage_graph import CoverageGraph
from recombine.supports.rows import row_keys

CANDIDATES = 2000
"""So many uncovered combinations are looked at as examples to collect; of more, as many are drawn."""
TOGETHER = 256
"""So many of them are looked at at a time."""


@dataclasses.dataclass(frozen=True)
class NextExample:
    """An uncovered combination that would be worth an example, and what it would cover if nothing else were collected."""

    example: tuple[int, ...]
    sure: int
    """So many uncovered combinations, itself included, are covered whatever its outcome turns out to be."""
    at_best: int
    """So many with the outcome that helps most. With several cuts only what is sure is counted (of an input with an
    unknown token: itself)."""
    outcome: int | None
    """That outcome; None if none helps more than another."""


@dataclasses.dataclass(frozen=True)
class _Reach:
    """What each candidate covers at best, and by which outcome and classes."""

    at_best: Int[np.ndarray, " candidate"]
    outcome: Int[np.ndarray, " candidate"]
    """-1: none helps more than another."""
    classes: list[Int[np.ndarray, " _"]]


def next_examples(
    graph: CoverageGraph,
    uncovered: Int[np.ndarray, "n position"],
    *,
    k: int = 1,
    number: int = 10,
    seed: int = 0,
    on: Callable[[float], None] | None = None,
) -> tuple[NextExample, ...]:
    """Up to `number` of the uncovered combinations (with a cutoff below k), most useful first.

    Nothing that is k-covered can be lost by such an example: no fragment of its class was seen in its context, so that
    there is nothing in its class to contradict. Greedy: each is chosen for what it covers at best beyond those before it.
    """
    if not len(uncovered):
        return ()
    uncovered = uncovered[np.sort(np.unique(row_keys(graph.apart(uncovered)), return_index=True)[1])]
    chosen = np.arange(len(uncovered))
    if len(uncovered) > CANDIDATES:
        chosen = np.sort(np.random.default_rng(seed).choice(len(uncovered), CANDIDATES, replace=False))
    component = graph.components(uncovered, k)
    sure = np.bincount(component)[component]
    merging = _Merging(graph, uncovered, k) if len(graph.cuts) == 1 else None
    reach = None if merging is None else merging.reach(chosen, on or (lambda share: None))

    def covered(place: int) -> Bool[np.ndarray, " n"]:
        own = component == component[chosen[place]]
        if merging is None or reach is None:
            return own
        return merging.covered(int(chosen[place]), reach.classes[place])

    gain = sure[chosen] if reach is None else reach.at_best
    found = []
    for place in _greedy(gain, sure[chosen], covered, len(uncovered), number):
        said = -1 if reach is None else int(reach.outcome[place])
        found.append(
            NextExample(
                tuple(uncovered[chosen[place]].tolist()),
                int(sure[chosen[place]]),
                int(gain[place]),
                None if said < 0 else int(graph.values[said].item()),
            )
        )
    return tuple(found)


def _greedy(
    gain: np.ndarray, sure: np.ndarray, covered: Callable[[int], np.ndarray], size: int, number: int
) -> list[int]:
    """Places by what they cover that those before them do not. What a place adds only falls, so few are counted anew."""
    heap = [
        (-int(most), -int(safe), place) for place, (most, safe) in enumerate(zip(gain, sure, strict=True))
    ]
    heapq.heapify(heap)
    taken = np.zeros(size, dtype=bool)
    found: list[int] = []
    while heap and len(found) < number:
        _, safe, place = heapq.heappop(heap)
        reached = covered(place)
        new = int((reached & ~taken).sum())
        if new and heap and (-new, safe, place) > heap[0]:
            heapq.heappush(heap, (-new, safe, place))
        elif new:
            found.append(place)
            taken |= reached
    return found


class _Merging:
    """What becomes of the classes of a cut if one more example is there."""

    def __init__(self, graph: CoverageGraph, uncovered: Int[np.ndarray, "n position"], k: int) -> None:
        (self.cut,) = graph.cuts
        self.k, self.outcomes = k, graph.outcomes
        codes = graph.codes(uncovered)
        self.fragment, self.known_context = self.cut.numbers(codes)
        self.label, self.context = self.cut.cells(graph.apart(uncovered), k)
        self.classes = self.cut.classes(k)
        self.shape = (
            max(int(self.classes.max()), int(self.label.max())) + 1,
            max(len(self.cut.contexts), int(self.context.max()) + 1),
        )
        self.wanted = _counts(self.label, self.context, self.shape)
        """By class and context: uncovered combinations."""
        self.there = _counts(self.classes[self.cut.fragment_of], self.cut.context_of, self.shape)
        """By class and context: training examples."""
        self.order = np.argsort(self.cut.context_of, kind="stable")
        self.starts = np.searchsorted(self.cut.context_of[self.order], np.arange(len(self.cut.contexts) + 1))

    def reach(self, chosen: Int[np.ndarray, " candidate"], on: Callable[[float], None]) -> _Reach:
        """The best outcome of each candidate."""
        size = len(chosen)
        found = _Reach(np.zeros(size, np.int64), np.full(size, -1), [np.empty(0, np.int64)] * size)
        step = max(1, min(TOGETHER, BLOCK // len(self.cut.fragments)))
        for start in range(0, size, step):
            self._look(chosen[start : start + step], start, found)
            on(min(size, start + step) / size)
        return found

    def _look(self, chosen: Int[np.ndarray, " candidate"], start: int, found: _Reach) -> None:
        """Some candidates: each with each outcome that its context had in training, and the classes that would join."""
        joins = self._joins(chosen)
        # With no outcome at all, a candidate covers what its own class has in its context.
        alone = np.stack([np.arange(len(chosen)), np.full(len(chosen), -1)], axis=1)
        pairs, number = np.unique(np.concatenate([alone, joins[:, :2]]), axis=0, return_inverse=True)
        number = number.reshape(-1)[len(chosen) :]
        member = _counts(
            np.concatenate([np.arange(len(pairs)), number]),
            np.concatenate([self.label[chosen[pairs[:, 0]]], joins[:, 2]]),
            (len(pairs), self.shape[0]),
        )
        member.data[:] = 1
        own = _counts(np.arange(len(pairs)), self.context[chosen[pairs[:, 0]]], (len(pairs), self.shape[1]))
        reached = sparse.csr_array(member @ self.there + own)
        reached.data[:] = 1
        gain = np.asarray(reached.multiply(member @ self.wanted).sum(axis=1)).reshape(-1)
        # The most for each candidate; of equals no outcome, which stands first.
        order = np.lexsort((pairs[:, 1], -gain, pairs[:, 0]))
        best = order[np.unique(pairs[order, 0], return_index=True)[1]]
        for place, group in enumerate(best.tolist()):
            found.at_best[start + place] = gain[group]
            found.outcome[start + place] = pairs[group, 1]
            found.classes[start + place] = member.indices[
                member.indptr[group] : member.indptr[group + 1]
            ].astype(np.int64)

    def _joins(self, chosen: Int[np.ndarray, " candidate"]) -> Int[np.ndarray, "join 3"]:
        """Candidate (within `chosen`), outcome, class: with this outcome it would be k-equivalent to one of the class."""
        known, row = np.unique(np.maximum(self.fragment[chosen], 0), return_inverse=True)
        behaviour = self.cut.behaviour(known)
        made = [np.empty((0, 3), dtype=np.int64)]
        for place, one in enumerate(chosen.tolist()):
            context = self.known_context[one]
            if context < 0:
                continue
            examples = self.order[self.starts[context] : self.starts[context + 1]]
            others = self.cut.fragment_of[examples]
            # One shared context more, on which they would agree; what was never seen shares none so far.
            shared = (
                behaviour[row[place], others]
                if self.fragment[one] >= 0
                else np.zeros(len(others), dtype=np.int64)
            )
            kept = shared >= self.k - 1
            labels, said = self.classes[others[kept]], self.outcomes[examples[kept]]
            made.append(np.stack([np.full(len(said), place), said, labels], axis=1))
        return np.unique(np.concatenate(made), axis=0)

    def covered(self, one: int, classes: Int[np.ndarray, " _"]) -> Bool[np.ndarray, " n"]:
        """Which uncovered combinations are covered once these classes are one, with a combination of theirs trained."""
        reached = np.asarray(self.there[classes].sum(axis=0)).reshape(-1) > 0
        reached[self.context[one]] = True
        return np.isin(self.label, classes) & reached[self.context]


def _counts(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """How often each pair of numbers comes."""
    made = sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)
    made.sum_duplicates()
    return made
