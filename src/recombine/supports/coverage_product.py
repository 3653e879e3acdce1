"""Coverage where inputs are cut in several ways: swaps of all cuts, mixed, over all inputs that tokens can make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse import csgraph

from recombine.errors import BadInput
from recombine.supports.coverage_cut import Cut, Links

LISTED = 4_000_000
"""So many inputs are listed at most: a chain may lead through inputs that nobody has seen or asked for."""


class Product:
    """All inputs made of the tokens that training has at each position, numbered."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.size = math.prod(sizes)
        if self.size > LISTED:
            raise BadInput(
                f"{len(sizes)} positions with {' x '.join(map(str, sizes))} tokens make {self.size:,} inputs; with several cuts at most {LISTED:,} are listed.",
                fix="cut inputs in one way only, which lists nothing, or look at fewer tokens",
            )
        self.strides = np.array(
            [math.prod(sizes[place + 1 :]) for place in range(len(sizes))], dtype=np.int64
        )

    def number(self, codes: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
        """The number of each input; -1 where it has a token that training has not."""
        return np.where((codes < 0).any(axis=1), -1, codes @ self.strides)

    def codes(self, numbers: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n position"]:
        """The inputs of these numbers."""
        return numbers[:, None] // self.strides % np.array(self.sizes)

    def cutoffs(self, cuts: Sequence[Cut], trained: Int[np.ndarray, " m"]) -> Int[np.ndarray, " input"]:
        """The largest k for which k-equivalent swaps lead from each input to a trained one; 0: none does.

        Links are weighted by the contexts that two fragments share. A spanning tree of the heaviest has, from each input
        to the trained ones, a path whose lightest link is as heavy as can be.
        """
        links = self._links(cuts)
        top = int(links.weight.max(initial=0)) + 2
        # One node more stands for training: nothing is nearer to a trained input.
        first = np.concatenate([links.first, np.full(len(trained), self.size)])
        second = np.concatenate([links.second, trained])
        cost = np.concatenate([top - links.weight, np.ones(len(trained), dtype=np.int64)]).astype(np.float64)
        shape = (self.size + 1, self.size + 1)
        # Cuts can hold the same link; the conversion would add up what it costs.
        order = np.lexsort((cost, second, first))
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
        kept = order[fresh]
        graph = sparse.csr_array((cost[kept], (first[kept], second[kept])), shape=shape)
        tree = csgraph.minimum_spanning_tree(graph).tocoo()
        worst = _dearest(tree, self.size)[: self.size]
        return np.where(np.isfinite(worst), top - np.where(np.isfinite(worst), worst, 0), 0).astype(np.int64)

    def components(self, cuts: Sequence[Cut], k: int) -> Int[np.ndarray, " input"]:
        """Inputs with one number lead to each other by k-equivalent swaps."""
        links = self._links(cuts)
        kept = links.weight >= k
        marks = np.ones(int(kept.sum()), dtype=np.int8)
        shape = (self.size, self.size)
        graph = sparse.coo_array((marks, (links.first[kept], links.second[kept])), shape=shape)
        return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)

    def _links(self, cuts: Sequence[Cut]) -> Links:
        """The links of fragments as links of inputs: once in each context that tokens can make."""
        first, second, weight = [], [], []
        for cut in cuts:
            base = cut.fragments @ self.strides[cut.fragment]
            rest = np.zeros(1, dtype=np.int64)
            for place in cut.context:
                rest = (rest[:, None] + np.arange(self.sizes[place]) * self.strides[place]).ravel()
            ends = [(base[one][:, None] + rest).ravel() for one in (cut.forest.first, cut.forest.second)]
            first.append(np.minimum(*ends))
            second.append(np.maximum(*ends))
            weight.append(np.repeat(cut.forest.weight, len(rest)))
        return Links(np.concatenate(first), np.concatenate(second), np.concatenate(weight))


def _dearest(tree: Any, root: int) -> np.ndarray:
    """The dearest link on each node's way to the root, the last node; infinite where there is no way."""
    size = root + 1
    _, before = csgraph.breadth_first_order(tree.tocsr(), root, directed=False)
    cost = np.full(size, np.inf)
    child = np.where(before[tree.row] == tree.col, tree.row, tree.col)
    cost[child] = tree.data
    lost = before < 0
    lost[root] = False
    cost[lost], cost[root] = np.inf, 0.0
    # Each round looks twice as far.
    ahead = np.where(before < 0, np.arange(size), before).astype(np.int64)
    while (ahead[ahead] != ahead).any():
        cost = np.maximum(cost, cost[ahead])
        ahead = ahead[ahead]
    return cost
