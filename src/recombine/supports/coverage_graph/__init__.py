"""Coverage graphs: which inputs follow from the training examples when fragments that behave alike are swapped.

Two fragments are k-equivalent if they share at least k training contexts and have the same outcome in all of them. An
input is k-covered if swaps of k-equivalent fragments lead from it to a training example. Its cutoff is the largest such
k. Only examples are needed, neither the rule behind them nor intermediate values. `cut` compares fragments, `product`
handles several ways to divide inputs, and `next_examples` says what to collect.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.spaces.rows import lookup, row_keys
from recombine.supports.coverage_graph.cut import Cut, Inputs
from recombine.supports.coverage_graph.product import Product

SEEN = -1
"""The cutoff of training examples: every k covers them."""


@dataclasses.dataclass(frozen=True)
class Swap:
    """One fragment replaced by another, in its context."""

    positions: tuple[int, ...]
    """The positions of the fragment."""
    before: tuple[int, ...]
    after: tuple[int, ...]
    shared: int
    """The number of training contexts that both fragments share, with the same outcome in all of them."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """How an input is covered: the shortest chain of swaps at its cutoff."""

    example: tuple[int, ...]
    cutoff: int
    swaps: tuple[Swap, ...]
    """From the input to the training example; empty if the input is one, or if there is no chain."""
    trained: tuple[int, ...] | None
    """The training example at the end; None if the input is not covered."""
    outcome: int | None
    """The outcome of that example, which the chain implies for the input."""


class CoverageGraph:
    """The cutoff of any input, given training examples.

    Time grows with the number of pairs of fragments that share a context; memory does not.

    Args:
        inputs: The tokens of the training examples, one row per example.
        outcomes: The outcome of each example.
        fragments: The positions of the fragment, for each way to divide inputs. The other positions are its context.
            Two hops (x1, x2, x3): `[(0, 1)]`. Three hops: `[(0, 1), (0, 1, 2)]`; a chain can use swaps of both.
        progress: Called with the share of the work that is done.

    Example:
        ```python
        graph = CoverageGraph(inputs, outcomes, fragments=[(0, 1)])
        graph.cutoffs(held_out)  # 0: does not follow from training
        ```
    """

    def __init__(
        self,
        inputs: Int[np.ndarray, "example position"],
        outcomes: Int[np.ndarray, " example"],
        fragments: Sequence[Sequence[int]],
        progress: Callable[[float], None] | None = None,
    ) -> None:
        _check(inputs, outcomes, fragments)
        self.tokens = [np.unique(column) for column in inputs.T]
        """The tokens that occur in training at each position."""
        self.values, observed = np.unique(outcomes, return_inverse=True)
        """The outcomes that occur in training."""
        codes = self.codes(inputs)
        self._keys, first, number = np.unique(row_keys(codes), return_index=True, return_inverse=True)
        _check_contradiction(inputs, observed, first[number])
        self.inputs, self.outcomes = codes[first], observed[first]
        """The examples as indices into `tokens` and `values`, each once."""
        report = progress or (lambda share: None)
        total = len(fragments)
        self.cuts = tuple(
            Cut(self.inputs, self.outcomes, fragment, lambda share, done=done: report((done + share) / total))
            for done, fragment in enumerate(fragments)
        )
        self._product = None if total == 1 else Product([len(tokens) for tokens in self.tokens])

    def codes(self, inputs: Inputs) -> Inputs:
        """Inputs as indices into `tokens`; -1 for a token that never occurs in training at its position."""
        if inputs.ndim != 2 or inputs.shape[1] != len(self.tokens):
            raise BadInput(
                f"Inputs have the shape {inputs.shape}; expected (number, {len(self.tokens)}), as in training."
            )
        codes = np.empty(inputs.shape, dtype=np.int64)
        for position, tokens in enumerate(self.tokens):
            nearest = np.minimum(np.searchsorted(tokens, inputs[:, position]), len(tokens) - 1)
            codes[:, position] = np.where(tokens[nearest] == inputs[:, position], nearest, -1)
        return codes

    def decoded(self, codes: Inputs) -> Inputs:
        """Inputs from indices into `tokens`."""
        return np.stack([tokens[codes[:, position]] for position, tokens in enumerate(self.tokens)], axis=1)

    def cutoffs(self, inputs: Inputs) -> Int[np.ndarray, " n"]:
        """The cutoff of each input: 0 if no k covers it, `SEEN` if it is a training example."""
        codes = self.codes(inputs)
        cutoffs = self._one_cut(codes) if self._product is None else self._several_cuts(codes)
        cutoffs[self._examples(codes) >= 0] = SEEN
        return cutoffs

    def _examples(self, codes: Inputs) -> Int[np.ndarray, " n"]:
        """The index of the training example that each input is; -1 if it is none."""
        return lookup(self._keys, codes)

    def _one_cut(self, codes: Inputs) -> Int[np.ndarray, " n"]:
        """Classes only grow as k falls, so the first k whose classes contain an example decides each input."""
        (cut,) = self.cuts
        fragment, context = cut.numbers(codes)
        cutoffs = np.zeros(len(codes), dtype=np.int64)
        left = np.flatnonzero((fragment >= 0) & (context >= 0))
        for k in np.unique(cut.forest.weight)[::-1].tolist():
            classes = cut.classes(k) * len(cut.contexts)
            covered = np.unique(classes[cut.fragment_of] + cut.context_of)
            hit = np.isin(classes[fragment[left]] + context[left], covered)
            cutoffs[left[hit]] = k
            left = left[~hit]
        return cutoffs

    def _several_cuts(self, codes: Inputs) -> Int[np.ndarray, " n"]:
        assert self._product is not None
        number = self._product.number(codes)
        return np.where(number < 0, 0, self._everywhere[number])

    @functools.cached_property
    def _everywhere(self) -> Int[np.ndarray, " input"]:
        assert self._product is not None
        return self._product.cutoffs(self.cuts, self._product.number(self.inputs))

    def components(self, inputs: Inputs, k: int) -> Int[np.ndarray, " n"]:
        """A number for each input, equal for inputs that swaps at k connect. One training example covers all of them."""
        if self._product is None:
            # Here unknown tokens count as different tokens, not as one.
            label, context = self.cuts[0].cells(self.extended_codes(inputs), k)
            both = label * (int(context.max(initial=0)) + 1) + context
        else:
            number = self._product.number(self.codes(inputs))
            known = self._product.components(self.cuts, k)
            alone = np.unique(row_keys(self.extended_codes(inputs)), return_inverse=True)[1]
            both = np.where(number < 0, len(known) + alone, known[number])
        return np.unique(both, return_inverse=True)[1]

    def extended_codes(self, inputs: Inputs) -> Inputs:
        """Codes in which tokens that never occur in training have different numbers, after those that do."""
        codes = self.codes(inputs)
        for position, tokens in enumerate(self.tokens):
            new = codes[:, position] < 0
            codes[new, position] = len(tokens) + np.unique(inputs[new, position], return_inverse=True)[1]
        return codes

    def untrained(self, most: int, seed: int = 0) -> tuple[Inputs, int]:
        """Inputs that are not training examples.

        With one cut: every training fragment in every training context. With several cuts: every combination of tokens
        at positions where they occur in training.

        Args:
            most: The most inputs to return. A random sample of this size is drawn where there are more.
            seed: The seed of the sample.

        Returns:
            The inputs, and the number of all such inputs.
        """
        cut = self.cuts[0]
        if self._product is None:
            size = len(cut.fragments) * len(cut.contexts)
            taken = cut.fragment_of * len(cut.contexts) + cut.context_of
        else:
            size, taken = self._product.size, self._product.number(self.inputs)
        if size <= max(most, len(taken)) * 2:
            flat = np.setdiff1d(np.arange(size), taken)
        else:
            drawn = np.random.default_rng(seed).choice(size, min(size, most + len(taken)), replace=False)
            flat = drawn[~np.isin(drawn, taken)]
        if len(flat) > most:
            flat = np.random.default_rng(seed).permutation(flat)[:most]
        flat = np.sort(flat)
        if self._product is not None:
            return self.decoded(self._product.codes(flat)), size - len(taken)
        fragment, context = np.divmod(flat, len(cut.contexts))
        codes = np.empty((len(flat), len(self.tokens)), dtype=np.int64)
        codes[:, cut.fragment], codes[:, cut.context] = cut.fragments[fragment], cut.contexts[context]
        return self.decoded(codes), size - len(taken)

    def explain(self, example: Sequence[int]) -> Explanation:
        """The shortest chain of swaps at the cutoff of an input; among equally short ones, one with much evidence."""
        row = np.array([example], dtype=np.int64)
        cutoff = int(self.cutoffs(row)[0])
        codes = self.codes(row)
        given = tuple(row[0].tolist())
        if cutoff == 0:
            return Explanation(given, 0, (), None, None)
        search = _ChainSearch(self, codes, cutoff)
        while (end := search.reached()) is None:
            search.extend()
        index = int(self._examples(search.codes[-1][[end]])[0])
        trained = tuple(self.decoded(self.inputs[[index]])[0].tolist())
        return Explanation(given, cutoff, search.chain(end), trained, int(self.values[self.outcomes[index]].item()))


class _ChainSearch:
    """Breadth-first search over swaps from one input."""

    def __init__(self, graph: CoverageGraph, codes: Inputs, cutoff: int) -> None:
        self.graph, self.cutoff = graph, cutoff
        self.codes = [codes]
        self.links = [np.zeros((1, 3), dtype=np.int64)]
        """For each input: the index of the previous input, the cut, and the weight of the link."""
        self.known = row_keys(codes)

    def reached(self) -> int | None:
        """The index of a training example among the inputs of the last step; None if there is none."""
        examples = np.flatnonzero(self.graph._examples(self.codes[-1]) >= 0)
        return int(examples[0]) if len(examples) else None

    def extend(self) -> None:
        """Add all inputs that are one swap further, links with the most evidence first."""
        swapped, used = [], []
        for number, cut in enumerate(self.graph.cuts):
            fragment, _ = cut.numbers(self.codes[-1])
            known = np.flatnonzero(fragment >= 0)
            links = cut.links(fragment[known])
            kept = links.weight >= self.cutoff
            before = known[links.first[kept]]
            codes = self.codes[-1][before]
            codes[:, cut.fragment] = cut.fragments[links.second[kept]]
            swapped.append(codes)
            used.append(np.stack([before, np.full(len(before), number), links.weight[kept]], axis=1))
        codes, links = np.concatenate(swapped), np.concatenate(used)
        order = np.argsort(-links[:, 2], kind="stable")
        keys = row_keys(codes[order])
        _, first = np.unique(keys, return_index=True)
        fresh = np.sort(first[~np.isin(keys[first], self.known)])
        self.known = np.union1d(self.known, keys[fresh])
        self.codes.append(codes[order][fresh])
        self.links.append(links[order][fresh])

    def chain(self, end: int) -> tuple[Swap, ...]:
        """The swaps from the first input to one of the last step."""
        swaps = []
        for depth in range(len(self.codes) - 1, 0, -1):
            previous, number, weight = self.links[depth][end].tolist()
            positions = self.graph.cuts[number].fragment
            before, after = (
                self.graph.decoded(self.codes[step][[row]])[0, positions].tolist()
                for step, row in ((depth - 1, previous), (depth, end))
            )
            swaps.append(Swap(tuple(positions), tuple(before), tuple(after), weight))
            end = previous
        return tuple(reversed(swaps))


def _check(inputs: np.ndarray, outcomes: np.ndarray, fragments: Sequence[Sequence[int]]) -> None:
    if inputs.ndim != 2 or len(inputs) != len(outcomes) or not len(inputs):
        raise BadInput(
            f"Training inputs have the shape {inputs.shape} and there are {len(outcomes)} outcomes.",
            fix="give at least one example: a row of tokens and an outcome for each",
        )
    positions = range(inputs.shape[1])
    if not fragments:
        raise BadInput("No fragment is given.", fix="give its positions, for example fragments=[(0, 1)]")
    for fragment in fragments:
        if not fragment or len({*fragment}) < len(fragment) or not {*fragment} < {*positions}:
            raise BadInput(
                f"The fragment {tuple(fragment)} is not a proper part of the {len(positions)} positions of an input.",
                fix=f"give different positions from 0 to {len(positions) - 1}, and leave at least one for the context",
            )
    if len({frozenset(fragment) for fragment in fragments}) < len(fragments):
        raise BadInput("A fragment is given twice.", fix="give each fragment once")


def _check_contradiction(inputs: np.ndarray, outcomes: np.ndarray, first: np.ndarray) -> None:
    """Raise BadInput if an input has two outcomes: no fragment could agree with it."""
    wrong = np.flatnonzero(outcomes != outcomes[first])
    if len(wrong):
        row = int(wrong[0])
        raise BadInput(
            f"Examples {int(first[row])} and {row} have the same input {tuple(inputs[row].tolist())} and different outcomes.",
            fix="keep one outcome for each input",
        )
