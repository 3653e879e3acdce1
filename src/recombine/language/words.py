"""A small model of English text, with which probable and improbable texts of one length and alphabet are drawn.

A word follows another with a probability that depends on the classes of both. With r the place of the next word's class
in the list of classes that may follow (`words.txt`), and s the place of the word in its class:

    P(next word | word) = (1 - SPELLED) * r^-2 / sum(r^-2) * s^-1 / sum(s^-1) + SPELLED * P(spelled)

Both laws are skewed as those of real text are, and written down instead of counted, so that nothing depends on a corpus.
A word that is not listed is spelled: each sign, and the end of the word, has the probability 1 / SIGNS.
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
"""How fast probability falls with rank: r to the power of minus this."""
SPELLED = 1e-4
"""The probability that the next word is spelled and not taken from the list."""
SIGNS = 37
"""Letters, digits, and the end of a word."""


@dataclasses.dataclass(frozen=True, eq=False)
class Bigrams:
    """The probabilities of one word after another."""

    words: tuple[str, ...]
    follow: Floats
    """Row i: the distribution of the listed words after word i; the last row is that of the first word of a text."""
    number: dict[str, int]
    """Of each word."""

    def log_probability(self, text: str) -> float:
        """The natural logarithm of a text's probability, given how many words it has. Capitals count as small letters.

        A word after one that is not listed has the probability of a first word.
        """
        before, total = len(self.words), 0.0
        for word in text.lower().split():
            listed = self.number.get(word)
            spelled = math.log(SPELLED) - (len(word) + 1) * math.log(SIGNS)
            if listed is None:
                total += spelled
                before = len(self.words)
                continue
            total += float(
                np.logaddexp(math.log1p(-SPELLED) + math.log(self.follow[before, listed]), spelled)
            )
            before = listed
        return total

    def draw(self, rng: np.random.Generator, lengths: Sequence[int | None], sharpness: float = 1.0) -> str:
        """A text with words of these lengths (None: any), drawn with a probability that goes as P(text) ** sharpness.

        At 1 that is the model itself. Above 1 probable texts are preferred, at 0 all are equal, below 0 improbable ones
        are preferred: so probable and improbable texts of one length come from one vocabulary. The draw is exact: weights
        of what may still come are summed from the end on.
        """
        if not lengths:
            raise BadInput("A text has at least one word.", fix="give the length of each")
        weights = self.follow**sharpness
        allowed = [self._of_length(length) for length in lengths]
        ahead = [np.ones(len(self.words))]
        for may in reversed(allowed[1:]):
            after = weights[:-1] @ (ahead[0] * may)
            ahead.insert(0, after / after.max())
        chosen, before = [], len(self.words)
        for may, rest in zip(allowed, ahead, strict=True):
            chance = weights[before] * may * rest
            before = int(rng.choice(len(self.words), p=chance / chance.sum()))
            chosen.append(self.words[before])
        return " ".join(chosen)

    def _of_length(self, length: int | None) -> Floats:
        found = np.array([float(length is None or len(word) == length) for word in self.words])
        if not found.any():
            known = sorted({len(word) for word in self.words})
            raise BadInput(
                f"No listed word has {length} letters.", fix=f"lengths are {known[0]} to {known[-1]}"
            )
        return found


@functools.cache
def english() -> Bigrams:
    """The built-in model: some 200 common words in eight classes."""
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
        chances = dict(zip(order, _by_rank(len(order), CLASS_LAW).tolist(), strict=True))
        rows[name] = within * np.array([chances[one] for one, _ in members])
    words = tuple(word for _, word in members)
    follow = np.stack([rows[name] for name, _ in members] + [rows[START]])
    return Bigrams(words, follow, {word: place for place, word in enumerate(words)})


def _by_rank(count: int, law: float) -> Floats:
    weights = np.arange(1, count + 1, dtype=float) ** -law
    return weights / weights.sum()
