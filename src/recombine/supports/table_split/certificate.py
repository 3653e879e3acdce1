"""What is known about a split of a table before training: unseen words and compounds, divergences, strata."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from recombine.errors import BadInput
from recombine.language.pair_table import Pairs
from recombine.spaces.pairs import PairSpace
from recombine.supports.compound_divergence.divergence import ATOM_ALPHA, COMPOUND_ALPHA, divergence
from recombine.supports.listed import Listed
from recombine.supports.regions import STRATA, stratum

LONGEST = 3
"""Neighbouring words of 2 to this many are compounds, where there are no parses."""
DEEPEST = 200


def pair_certificate(support: Listed) -> dict[str, float]:
    """Compute the certificate of a split, from its pairs alone.

    Atoms are the words of inputs. Compounds are neighbouring words (2 or 3), or, where the table has parses, the
    productions of the parse and each production together with the one above it. Every occurrence counts.

    Returns:
        `inputs_trained`: the share of test inputs that also occur in training, word for word. `words_unseen`,
        `compounds_unseen`: the share of the test's occurrences whose word or compound never occurs in training.
        `output_words_unseen`: the same of the words of outputs. `pairs_unmet`: the share of the test's pairs of words
        that never occur together in training. Both divergences, and for each stratum its share of the test.
    """
    space = support.space
    assert isinstance(space, PairSpace)
    train, test = (np.asarray(space.numbers(rows)).tolist() for rows in (support.rows, support.reserved))
    pairs = space.pairs
    atoms = [Counter(word for number in side for word in pairs.inputs[number]) for side in (train, test)]
    outputs = [Counter(word for number in side for word in pairs.outputs[number]) for side in (train, test)]
    compounds = [Counter(compounds_of(pairs, side)) for side in (train, test)]
    moment = support.parts_met()
    first = space.first_word
    met = np.triu(Listed(space, support.reserved).second_moment()[first:, first:] > 0, k=1)
    strata = stratum(support.reserved, moment)
    trained = {pairs.inputs[number] for number in train}
    return {
        "inputs_trained": float(np.mean([pairs.inputs[number] in trained for number in test])),
        "words_unseen": _unseen(atoms),
        "output_words_unseen": _unseen(outputs),
        "compounds_unseen": _unseen(compounds),
        "pairs_unmet": float(np.mean(moment[first:, first:][met] == 0)) if met.any() else 0.0,
        "atom_divergence": _apart(atoms, ATOM_ALPHA),
        "compound_divergence": _apart(compounds, COMPOUND_ALPHA),
        **{f"share_{name}": float(np.mean(strata == name)) for name in STRATA},
    }


def compounds_of(pairs: Pairs, numbers: Iterable[int]) -> Iterator[Any]:
    """The compounds of pairs, each as often as it occurs."""
    for number in numbers:
        if pairs.parses is not None:
            yield from of_parse(pairs.parses[number], pairs.inputs[number])
        else:
            words = pairs.inputs[number]
            for length in range(2, LONGEST + 1):
                yield from zip(*(words[start:] for start in range(length)), strict=False)


def of_parse(text: str, words: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The productions of a parse such as `(S (NP a cat) (VP ran))`, alone and with the one above each."""
    tokens = re.findall(r"[()]|[^\s()]+", text)

    def wrong(what: str) -> BadInput:
        return BadInput(
            f"The parse {text[:80]!r} of the input {' '.join(words)[:80]!r} {what}.",
            fix="write (S (NP a cat) (VP ran))",
        )

    # Without recursion: each open node has its label and the labels of its children.
    open_nodes: list[list[Any]] = []
    found: list[tuple[Any, ...]] = []
    below: list[list[tuple[Any, ...]]] = []
    for index, token in enumerate(tokens):
        if token == "(":
            if index + 1 == len(tokens) or tokens[index + 1] in "()" or len(open_nodes) > DEEPEST:
                raise wrong("has a node without a label, or too many levels")
            if open_nodes:
                open_nodes[-1].append(tokens[index + 1])
            elif found:
                raise wrong("has several roots")
            open_nodes.append([])
            below.append([])
        elif token == ")":
            if not open_nodes or len(open_nodes[-1]) < 2:
                raise wrong("closes a node that is not open, or has no children")
            production = tuple(open_nodes.pop())
            found += [production, *((production, child) for child in below.pop())]
            if below:
                below[-1].append(production)
        elif not open_nodes:
            raise wrong("has a word outside of its nodes")
        else:
            open_nodes[-1].append(token)
    if open_nodes or not found:
        raise wrong("does not close its nodes")
    return iter(found)


def _unseen(sides: Sequence[Counter[Any]]) -> float:
    train, test = sides
    return sum(count for part, count in test.items() if part not in train) / max(1, test.total())


def _apart(sides: Sequence[Counter[Any]], alpha: float) -> float:
    """The divergence of two lists of counts; 0 where the test has none, 1 where only training has none."""
    train, test = sides
    if not (train and test):
        return float(bool(test))
    every = list(train | test)
    return divergence(
        np.array([train[part] for part in every], float), np.array([test[part] for part in every], float), alpha
    )
