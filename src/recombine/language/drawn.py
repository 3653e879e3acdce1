"""Random languages: words of random letters, some of which follow others far more often than the rest.

Letters are numbers from 0, and all words have the same length, so a text is a row of letters and every string of its length
has a probability. With r the rank of a word among those that may follow another (a random order for each word):

    P(next word | word) = (1 - made_up) * r^-law / sum(r^-law) + made_up / (number of strings of a word's length)

The first word of a text, and a word after one that is not listed, have a separate order of ranks.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput

Texts = Int[np.ndarray, "text letter"]

PROBABLE, REORDERED, MADE_UP = "probable", "reordered", "made up"
LEVELS = (PROBABLE, REORDERED, MADE_UP)
"""Texts as drawn; the same words in their least probable order; the same letters in random order."""
ATTEMPTS = 50
"""The largest number of attempts to replace texts that repeat or have no less probable order."""


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnLanguage:
    """A list of words, and the probabilities of one word after another."""

    alphabet: int
    """The number of letters."""
    listed: Int[np.ndarray, "word letter"]
    """The words, in alphabetical order."""
    follow: Float[np.ndarray, "before word"]
    """Row i: the distribution of listed words after word i. The last row is that of the first word of a text."""
    made_up: float
    """The probability that the next word is any string of letters."""

    @classmethod
    def draw(
        cls, rng: np.random.Generator, alphabet: int, letters: int, words: int, law: float, made_up: float
    ) -> DrawnLanguage:
        """Draw a language of `words` words of `letters` letters. `law` is the exponent of the power law of ranks."""
        strings = alphabet**letters
        if words > strings:
            raise BadInput(
                f"There are {strings} strings of {letters} letters out of {alphabet}, fewer than {words} words.",
                fix=f"use at most {strings} words, or longer ones",
            )
        codes = np.sort(rng.choice(strings, words, replace=False))
        ranks = np.argsort(rng.random((words + 1, words)), axis=1) + 1.0
        weights = ranks**-law
        return cls(alphabet, _digits(codes, alphabet, letters), weights / weights.sum(1, keepdims=True), made_up)

    @property
    def letters(self) -> int:
        """The length of words."""
        return self.listed.shape[1]

    @property
    def _strings(self) -> int:
        """The number of strings of a word's length."""
        return self.alphabet**self.letters

    def _codes(self, words: Int[np.ndarray, "*n letter"]) -> Int[np.ndarray, "*n"]:
        """Words as numbers, in alphabetical order."""
        return words @ self.alphabet ** np.arange(self.letters)[::-1]

    def _indices(self, codes: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
        """The index of each word in the list; the length of the list if it is not there."""
        known = self._codes(self.listed)
        index = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(known[index] == codes, index, len(known))

    def texts(self, rng: np.random.Generator, number: int, words: int, made_up: float | None = None) -> Texts:
        """Draw texts of `words` words, one per row, also with another probability of any string of letters (`made_up`)."""
        free = self.made_up if made_up is None else made_up
        known = self._codes(self.listed)
        # One ascending list of all rows' cumulative probabilities, offset by 1 per row: a single search finds all words.
        sums = np.cumsum(self.follow, axis=1)
        rising = (sums / sums[:, -1:] + np.arange(len(sums))[:, None]).ravel()
        codes = np.empty((number, words), np.int64)
        before = np.full(number, len(known))
        for position in range(words):
            drawn = np.searchsorted(rising, before + rng.random(number), side="right") - len(known) * before
            listed = known[np.minimum(drawn, len(known) - 1)]
            any_letters = rng.integers(0, self._strings, number)
            codes[:, position] = np.where(rng.random(number) < free, any_letters, listed)
            before = self._indices(codes[:, position])
        return _digits(codes.ravel(), self.alphabet, self.letters).reshape(number, -1)

    def log_probability(self, texts: Texts) -> Float[np.ndarray, " text"]:
        """The natural logarithm of the probability of each text, given its number of words."""
        index = self._indices(self._codes(np.asarray(texts).reshape(len(texts), -1, self.letters)))
        none = len(self.listed)
        before = np.concatenate([np.full((len(texts), 1), none), index[:, :-1]], axis=1)
        follow = np.pad(self.follow, ((0, 0), (0, 1)))[before, index]
        return np.log((1 - self.made_up) * follow + self.made_up / self._strings).sum(axis=1)

    def graded(self, rng: np.random.Generator, number: int, words: int) -> Int[np.ndarray, "level text letter"]:
        """Draw different texts at each of the `LEVELS`, with the same letters at all of them, less probable at each level."""
        texts = np.empty((len(LEVELS), 0, words * self.letters), np.int64)
        for _ in range(ATTEMPTS):
            more = self._graded(rng, 2 * number, words)
            texts = _all_different(np.concatenate([texts, more], axis=1))
            if texts.shape[1] >= number:
                return texts[:, :number]
        raise BadInput(
            f"Only {texts.shape[1]} of {number} texts of {words} words with a less probable order could be drawn.",
            fix="ask for fewer texts, or for more words",
        )

    def _graded(self, rng: np.random.Generator, number: int, words: int) -> Int[np.ndarray, "level text letter"]:
        probable = self.texts(rng, number, words, made_up=0.0)
        split = probable.reshape(number, words, self.letters)
        orders = [split[:, list(order)].reshape(number, -1) for order in itertools.permutations(range(words))]
        least = np.argmin([self.log_probability(order) for order in orders], axis=0)
        reordered = np.stack(orders)[least, np.arange(number)]
        made_up = rng.permuted(probable, axis=1)
        texts = np.stack([probable, reordered, made_up])
        logprobs = np.stack([self.log_probability(level) for level in texts])
        return texts[:, (np.diff(logprobs, axis=0) < 0).all(axis=0)]


def _digits(codes: Int[np.ndarray, " n"], base: int, places: int) -> Int[np.ndarray, "n place"]:
    return codes[:, None] // base ** np.arange(places)[::-1] % base


def _all_different(texts: Int[np.ndarray, "level text letter"]) -> Int[np.ndarray, "level text letter"]:
    """Drop entries that share a text, at any level, with an earlier one."""
    seen: set[bytes] = set()
    kept = []
    for index in range(texts.shape[1]):
        own = {text.tobytes() for text in texts[:, index]}
        if len(own) == len(texts) and not own & seen:
            seen |= own
            kept.append(index)
    return texts[:, kept]
