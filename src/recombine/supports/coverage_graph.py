"""Coverage by the data alone: what follows from training when fragments that behaved alike are swapped.

Two fragments are k-equivalent if they share at least k training contexts and agree on all that they share. An input is
k-covered if swaps of k-equivalent fragments lead from it to a training example; its cutoff is the largest such k. Nothing
but examples enters: neither the rule behind them nor any value in between.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.supports.coverage_cut import Cut
from recombine.supports.coverage_product import Product
from recombine.supports.rows import row_keys

SEEN = -1
"""The cutoff of inputs that are training examples themselves: every k covers them."""


@dataclasses.dataclass(frozen=True)
class Swap:
    """One fragment for another, in the context in which it stands."""

    positions: tuple[int, ...]
    """Where the fragment stands."""
    before: tuple[int, ...]
    after: tuple[int, ...]
    shared: int
    """In so many training contexts both were seen, with the same outcome in all of them."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """How an input is covered: the shortest chain of swaps that its cutoff allows."""

    example: tuple[int, ...]
    cutoff: int
    swaps: tuple[Swap, ...]
    """From the input to the training example; none if that is the input itself, or if there is no chain."""
    trained: tuple[int, ...] | None
    """The training example at the end; None if the input is not covered."""
    outcome: int | None
    """Of that example: what the chain says of the input."""


class CoverageGraph:
    """Training examples, and the cutoff of any other input.

    `fragments` names the positions of the fragment, for each way of cutting inputs; all others are its context. Two hops
    (x1, x2, x3): ((0, 1),). Three hops: ((0, 1), (0, 1, 2)), whose swaps are mixed. `on` is told the share that is done.
    Time goes with the pairs of fragments that share a context, memory does not.
    """

    def __init__(
        self,
        inputs: Int[np.ndarray, "example position"],
        outcomes: Int[np.ndarray, " example"],
        fragments: Sequence[Sequence[int]],
        on: Callable[[float], None] | None = None,
    ) -> None:
        _check(inputs, outcomes, fragments)
        self.tokens = [np.unique(column) for column in inputs.T]
        """The tokens that training has at each position."""
        self.values, said = np.unique(outcomes, return_inverse=True)
        """The outcomes that training has."""
        codes = self.codes(inputs)
        self._keys, first, number = np.unique(row_keys(codes), return_index=True, return_inverse=True)
        _check_contradiction(inputs, said, first[number])
        self.inputs, self.outcomes = codes[first], said[first]
        """The examples as places in `tokens` and `values`, each of them once."""
        tell = on or (lambda share: None)
        total = len(fragments)
        self.cuts = tuple(
            Cut(self.inputs, self.outcomes, one, lambda share, done=done: tell((done + share) / total))
            for done, one in enumerate(fragments)
        )
        self._product = None if total == 1 else Product([len(tokens) for tokens in self.tokens])

    def codes(self, inputs: Int[np.ndarray, "n position"]) -> Int[np.ndarray, "n position"]:
        """Inputs as places in `tokens`; -1 for a token that training never has there."""
        if inputs.ndim != 2 or inputs.shape[1] != len(self.tokens):
            raise BadInput(
                f"Inputs have the shape {inputs.shape}; expected (number, {len(self.tokens)}), as in training."
            )
        made = np.empty(inputs.shape, dtype=np.int64)
        for place, tokens in enumerate(self.tokens):
            found = np.minimum(np.searchsorted(tokens, inputs[:, place]), len(tokens) - 1)
            made[:, place] = np.where(tokens[found] == inputs[:, place], found, -1)
        return made

    def decoded(self, codes: Int[np.ndarray, "n position"]) -> Int[np.ndarray, "n position"]:
        """Inputs from places in `tokens`."""
        return np.stack([tokens[codes[:, place]] for place, tokens in enumerate(self.tokens)], axis=1)

    def cutoffs(self, inputs: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
        """The k-cutoff of each input: 0 if no k covers it, `SEEN` if it is a training example."""
        codes = self.codes(inputs)
        found = self._cut_once(codes) if self._product is None else self._cut_often(codes)
        found[self._places(codes) >= 0] = SEEN
        return found

    def _places(self, codes: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
        """Which training example each input is; -1: none."""
        wanted = row_keys(codes)
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[place] == wanted, place, -1)

    def _cut_once(self, codes: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
        """Classes only grow as k falls: each input is settled at the first k whose classes hold an example for it."""
        (cut,) = self.cuts
        fragment, context = cut.numbers(codes)
        found = np.zeros(len(codes), dtype=np.int64)
        left = np.flatnonzero((fragment >= 0) & (context >= 0))
        for k in np.unique(cut.forest.weight)[::-1].tolist():
            classes = cut.classes(k) * len(cut.contexts)
            covered = np.unique(classes[cut.fragment_of] + cut.context_of)
            hit = np.isin(classes[fragment[left]] + context[left], covered)
            found[left[hit]] = k
            left = left[~hit]
        return found

    def _cut_often(self, codes: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
        assert self._product is not None
        number = self._product.number(codes)
        return np.where(number < 0, 0, self._everywhere[number])

    @functools.cached_property
    def _everywhere(self) -> Int[np.ndarray, " input"]:
        assert self._product is not None
        return self._product.cutoffs(self.cuts, self._product.number(self.inputs))

    def components(self, inputs: Int[np.ndarray, "n position"], k: int) -> Int[np.ndarray, " n"]:
        """A number for each input: swaps at k lead from one to another if they have the same. Train one, cover all."""
        if self._product is None:
            # Unknown tokens are told apart here by what they are, not by being unknown.
            label, context = self.cuts[0].cells(self.apart(inputs), k)
            both = label * (int(context.max(initial=0)) + 1) + context
        else:
            number = self._product.number(self.codes(inputs))
            known = self._product.components(self.cuts, k)
            alone = np.unique(row_keys(self.apart(inputs)), return_inverse=True)[1]
            both = np.where(number < 0, len(known) + alone, known[number])
        return np.unique(both, return_inverse=True)[1]

    def apart(self, inputs: Int[np.ndarray, "n position"]) -> Int[np.ndarray, "n position"]:
        """Codes in which tokens that training has not have numbers of their own, beyond those that it has."""
        made = self.codes(inputs)
        for place, tokens in enumerate(self.tokens):
            new = made[:, place] < 0
            made[new, place] = len(tokens) + np.unique(inputs[new, place], return_inverse=True)[1]
        return made

    def untrained(self, most: int, seed: int = 0) -> tuple[Int[np.ndarray, "n position"], int]:
        """Inputs that are not training examples, drawn if there are more than `most`; and how many there are.

        With one cut: every fragment of the training examples in every context of theirs. With several: every token at
        every position at which training has it.
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
        """The shortest chain of swaps that the cutoff of an input allows; of equally short ones, one with much evidence."""
        row = np.array([example], dtype=np.int64)
        cutoff = int(self.cutoffs(row)[0])
        codes = self.codes(row)
        given = tuple(row[0].tolist())
        if cutoff == 0:
            return Explanation(given, 0, (), None, None)
        steps = _Steps(self, codes, cutoff)
        while (end := steps.ended()) is None:
            steps.further()
        place = int(self._places(steps.codes[-1][[end]])[0])
        trained = tuple(self.decoded(self.inputs[[place]])[0].tolist())
        return Explanation(
            given, cutoff, steps.back(end), trained, int(self.values[self.outcomes[place]].item())
        )


