"""Which examples to collect next, so that more inputs follow from training."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Bool, Int
from scipy import sparse

from recombine.spaces.rows import row_keys
from recombine.supports.coverage_graph import CoverageGraph
from recombine.supports.coverage_graph.cut import BLOCK, Inputs, marks

CANDIDATES = 2000
"""The most uncovered inputs that are considered. Of more, a sample of this size is drawn."""
TOGETHER = 256
"""The number of candidates examined at a time."""


@dataclasses.dataclass(frozen=True)
class NextExample:
    """An uncovered input to collect, and what it would cover if nothing else were collected."""

    example: tuple[int, ...]
    sure: int
    """The number of uncovered inputs, itself included, that it covers whatever its outcome is."""
    at_best: int
    """The number that it covers with the most useful outcome. With several cuts this is the sure number."""
    outcome: int | None
    """That outcome; None if no outcome covers more than another."""


_Reach = tuple[int, int, Int[np.ndarray, " _"]]
"""What a candidate covers at best, with its outcome (-1: none covers more than another) and the classes that it joins."""


def next_examples(
    graph: CoverageGraph,
    uncovered: Inputs,
    *,
    k: int = 1,
    number: int = 10,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> tuple[NextExample, ...]:
    """Choose uncovered inputs to collect, the most useful first.

    The choice is greedy: each is taken for what it covers at best beyond those before it. Such an example cannot remove
    coverage: no fragment of its class was seen in its context, so it contradicts nothing in its class.

    Args:
        graph: The coverage graph of the training examples.
        uncovered: Inputs with a cutoff below k.
        k: The number of shared contexts that counts as evidence.
        number: The most inputs to choose.
        seed: The seed of the sample where there are too many candidates.
        progress: Called with the share of the work that is done.

    Returns:
        Up to `number` examples.
    """
    if not len(uncovered):
        return ()
    uncovered = uncovered[np.sort(np.unique(row_keys(graph.extended_codes(uncovered)), return_index=True)[1])]
    chosen = np.arange(len(uncovered))
    if len(uncovered) > CANDIDATES:
        chosen = np.sort(np.random.default_rng(seed).choice(len(uncovered), CANDIDATES, replace=False))
    component = graph.components(uncovered, k)
    sure = np.bincount(component)[component]
    merging = _Merging(graph, uncovered, k) if len(graph.cuts) == 1 else None
    reach = None if merging is None else merging.reach(chosen, progress or (lambda share: None))

    def covered(index: int) -> Bool[np.ndarray, " n"]:
        own = component == component[chosen[index]]
        if merging is None or reach is None:
            return own
        return merging.covered(int(chosen[index]), reach[index][2])

    gain = sure[chosen] if reach is None else np.array([at_best for at_best, _, _ in reach])
    examples = []
    for index in _greedy(gain, sure[chosen], covered, len(uncovered), number):
        outcome = -1 if reach is None else reach[index][1]
        examples.append(
            NextExample(
                tuple(uncovered[chosen[index]].tolist()),
                int(sure[chosen[index]]),
                int(gain[index]),
                None if outcome < 0 else int(graph.values[outcome].item()),
            )
        )
    return tuple(examples)


def _greedy(
    gain: np.ndarray, sure: np.ndarray, covered: Callable[[int], np.ndarray], size: int, number: int
) -> list[int]:
    """Candidates by what they cover beyond those before them. A gain only falls, so few are counted again."""
    heap = [(-int(most), -int(safe), index) for index, (most, safe) in enumerate(zip(gain, sure, strict=True))]
    heapq.heapify(heap)
    taken = np.zeros(size, dtype=bool)
    chosen: list[int] = []
    while heap and len(chosen) < number:
        _, safe, index = heapq.heappop(heap)
        reached = covered(index)
        new = int((reached & ~taken).sum())
        if new and heap and (-new, safe, index) > heap[0]:
            heapq.heappush(heap, (-new, safe, index))
        elif new:
            chosen.append(index)
            taken |= reached
    return chosen


class _Merging:
    """How the classes of a cut change with one more example."""

    def __init__(self, graph: CoverageGraph, uncovered: Inputs, k: int) -> None:
        (self.cut,) = graph.cuts
        self.k, self.outcomes = k, graph.outcomes
        codes = graph.codes(uncovered)
        self.fragment, self.known_context = self.cut.numbers(codes)
        self.label, self.context = self.cut.cells(graph.extended_codes(uncovered), k)
        self.classes = self.cut.classes(k)
        self.shape = (
            max(int(self.classes.max()), int(self.label.max())) + 1,
            max(len(self.cut.contexts), int(self.context.max()) + 1),
        )
        self.wanted = _counts(self.label, self.context, self.shape)
        """The number of uncovered inputs by class and context."""
        self.there = _counts(self.classes[self.cut.fragment_of], self.cut.context_of, self.shape)
        """The number of training examples by class and context."""
        self.order = np.argsort(self.cut.context_of, kind="stable")
        self.starts = np.searchsorted(self.cut.context_of[self.order], np.arange(len(self.cut.contexts) + 1))

    def reach(self, chosen: Int[np.ndarray, " candidate"], progress: Callable[[float], None]) -> list[_Reach]:
        """The best outcome of each candidate."""
        reach: list[_Reach] = []
        step = max(1, min(TOGETHER, BLOCK // len(self.cut.fragments)))
        for start in range(0, len(chosen), step):
            reach += self._best(chosen[start : start + step])
            progress(len(reach) / len(chosen))
        return reach

    def _best(self, chosen: Int[np.ndarray, " candidate"]) -> Iterator[_Reach]:
        """Try each candidate with each outcome of its context in training, and the classes that would join."""
        joins = self._joins(chosen)
        # Without an outcome, a candidate covers what its class has in its context.
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
        # The best for each candidate; among equals no outcome, which comes first.
        order = np.lexsort((pairs[:, 1], -gain, pairs[:, 0]))
        best = order[np.unique(pairs[order, 0], return_index=True)[1]]
        for group in best.tolist():
            classes = member.indices[member.indptr[group] : member.indptr[group + 1]]
            yield int(gain[group]), int(pairs[group, 1]), classes.astype(np.int64)

    def _joins(self, chosen: Int[np.ndarray, " candidate"]) -> Int[np.ndarray, "join 3"]:
        """Rows of candidate (within `chosen`), outcome and class: with the outcome it joins the class."""
        known, row = np.unique(np.maximum(self.fragment[chosen], 0), return_inverse=True)
        behaviour = self.cut.behaviour(known)
        joins = [np.empty((0, 3), dtype=np.int64)]
        for index, candidate in enumerate(chosen.tolist()):
            context = self.known_context[candidate]
            if context < 0:
                continue
            examples = self.order[self.starts[context] : self.starts[context + 1]]
            others = self.cut.fragment_of[examples]
            # They would agree on one more shared context; an unseen fragment shares none so far.
            shared = np.where(self.fragment[candidate] >= 0, behaviour[row[index], others], 0)
            kept = shared >= self.k - 1
            labels, outcomes = self.classes[others[kept]], self.outcomes[examples[kept]]
            joins.append(np.stack([np.full(len(outcomes), index), outcomes, labels], axis=1))
        return np.unique(np.concatenate(joins), axis=0)

    def covered(self, candidate: int, classes: Int[np.ndarray, " _"]) -> Bool[np.ndarray, " n"]:
        """Which uncovered inputs are covered once the candidate is trained and these classes are merged."""
        reached = np.asarray(self.there[classes].sum(axis=0)).reshape(-1) > 0
        reached[self.context[candidate]] = True
        return np.isin(self.label, classes) & reached[self.context]


def _counts(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """The number of times that each pair of indices occurs."""
    counts = marks(rows, columns, *shape)
    counts.sum_duplicates()
    return counts
