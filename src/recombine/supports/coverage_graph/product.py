"""Coverage with several cuts: chains of swaps of all cuts, over all inputs that the tokens can form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse import csgraph

from recombine.errors import BadInput
from recombine.supports.coverage_graph.cut import Cut, Inputs, Links

LISTED = 4_000_000
"""The most inputs that are listed. A chain can pass through inputs that are neither trained nor asked about."""


class Product:
    """All inputs formed from the training tokens at each position, numbered."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.size = math.prod(sizes)
        if self.size > LISTED:
            raise BadInput(
                f"{len(sizes)} positions with {' x '.join(map(str, sizes))} tokens form {self.size:,} inputs, but several "
                f"cuts allow at most {LISTED:,}.",
                fix="use one cut, which lists no inputs, or fewer tokens",
            )
        self.strides = np.array([math.prod(sizes[position + 1 :]) for position in range(len(sizes))], dtype=np.int64)

    def number(self, codes: Inputs) -> Int[np.ndarray, " n"]:
        """The number of each input; -1 where it has a token that training does not have."""
        return np.where((codes < 0).any(axis=1), -1, codes @ self.strides)

    def codes(self, numbers: Int[np.ndarray, " n"]) -> Inputs:
        """The inputs of these numbers."""
        return numbers[:, None] // self.strides % np.array(self.sizes)

    def cutoffs(self, cuts: Sequence[Cut], trained: Int[np.ndarray, " m"]) -> Int[np.ndarray, " input"]:
        """The largest k for which k-equivalent swaps lead from each input to a trained one; 0 if there is none.

        The weight of a link is the number of contexts that two fragments share. In a maximum spanning tree, the path from
        an input to the trained ones has the heaviest possible lightest link.
        """
        links = self._links(cuts)
        top = int(links.weight.max(initial=0)) + 2
        # An extra node represents training, and its links to trained inputs are the cheapest.
        first = np.concatenate([links.first, np.full(len(trained), self.size)])
        second = np.concatenate([links.second, trained])
        cost = np.concatenate([top - links.weight, np.ones(len(trained), dtype=np.int64)]).astype(np.float64)
        shape = (self.size + 1, self.size + 1)
        # Two cuts can have the same link, and the conversion would add up its costs.
        order = np.lexsort((cost, second, first))
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
        kept = order[fresh]
        graph = sparse.csr_array((cost[kept], (first[kept], second[kept])), shape=shape)
        tree = csgraph.minimum_spanning_tree(graph).tocoo()
        worst = _most_expensive(tree, self.size)[: self.size]
        return np.where(np.isfinite(worst), top - np.where(np.isfinite(worst), worst, 0), 0).astype(np.int64)

    def components(self, cuts: Sequence[Cut], k: int) -> Int[np.ndarray, " input"]:
        """A number for each input, equal for inputs that k-equivalent swaps connect."""
        links = self._links(cuts)
        kept = links.weight >= k
        marks = np.ones(int(kept.sum()), dtype=np.int8)
        shape = (self.size, self.size)
        graph = sparse.coo_array((marks, (links.first[kept], links.second[kept])), shape=shape)
        return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)

    def _links(self, cuts: Sequence[Cut]) -> Links:
        """The links of fragments as links of inputs, once in each context that the tokens can form."""
        first, second, weight = [], [], []
        for cut in cuts:
            base = cut.fragments @ self.strides[cut.fragment]
            rest = np.zeros(1, dtype=np.int64)
            for position in cut.context:
                steps = np.arange(self.sizes[position]) * self.strides[position]
                rest = (rest[:, None] + steps).ravel()
            ends = [(base[end][:, None] + rest).ravel() for end in (cut.forest.first, cut.forest.second)]
            first.append(np.minimum(*ends))
            second.append(np.maximum(*ends))
            weight.append(np.repeat(cut.forest.weight, len(rest)))
        return Links(np.concatenate(first), np.concatenate(second), np.concatenate(weight))


def _most_expensive(tree: Any, root: int) -> np.ndarray:
    """The cost of the most expensive link on each node's path to the root, the last node; infinite without a path."""
    size = root + 1
    _, before = csgraph.breadth_first_order(tree.tocsr(), root, directed=False)
    cost = np.full(size, np.inf)
    child = np.where(before[tree.row] == tree.col, tree.row, tree.col)
    cost[child] = tree.data
    lost = before < 0
    lost[root] = False
    cost[lost], cost[root] = np.inf, 0.0
    # Each round doubles the distance.
    ahead = np.where(before < 0, np.arange(size), before).astype(np.int64)
    while (ahead[ahead] != ahead).any():
        cost = np.maximum(cost, cost[ahead])
        ahead = ahead[ahead]
    return cost