class _Steps:
    """Inputs that swaps lead to from one input, by the number of swaps that it takes."""

    def __init__(self, graph: CoverageGraph, codes: Int[np.ndarray, "n position"], cutoff: int) -> None:
        self.graph, self.cutoff = graph, cutoff
        self.codes = [codes]
        self.came = [np.zeros((1, 3), dtype=np.int64)]
        """Of each: the input before it, the cut, the weight of the link."""
        self.known = row_keys(codes)

    def ended(self) -> int | None:
        """Which of the farthest inputs is a training example."""
        found = np.flatnonzero(self.graph._places(self.codes[-1]) >= 0)
        return int(found[0]) if len(found) else None

    def further(self) -> None:
        """One swap more, the links with most evidence first."""
        made, came = [], []
        for number, cut in enumerate(self.graph.cuts):
            fragment, _ = cut.numbers(self.codes[-1])
            known = np.flatnonzero(fragment >= 0)
            links = cut.links(fragment[known])
            kept = links.weight >= self.cutoff
            before = known[links.first[kept]]
            codes = self.codes[-1][before]
            codes[:, cut.fragment] = cut.fragments[links.second[kept]]
            made.append(codes)
            came.append(np.stack([before, np.full(len(before), number), links.weight[kept]], axis=1))
        codes, steps = np.concatenate(made), np.concatenate(came)
        order = np.argsort(-steps[:, 2], kind="stable")
        keys = row_keys(codes[order])
        _, first = np.unique(keys, return_index=True)
        fresh = np.sort(first[~np.isin(keys[first], self.known)])
        self.known = np.union1d(self.known, keys[fresh])
        self.codes.append(codes[order][fresh])
        self.came.append(steps[order][fresh])

    def back(self, end: int) -> tuple[Swap, ...]:
        """The way from the input to one of the farthest."""
        found = []
        for depth in range(len(self.codes) - 1, 0, -1):
            before, number, weight = self.came[depth][end].tolist()
            places = self.graph.cuts[number].fragment
            one, two = (
                self.graph.decoded(self.codes[at][[row]])[0, places].tolist()
                for at, row in ((depth - 1, before), (depth, end))
            )
            found.append(Swap(tuple(places), tuple(one), tuple(two), weight))
            end = before
        return tuple(reversed(found))


def _check(inputs: np.ndarray, outcomes: np.ndarray, fragments: Sequence[Sequence[int]]) -> None:
    if inputs.ndim != 2 or len(inputs) != len(outcomes) or not len(inputs):
        raise BadInput(
            f"Training inputs have the shape {inputs.shape} and there are {len(outcomes)} outcomes.",
            fix="give at least one example: a row of tokens and an outcome for each",
        )
    places = range(inputs.shape[1])
    if not fragments:
        raise BadInput("No fragment is named.", fix="name its positions, e.g. fragments=[(0, 1)]")
    for one in fragments:
        if not one or len({*one}) < len(one) or not {*one} < {*places}:
            raise BadInput(
                f"The fragment {tuple(one)} is not a part of the {len(places)} positions of an input.",
                fix=f"name different positions from 0 to {len(places) - 1}, and leave at least one for the context",
            )
    if len({frozenset(one) for one in fragments}) < len(fragments):
        raise BadInput("A fragment is named twice.", fix="name each way of cutting inputs once")


def _check_contradiction(inputs: np.ndarray, outcomes: np.ndarray, first: np.ndarray) -> None:
    """An input has one outcome: with two, nothing could agree with it."""
    wrong = np.flatnonzero(outcomes != outcomes[first])
    if len(wrong):
        row = int(wrong[0])
        raise BadInput(
            f"Examples {int(first[row])} and {row} have the same input {tuple(inputs[row].tolist())} and different outcomes.",
            fix="keep one outcome for each input",
        )
