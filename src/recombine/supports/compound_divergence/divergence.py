"""The divergence of two lists of SCAN commands, in their words and in how the words are combined.

After Keysers et al. 2020. *Atoms* are the words of a command. *Compounds* are combinations in its derivation: any two
and any three words of one phrase, and a whole phrase with the conjunction before or after it. Every occurrence counts;
unlike there, compounds inside others are not discounted. Whole commands are not compounds, because two different lists
would have none in common.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.spaces.rows import Rows
from recombine.spaces.scan import language

ATOM_ALPHA = 0.5
"""Both lists count equally: words should be equally frequent in both."""
COMPOUND_ALPHA = 0.1
"""The test counts more: it matters whether a compound occurs in training, and little how often."""

Usage = Float[np.ndarray, "conjunction role phrase"]
"""How often each phrase is used alone, with "and" and with "after", as first and as last. Alone it counts as first."""

ATOMS = language.WORDS

TOGETHER = sorted(
    {words for phrase in language.PHRASES for number in (2, 3) for words in itertools.combinations(phrase, number)}
)
"""The compounds within phrases."""

PHRASE_ATOMS = np.array([[word in phrase for word in ATOMS] for phrase in language.PHRASES], float)
PHRASE_COMPOUNDS = np.array([[set(words) <= set(phrase) for words in TOGETHER] for phrase in language.PHRASES], float)
"""Which compounds are in each phrase itself."""


def usage(rows: Rows, weights: Float[np.ndarray, " n"] | None = None) -> Usage:
    """How often phrases are used in a list of commands. Atoms and compounds depend only on this."""
    return usage_of(np.asarray(language.numbers(rows)), weights)


def usage_of(commands: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None) -> Usage:
    """As `usage`, for commands given by their numbers."""
    conjunction, first, last = (np.asarray(part) for part in language.parts_of(commands))
    joined = conjunction > 0
    shape = (1 + len(language.CONJUNCTIONS), 2, language.COUNT)
    cells = [(conjunction, np.zeros_like(first), first), (conjunction, np.ones_like(last), last)]
    as_first, as_last = (np.ravel_multi_index(cell, shape) for cell in cells)
    often = np.ones(len(commands)) if weights is None else weights
    counts = np.bincount(
        np.concatenate([as_first, as_last[joined]]), np.concatenate([often, often[joined]]), minlength=math.prod(shape)
    )
    return counts.reshape(shape)


def atom_counts(used: Usage) -> Float[np.ndarray, " atoms"]:
    """How often each word occurs."""
    counts = used.sum(axis=(0, 1)) @ PHRASE_ATOMS
    counts[: len(language.CONJUNCTIONS)] += used[1:, 0].sum(axis=1)
    return counts


def compound_counts(used: Usage) -> Float[np.ndarray, " compounds"]:
    """How often each compound occurs: `TOGETHER` first, then the phrases beside each conjunction, as first and as last."""
    return np.concatenate([used.sum(axis=(0, 1)) @ PHRASE_COMPOUNDS, used[1:].ravel()])


def divergence(p: Float[np.ndarray, " n"], q: Float[np.ndarray, " n"], alpha: float) -> float:
    """1 minus the Chernoff coefficient, the sum of p^alpha q^(1 - alpha), of two lists of frequencies or counts.

    0 if both are equal, 1 if they have nothing in common.
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha={alpha} is not between 0 and 1.", fix="0.5 for atoms, 0.1 for compounds")
    for counts in (p, q):
        if not np.isfinite(counts).all() or (counts < 0).any() or not counts.sum() > 0:
            raise BadInput("Frequencies must be numbers of at least 0, and not all 0.")
    shared = np.sum((p / p.sum()) ** alpha * (q / q.sum()) ** (1 - alpha))
    return float(np.clip(1 - shared, 0, 1))


def atom_divergence(train: Usage, test: Usage) -> float:
    """The divergence of the words of two lists."""
    return divergence(atom_counts(train), atom_counts(test), ATOM_ALPHA)


def compound_divergence(train: Usage, test: Usage) -> float:
    """The divergence of the compounds of two lists; 0 where the test has none, 1 where only training has none."""
    p, q = compound_counts(train), compound_counts(test)
    return divergence(p, q, COMPOUND_ALPHA) if p.any() and q.any() else float(q.any())
