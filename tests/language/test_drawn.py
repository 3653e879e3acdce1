"""Drawn languages: probabilities against plain loops and against what is drawn; texts at levels of probability."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.language.drawn import LEVELS, DrawnLanguage

SMALL = DrawnLanguage.draw(np.random.default_rng(3), alphabet=3, letters=2, words=4, law=1.5, made_up=0.2)
EVERY = np.array(list(itertools.product(range(3), repeat=4)))
"""All texts of two words."""


def by_hand(language: DrawnLanguage, text: list[int]) -> float:
    """The log-probability of a text, word by word."""
    words = [tuple(word) for word in language.listed.tolist()]
    total, before = 0.0, len(words)
    for start in range(0, len(text), language.letters):
        word = tuple(text[start : start + language.letters])
        chance = language.made_up / language.alphabet**language.letters
        if word in words:
            chance += (1 - language.made_up) * language.follow[before, words.index(word)]
        before = words.index(word) if word in words else len(words)
        total += math.log(chance)
    return total


def test_log_probabilities_are_those_of_the_formula() -> None:
    expected = [by_hand(SMALL, text) for text in EVERY.tolist()]
    np.testing.assert_allclose(SMALL.log_probability(EVERY), expected, rtol=1e-12)


def test_all_texts_together_have_probability_one() -> None:
    assert np.exp(SMALL.log_probability(EVERY)).sum() == pytest.approx(1.0)


def test_texts_are_drawn_by_their_probabilities() -> None:
    drawn = SMALL.texts(np.random.default_rng(0), 40_000, 2)
    counts = np.bincount(drawn @ 3 ** np.arange(4)[::-1], minlength=len(EVERY))
    expected = np.exp(SMALL.log_probability(EVERY)) * len(drawn)
    assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_the_law_of_ranks() -> None:
    language = DrawnLanguage.draw(np.random.default_rng(0), 10, 3, 20, law=2.0, made_up=0.1)
    ranks = 1.0 / np.arange(1, 21) ** 2
    for row in language.follow:
        np.testing.assert_allclose(np.sort(row)[::-1], ranks / ranks.sum())
    assert len({tuple(np.argsort(row)) for row in language.follow}) == len(language.follow)


def test_texts_without_made_up_words() -> None:
    drawn = SMALL.texts(np.random.default_rng(0), 500, 3, made_up=0.0).reshape(-1, 2)
    assert set(map(tuple, drawn.tolist())) <= set(map(tuple, SMALL.listed.tolist()))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), words=st.integers(2, 4))
def test_levels_differ_in_probability_alone(seed: int, words: int) -> None:
    rng = np.random.default_rng(seed)
    language = DrawnLanguage.draw(rng, 6, 3, 15, law=1.5, made_up=0.1)
    graded = language.graded(rng, 12, words)
    assert graded.shape == (len(LEVELS), 12, 3 * words)
    letters = np.sort(graded, axis=2)
    assert (letters == letters[0]).all(), "the same letters at all levels"
    chances = np.stack([language.log_probability(texts) for texts in graded])
    assert (np.diff(chances, axis=0) < 0).all()
    assert len({text.tobytes() for text in graded.reshape(-1, 3 * words)}) == 3 * 12


def test_reordered_texts_have_their_least_probable_order() -> None:
    rng = np.random.default_rng(5)
    language = DrawnLanguage.draw(rng, 6, 3, 15, law=1.5, made_up=0.1)
    probable, reordered, _ = language.graded(rng, 6, 3)
    for text, other in zip(probable.tolist(), reordered.tolist(), strict=True):
        words = [text[start : start + 3] for start in (0, 3, 6)]
        orders = [[*one, *two, *three] for one, two, three in itertools.permutations(words)]
        assert by_hand(language, other) == pytest.approx(min(by_hand(language, one) for one in orders))
        assert other in orders


def test_bad_input() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(BadInput, match="fewer than 10 words"):
        DrawnLanguage.draw(rng, 3, 2, 10, law=1.0, made_up=0.1)
    with pytest.raises(BadInput, match="less probable order"):
        SMALL.graded(rng, 500, 2)
