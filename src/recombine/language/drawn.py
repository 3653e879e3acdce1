"""A language of its own for each replicate: random words, of which some follow others far more often than the rest.

Letters are numbers from 0 on and all words have equally many, so a text is a row of letters and every string of its length has
a probability. With r the rank of a word among those that may follow another (a random order for each word):

    P(next word | word) = (1 - made_up) * r^-law / sum(r^-law) + made_up / (number of strings of a word's length)

The first word of a text, and a word after one that is not in the list, has an order of ranks of its own.
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
"""Texts as they are drawn; the same words in their least probable order; the same letters in a random order."""
ATTEMPTS = 50
"""So often texts are drawn anew that have no less probable order or were there before."""


@dataclasses.dataclass(frozen=True, eq=False)
class DrawnLanguage:
    """Words and the probabilities of one after another."""

    alphabet: int
    """How many letters there are."""
    listed: Int[np.ndarray, "word letter"]
    """The words, by the alphabet."""
    follow: Float[np.ndarray, "before word"]
    """Row i: the distribution of the listed words after word i; the last row is that of the first word of a text."""
    made_up: float
    """The probability that the next word is any string of letters."""

    @classmethod
    def draw(
        cls, rng: np.random.Generator, alphabet: int, letters: int, words: int, law: float, made_up: float
    ) -> DrawnLanguage:
        """So many random words of so many letters."""
        strings = alphabet**letters
        if words > strings:
            raise BadInput(
                f"There are {strings} strings of {letters} letters out of {alphabet}, fewer than {words} words.",
                fix=f"at most {strings} words, or longer ones",
            )
        codes = np.sort(rng.choice(strings, words, replace=False))
        ranks = np.argsort(rng.random((words + 1, words)), axis=1) + 1.0
        weights = ranks**-law
        return cls(
            alphabet, _digits(codes, alphabet, letters), weights / weights.sum(1, keepdims=True), made_up
        )

    @property
    def letters(self) -> int:
        """Of each word."""
        return self.listed.shape[1]

    @property
    def _strings(self) -> int:
        """How many strings have the length of a word."""
        return self.alphabet**self.letters

    def _codes(self, words: Int[np.ndarray, "*n letter"]) -> Int[np.ndarray, "*n"]:
        """Words as numbers, in the order of the alphabet."""
        return words @ self.alphabet ** np.arange(self.letters)[::-1]

    def _places(self, codes: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
        """The place of each word in the list; one more than the last for one that is not there."""
        known = self._codes(self.listed)
        places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(known[places] == codes, places, len(known))

    def texts(self, rng: np.random.Generator, number: int, words: int, made_up: float | None = None) -> Texts:
        """Texts of so many words, drawn by their probabilities, or with another share of words that are any letters."""
        free = self.made_up if made_up is None else made_up
        known = self._codes(self.listed)
        # One rising list of all rows' cumulative shares, each row one further on, so that a single search finds all words.
        sums = np.cumsum(self.follow, axis=1)
        rising = (sums / sums[:, -1:] + np.arange(len(sums))[:, None]).ravel()
        codes = np.empty((number, words), np.int64)
        before = np.full(number, len(known))
        for place in range(words):
            found = np.searchsorted(rising, before + rng.random(number), side="right") - len(known) * before
            listed = known[np.minimum(found, len(known) - 1)]
            any_letters = rng.integers(0, self._strings, number)
            codes[:, place] = np.where(rng.random(number) < free, any_letters, listed)
            before = self._places(codes[:, place])
        return _digits(codes.ravel(), self.alphabet, self.letters).reshape(number, -1)

    def log_probability(self, texts: Texts) -> Float[np.ndarray, " text"]:
        """The natural logarithm of the probability of each text, given how many words it has."""
        places = self._places(self._codes(np.asarray(texts).reshape(len(texts), -1, self.letters)))
        none = len(self.listed)
        before = np.concatenate([np.full((len(texts), 1), none), places[:, :-1]], axis=1)
        follow = np.pad(self.follow, ((0, 0), (0, 1)))[before, places]
        return np.log((1 - self.made_up) * follow + self.made_up / self._strings).sum(axis=1)

    def graded(
        self, rng: np.random.Generator, number: int, words: int
    ) -> Int[np.ndarray, "level text letter"]:
        """So many different texts at each of the `LEVELS`, each with the same letters at all of them, and less probable
        from one to the next."""
        found = np.empty((len(LEVELS), 0, words * self.letters), np.int64)
        for _ in range(ATTEMPTS):
            more = self._graded(rng, 2 * number, words)
            found = _all_different(np.concatenate([found, more], axis=1))
            if found.shape[1] >= number:
                return found[:, :number]
        raise BadInput(
            f"Only {found.shape[1]} of {number} texts of {words} words could be drawn that have a less probable order.",
            fix="ask for fewer, or for more words",
        )

    def _graded(
        self, rng: np.random.Generator, number: int, words: int
    ) -> Int[np.ndarray, "level text letter"]:
        probable = self.texts(rng, number, words, made_up=0.0)
        split = probable.reshape(number, words, self.letters)
        orders = [split[:, list(order)].reshape(number, -1) for order in itertools.permutations(range(words))]
        least = np.argmin([self.log_probability(one) for one in orders], axis=0)
        reordered = np.stack(orders)[least, np.arange(number)]
        made_up = rng.permuted(probable, axis=1)
        texts = np.stack([probable, reordered, made_up])
        chances = np.stack([self.log_probability(one) for one in texts])
        return texts[:, (np.diff(chances, axis=0) < 0).all(axis=0)]


def _digits(codes: Int[np.ndarray, " n"], base: int, places: int) -> Int[np.ndarray, "n place"]:
    return codes[:, None] // base ** np.arange(places)[::-1] % base


def _all_different(texts: Int[np.ndarray, "level text letter"]) -> Int[np.ndarray, "level text letter"]:
    """Without those that share a text, of whichever level, with one before them."""
    seen: set[bytes] = set()
    kept = []
    for place in range(texts.shape[1]):
        own = {text.tobytes() for text in texts[:, place]}
        if len(own) == len(texts) and not own & seen:
            seen |= own
            kept.append(place)
    return texts[:, kept]
