"""A small bigram model of English, for drawing probable and improbable texts of one length and alphabet.

A word follows another with a probability that depends on the classes of both. With r the rank of the next word's class
in the list of classes that may follow (`words.txt`), and s the rank of the word in its class:

    P(next word | word) = (1 - SPELLED) * r^-2 / sum(r^-2) * s^-1 / sum(s^-1) + SPELLED * P(spelled)

Both laws are skewed like those of real text. They are fixed and not counted, so that nothing depends on a corpus.
A word that is not listed is spelled: each character, and the end of the word, has the probability 1 / SIGNS.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from importlib import resources

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput

Floats = npt.NDArray[np.float64]

START = "start"
CLASS_LAW = 2.0
WORD_LAW = 1.0
"""The exponents of the power laws of rank."""
SPELLED = 1e-4
"""The probability that the next word is spelled, not taken from the list."""
SIGNS = 37
"""The number of characters: letters, digits, and the end of a word."""


@dataclasses.dataclass(frozen=True, eq=False)
class Bigrams:
    """A list of words, and the probabilities of one word after another."""

    words: tuple[str, ...]
    follow: Floats
    """Row i: the distribution of listed words after word i. The last row is that of the first word of a text."""
    number: dict[str, int]
    """The index of each word."""

    def log_probability(self, text: str) -> float:
        """The natural logarithm of a text's probability, given its number of words. Capitals count as lower case.

        A word after one that is not listed counts as a first word.
        """
        before, total = len(self.words), 0.0
        for word in text.lower().split():
            listed = self.number.get(word)
            spelled = math.log(SPELLED) - (len(word) + 1) * math.log(SIGNS)
            if listed is None:
                total += spelled
                before = len(self.words)
                continue
            total += float(np.logaddexp(math.log1p(-SPELLED) + math.log(self.follow[before, listed]), spelled))
            before = listed
        return total

    def draw(self, rng: np.random.Generator, lengths: Sequence[int | None], sharpness: float = 1.0) -> str:
        """Draw a text with a probability proportional to P(text) ** sharpness.

        The draw is exact: the weights of possible continuations are summed from the end backwards.

        Args:
            rng: The source of randomness.
            lengths: The length of each word; None for any.
            sharpness: 1 draws from the model itself, larger values prefer probable texts, 0 makes all texts equal, and
                negative values prefer improbable texts.

        Returns:
            The text.
        """
        if not lengths:
            raise BadInput("A text needs at least one word.", fix="give the length of each word")
        weights = self.follow**sharpness
        allowed = [self._of_length(length) for length in lengths]
        ahead = [np.ones(len(self.words))]
        for may in reversed(allowed[1:]):
            after = weights[:-1] @ (ahead[0] * may)
            ahead.insert(0, after / after.max())
        chosen, before = [], len(self.words)
        for may, rest in zip(allowed, ahead, strict=True):
            weight = weights[before] * may * rest
            before = int(rng.choice(len(self.words), p=weight / weight.sum()))
            chosen.append(self.words[before])
        return " ".join(chosen)

    def _of_length(self, length: int | None) -> Floats:
        fits = np.array([float(length is None or len(word) == length) for word in self.words])
        if not fits.any():
            known = sorted({len(word) for word in self.words})
            raise BadInput(f"No listed word has {length} letters.", fix=f"lengths are {known[0]} to {known[-1]}")
        return fits


@functools.cache
def english() -> Bigrams:
    """The built-in model: about 200 common words in eight classes."""
    orders: dict[str, list[str]] = {}
    classes: dict[str, list[str]] = {}
    text = (resources.files("recombine.language") / "words.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        name, *rest = line.replace(":", " : ").split()
        (orders if rest[0] == ">" else classes)[name] = rest[1:]
    members = [(name, word) for name, words in classes.items() for word in words]
    within = np.concatenate([_by_rank(len(words), WORD_LAW) for words in classes.values()])
    rows = {}
    for name, order in orders.items():
        probabilities = dict(zip(order, _by_rank(len(order), CLASS_LAW).tolist(), strict=True))
        rows[name] = within * np.array([probabilities[member] for member, _ in members])
    words = tuple(word for _, word in members)
    follow = np.stack([rows[name] for name, _ in members] + [rows[START]])
    return Bigrams(words, follow, {word: index for index, word in enumerate(words)})


def _by_rank(count: int, law: float) -> Floats:
    weights = np.arange(1, count + 1, dtype=float) ** -law
    return weights / weights.sum()
