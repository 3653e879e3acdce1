"""How far apart two lists of SCAN commands are: in their words, and in how these are put together.

After Keysers et al. 2020. *Atoms* are the words of a command. *Compounds* are what its derivation puts together in one
place: any two and any three words of one phrase, whichever phrase it is, and a whole phrase with the conjunction before
or after which it stands. Every occurrence counts; compounds inside others are not discounted, as they are there. Whole
commands are no compounds: two different lists would have none in common.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.spaces import scan_language as language

ATOM_ALPHA = 0.5
"""Both lists count alike: the words should be as frequent in one as in the other."""
COMPOUND_ALPHA = 0.1
"""The test counts more: whether a compound occurs in training matters, and how often matters little."""

Usage = Float[np.ndarray, "conjunction role phrase"]
"""How often each phrase is used alone, with "and" and with "after", as first and as last; alone it is a first."""

ATOMS = language.WORDS

_TOGETHER = sorted(
    {
        words
        for phrase in language.PHRASES
        for number in (2, 3)
        for words in itertools.combinations(phrase, number)
    }
)
COMPOUNDS = (
    *(" ".join(words) for words in _TOGETHER),
    *(
        f"{' '.join(phrase)} {conjunction} ..."
        if role == "first"
        else f"... {conjunction} {' '.join(phrase)}"
        for conjunction in language.CONJUNCTIONS
        for role in ("first", "last")
        for phrase in language.PHRASES
    ),
)
"""The names of compounds, in the order of their counts."""

PHRASE_ATOMS = np.array([[word in phrase for word in ATOMS] for phrase in language.PHRASES], float)
PHRASE_COMPOUNDS = np.array(
    [[set(words) <= set(phrase) for words in _TOGETHER] for phrase in language.PHRASES], float
)
"""Which compounds are in each phrase itself."""


def usage(rows: Int[np.ndarray, "n slots"], weights: Float[np.ndarray, " n"] | None = None) -> Usage:
    """How often phrases are used in a list of commands: all that its atoms and compounds depend on."""
    return usage_of(np.asarray(language.numbers(rows)), weights)


def usage_of(commands: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None) -> Usage:
    """The same for commands given by their numbers."""
    conjunction, first, last = (np.asarray(part) for part in language.parts_of(commands))
    joined = conjunction > 0
    shape = (1 + len(language.CONJUNCTIONS), 2, language.COUNT)
    cells = [(conjunction, np.zeros_like(first), first), (conjunction, np.ones_like(last), last)]
    as_first, as_last = (np.ravel_multi_index(cell, shape) for cell in cells)
    often = np.ones(len(commands)) if weights is None else weights
    made = np.bincount(
        np.concatenate([as_first, as_last[joined]]),
        np.concatenate([often, often[joined]]),
        minlength=math.prod(shape),
    )
    return made.reshape(shape)


def atom_counts(used: Usage) -> Float[np.ndarray, " atoms"]:
    """How often each word occurs."""
    counts = used.sum(axis=(0, 1)) @ PHRASE_ATOMS
    counts[: len(language.CONJUNCTIONS)] += used[1:, 0].sum(axis=1)
    return counts


def compound_counts(used: Usage) -> Float[np.ndarray, " compounds"]:
    """How often each compound occurs."""
    return np.concatenate([used.sum(axis=(0, 1)) @ PHRASE_COMPOUNDS, used[1:].ravel()])


def divergence(p: Float[np.ndarray, " n"], q: Float[np.ndarray, " n"], alpha: float) -> float:
    """One less the Chernoff coefficient, sum of p^alpha q^(1 - alpha): 0 if both are equal, 1 if nothing is in both.

    `p` and `q` are frequencies or counts; each is taken relative to its sum.
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha={alpha} is not between 0 and 1.", fix="0.5 for atoms, 0.1 for compounds")
    for one in (p, q):
        if not np.isfinite(one).all() or (one < 0).any() or not one.sum() > 0:
            raise BadInput("Frequencies must be numbers from 0 on, and not all 0.")
    shared = np.sum((p / p.sum()) ** alpha * (q / q.sum()) ** (1 - alpha))
    return float(np.clip(1 - shared, 0, 1))


def atom_divergence(train: Usage, test: Usage) -> float:
    """How far apart the words of two lists are."""
    return divergence(atom_counts(train), atom_counts(test), ATOM_ALPHA)


def compound_divergence(train: Usage, test: Usage) -> float:
    """How far apart the compounds of two lists are; 0 where the test has none, 1 where only the training has none."""
    p, q = compound_counts(train), compound_counts(test)
    return divergence(p, q, COMPOUND_ALPHA) if p.any() and q.any() else float(q.any())
