"""One way to divide inputs into a fragment and a context, and the fragments that behave alike in training."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse import csgraph

from recombine.spaces.rows import lookup, row_keys

Inputs = Int[np.ndarray, "n position"]
"""Inputs as rows of tokens or of their codes."""

BLOCK = 2**21
"""The number of pairs of fragments compared, and of links kept, at a time."""


@dataclasses.dataclass(frozen=True)
class Links:
    """Pairs of fragments that share training contexts and have the same outcome in all of them."""

    first: Int[np.ndarray, " link"]
    second: Int[np.ndarray, " link"]
    weight: Int[np.ndarray, " link"]
    """The number of contexts that they share: they are k-equivalent for every k up to this number."""


class Cut:
    """A division of inputs: the positions `fragment` are the fragment, all others the context.

    Inputs are codes, each once. `progress` is called with the share of the work that is done.
    """

    def __init__(
        self,
        inputs: Int[np.ndarray, "example position"],
        outcomes: Int[np.ndarray, " example"],
        fragment: Sequence[int],
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.fragment = list(fragment)
        self.context = [position for position in range(inputs.shape[1]) if position not in self.fragment]
        self._fragment_keys, first, self.fragment_of = _numbered(inputs[:, self.fragment])
        self.fragments = inputs[first][:, self.fragment]
        """The tokens of each fragment."""
        self._context_keys, first, self.context_of = _numbered(inputs[:, self.context])
        self.contexts = inputs[first][:, self.context]
        self._behave(outcomes)
        self.forest = self._spanning(progress or (lambda share: None))
        """A spanning forest of the heaviest links: those of weight k or more connect the same fragments as all such links."""

    def _behave(self, outcomes: Int[np.ndarray, " example"]) -> None:
        """Prepare two matrices whose product compares every pair of fragments.

        The product is the number of shared contexts where a pair agrees on all of them, negative where it differs in one,
        and zero where it shares none: agreements, minus a large number for each shared context without agreement.
        """
        large = len(self.contexts) + 1
        _, observed = np.unique(self.context_of * (int(outcomes.max()) + 1) + outcomes, return_inverse=True)
        seen = marks(self.fragment_of, self.context_of, len(self.fragments), len(self.contexts))
        same = marks(self.fragment_of, observed, len(self.fragments), int(observed.max()) + 1)
        self._left = sparse.csr_array(sparse.hstack([same, seen]))
        self._right = sparse.csr_array(sparse.hstack([same * (large + 1), seen * -large]))
        # The number of pairs that a comparison of a fragment with all others visits, once per shared context.
        self._work = np.cumsum(seen @ seen.sum(axis=0))

    def links(self, rows: Int[np.ndarray, " row"], start: int = 0) -> Links:
        """The links from some fragments (numbered within `rows`) to those from `start` on, themselves included."""
        shared = (self._left[rows] @ self._right[start:].T).tocoo()
        kept = shared.data > 0
        return Links(shared.row[kept].astype(np.int64), shared.col[kept].astype(np.int64) + start, shared.data[kept])

    def behaviour(self, rows: Int[np.ndarray, " row"]) -> Int[np.ndarray, "row fragment"]:
        """The comparison with all fragments: negative where two contradict each other, zero where they share no context."""
        return (self._left[rows] @ self._right.T).toarray()

    def _spanning(self, progress: Callable[[float], None]) -> Links:
        size, start, waiting, held = len(self.fragments), 0, list[Links](), 0
        while start < size:
            done = 0 if start == 0 else int(self._work[start - 1])
            stop = max(start + 1, int(np.searchsorted(self._work, done + BLOCK, side="right")))
            links = self.links(np.arange(start, stop), start)
            after = links.second > links.first + start  # Each pair once.
            waiting.append(Links(links.first[after] + start, links.second[after], links.weight[after]))
            held += int(after.sum())
            if held > BLOCK:
                waiting = [_heaviest(waiting, size)]
                held = len(waiting[0].weight)
            progress(int(self._work[stop - 1]) / int(self._work[-1]))
            start = stop
        return _heaviest(waiting, size)

    def classes(self, k: int) -> Int[np.ndarray, " fragment"]:
        """The k-class of each fragment: the transitive closure of k-equivalence."""
        kept = self.forest.weight >= k
        graph = marks(self.forest.first[kept], self.forest.second[kept], *[len(self.fragments)] * 2)
        return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)

    def evidence(self) -> Int[np.ndarray, " fragment"]:
        """For each fragment, the most contexts that it shares with another fragment without a contradiction."""
        evidence = np.zeros(len(self.fragments), dtype=np.int64)
        for ends in (self.forest.first, self.forest.second):
            np.maximum.at(evidence, ends, self.forest.weight)
        return evidence

    def numbers(self, inputs: Inputs) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The numbers of the fragment and the context of inputs; -1 where training does not have it."""
        return (
            lookup(self._fragment_keys, inputs[:, self.fragment]),
            lookup(self._context_keys, inputs[:, self.context]),
        )

    def cells(self, inputs: Inputs, k: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The k-class and the context of inputs. Each one that training does not have gets a new number."""
        fragment, context = self.numbers(inputs)
        classes = self.classes(k)
        label = np.where(fragment < 0, -1, classes[fragment])
        return (
            _beyond(label, inputs[:, self.fragment], int(classes.max()) + 1),
            _beyond(context, inputs[:, self.context], len(self.contexts)),
        )


def _numbered(rows: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.unique(row_keys(rows), return_index=True, return_inverse=True)


def _beyond(number: Int[np.ndarray, " n"], rows: Inputs, size: int) -> Int[np.ndarray, " n"]:
    """The numbers, with new ones from `size` on in place of -1."""
    new = number < 0
    numbers = number.copy()
    numbers[new] = size + _numbered(rows[new])[2]
    return numbers


def marks(rows: np.ndarray, columns: np.ndarray, height: int, width: int) -> sparse.csr_array:
    """A sparse matrix with a one at each pair of indices."""
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(height, width))


def _heaviest(links: Sequence[Links], size: int) -> Links:
    """A spanning forest of the heaviest links."""
    first, second, weight = (
        np.concatenate([getattr(part, name) for part in links]) for name in ("first", "second", "weight")
    )
    top = int(weight.max(initial=0)) + 1
    graph = sparse.csr_array(((top - weight).astype(np.float64), (first, second)), shape=(size, size))
    tree = csgraph.minimum_spanning_tree(graph).tocoo()
    return Links(tree.row.astype(np.int64), tree.col.astype(np.int64), top - tree.data.astype(np.int64))
