"""One way of cutting inputs into a fragment and a context, and which fragments behaved alike in training."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse import csgraph

from recombine.supports.rows import row_keys

BLOCK = 2**21
"""So many pairs of fragments are compared, and so many links held, at a time."""


@dataclasses.dataclass(frozen=True)
class Links:
    """Pairs of fragments that share training contexts and agree on all of them."""

    first: Int[np.ndarray, " link"]
    second: Int[np.ndarray, " link"]
    weight: Int[np.ndarray, " link"]
    """How many contexts they share: they are k-equivalent for every k up to that."""


class Cut:
    """The positions that form the fragment; all others are the context. Inputs are codes, each of them once."""

    def __init__(
        self,
        inputs: Int[np.ndarray, "example position"],
        outcomes: Int[np.ndarray, " example"],
        fragment: Sequence[int],
        on: Callable[[float], None] | None = None,
    ) -> None:
        self.fragment = list(fragment)
        self.context = [place for place in range(inputs.shape[1]) if place not in self.fragment]
        self._fragment_keys, first, self.fragment_of = _numbered(inputs[:, self.fragment])
        self.fragments = inputs[first][:, self.fragment]
        """The tokens of each fragment."""
        self._context_keys, first, self.context_of = _numbered(inputs[:, self.context])
        self.contexts = inputs[first][:, self.context]
        self._behave(outcomes)
        self.forest = self._spanning(on or (lambda share: None))
        """The heaviest links: those of weight k and more join the same fragments as all such links do."""

    def _behave(self, outcomes: Int[np.ndarray, " example"]) -> None:
        """Two matrices whose product tells of every pair of fragments what they share.

        It is the number of shared contexts where they agree on all of them, negative where they differ in one, and zero
        where they share none: agreements, less a large number for each shared context without agreement.
        """
        large = len(self.contexts) + 1
        _, said = np.unique(self.context_of * (int(outcomes.max()) + 1) + outcomes, return_inverse=True)
        seen = _marks(self.fragment_of, self.context_of, len(self.fragments), len(self.contexts))
        same = _marks(self.fragment_of, said, len(self.fragments), int(said.max()) + 1)
        self._left = sparse.csr_array(sparse.hstack([same, seen]))
        self._right = sparse.csr_array(sparse.hstack([same * (large + 1), seen * -large]))
        # Comparing a fragment with all others looks at so many pairs, a pair once for each context that it shares.
        self._work = np.cumsum(seen @ seen.sum(axis=0))

    def links(self, rows: Int[np.ndarray, " row"], start: int = 0) -> Links:
        """The links of some fragments (numbered within `rows`) to those from `start` on, themselves included."""
        made = (self._left[rows] @ self._right[start:].T).tocoo()
        kept = made.data > 0
        return Links(
            made.row[kept].astype(np.int64), made.col[kept].astype(np.int64) + start, made.data[kept]
        )

    def behaviour(self, rows: Int[np.ndarray, " row"]) -> Int[np.ndarray, "row fragment"]:
        """As `links`, for all pairs: negative where they contradict each other, zero where they share nothing."""
        return (self._left[rows] @ self._right.T).toarray()

    def _spanning(self, on: Callable[[float], None]) -> Links:
        size, start, waiting, held = len(self.fragments), 0, list[Links](), 0
        while start < size:
            done = 0 if start == 0 else int(self._work[start - 1])
            stop = max(start + 1, int(np.searchsorted(self._work, done + BLOCK, side="right")))
            found = self.links(np.arange(start, stop), start)
            after = found.second > found.first + start
            waiting.append(
                Links(found.first[after] + start, found.second[after], found.weight[after])
            )  # Each pair once.
            held += int(after.sum())
            if held > BLOCK:
                waiting = [_heaviest(waiting, size)]
                held = len(waiting[0].weight)
            on(int(self._work[stop - 1]) / int(self._work[-1]))
            start = stop
        return _heaviest(waiting, size)

    def classes(self, k: int) -> Int[np.ndarray, " fragment"]:
        """The k-class of each fragment: k-equivalence, closed over chains."""
        kept = self.forest.weight >= k
        graph = _marks(self.forest.first[kept], self.forest.second[kept], *[len(self.fragments)] * 2)
        return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)

    def evidence(self) -> Int[np.ndarray, " fragment"]:
        """The contexts that each fragment shares with the one that it shares most with and never contradicts."""
        found = np.zeros(len(self.fragments), dtype=np.int64)
        for ends in (self.forest.first, self.forest.second):
            np.maximum.at(found, ends, self.forest.weight)
        return found

    def numbers(
        self, inputs: Int[np.ndarray, "n position"]
    ) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The fragment and the context of inputs, -1 where training has none such."""
        return (
            _place(self._fragment_keys, inputs[:, self.fragment]),
            _place(self._context_keys, inputs[:, self.context]),
        )

    def cells(
        self, inputs: Int[np.ndarray, "n position"], k: int
    ) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The k-class and the context of inputs. What training has not is a class (a context) of its own."""
        fragment, context = self.numbers(inputs)
        classes = self.classes(k)
        label = np.where(fragment < 0, -1, classes[fragment])
        return (
            _beyond(label, inputs[:, self.fragment], int(classes.max()) + 1),
            _beyond(context, inputs[:, self.context], len(self.contexts)),
        )


def _numbered(rows: Int[np.ndarray, "n position"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.unique(row_keys(rows), return_index=True, return_inverse=True)


def _place(keys: np.ndarray, rows: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
    wanted = row_keys(rows)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def _beyond(
    number: Int[np.ndarray, " n"], rows: Int[np.ndarray, "n position"], size: int
) -> Int[np.ndarray, " n"]:
    """Numbers from `size` on where there is none yet."""
    new = number < 0
    made = number.copy()
    made[new] = size + _numbered(rows[new])[2]
    return made


def _marks(rows: np.ndarray, columns: np.ndarray, height: int, width: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(height, width))


def _heaviest(links: Sequence[Links], size: int) -> Links:
    """A spanning forest of the heaviest links."""
    first, second, weight = (
        np.concatenate([getattr(one, name) for one in links]) for name in ("first", "second", "weight")
    )
    top = int(weight.max(initial=0)) + 1
    graph = sparse.csr_array(((top - weight).astype(np.float64), (first, second)), shape=(size, size))
    tree = csgraph.minimum_spanning_tree(graph).tocoo()
    return Links(tree.row.astype(np.int64), tree.col.astype(np.int64), top - tree.data.astype(np.int64))
