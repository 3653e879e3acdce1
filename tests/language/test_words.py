"""The model of text: its probabilities by hand, and draws against probabilities by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.language.words import SIGNS, SPELLED, english


def harmonic(count, law):
    return sum(rank**-law for rank in range(1, count + 1))


def test_every_row_is_a_distribution():
    model = english()
    assert model.follow.shape == (len(model.words) + 1, len(model.words))
    np.testing.assert_allclose(model.follow.sum(1), 1)
    assert (model.follow > 0).all()


def test_words_are_plain_and_of_few_lengths():
    words = english().words
    assert len(set(words)) == len(words) > 150
    assert all(word.isascii() and word.isalpha() and word.islower() and 2 <= len(word) <= 6 for word in words)


def test_a_probability_by_hand():
    """`the` is the first determiner, determiners come first; `man` is the first noun, nouns come first after them."""
    model = english()
    classes = harmonic(8, 2)
    determiners = model.words.index("old")  # The first word of the next class.
    nouns = model.words.index("was") - model.words.index("man")
    first = (1 - SPELLED) / classes / harmonic(determiners, 1) + SPELLED * SIGNS**-4
    second = (1 - SPELLED) / classes / harmonic(nouns, 1) + SPELLED * SIGNS**-4
    assert model.log_probability("The man") == pytest.approx(math.log(first) + math.log(second))


def test_a_word_that_is_not_listed_is_spelled():
    model = english()
    spelled = math.log(SPELLED) - 4 * math.log(SIGNS)
    assert model.log_probability("xqz") == pytest.approx(spelled)
    assert model.log_probability("xqz the") == pytest.approx(spelled + model.log_probability("the"))
    assert model.log_probability("") == 0


def test_order_matters():
    model = english()
    text = "the woman went to school"
    assert model.log_probability(text) > model.log_probability("to the school woman went")


@pytest.mark.parametrize("sharpness", [2.0, 1.0, 0.0, -1.0])
def test_draws_have_the_probabilities_that_they_should(sharpness):
    """All texts of three words of lengths 2, 2, 6, enumerated."""
    model, lengths = english(), (2, None, 2)
    of = [[place for place, word in enumerate(model.words) if n in (None, len(word))] for n in lengths]
    texts = {}
    for a, b, c in itertools.product(*of):
        texts[a, b, c] = (model.follow[-1, a] * model.follow[a, b] * model.follow[b, c]) ** sharpness
    total = sum(texts.values())
    ends: Counter = Counter()
    for (a, _, c), weight in texts.items():
        ends[model.words[a], model.words[c]] += weight / total
    rng = np.random.default_rng(0)
    drawn = Counter(tuple(np.array(model.draw(rng, lengths, sharpness).split())[[0, 2]]) for _ in range(2000))
    expected = np.array([ends[pair] for pair in ends]) * 2000
    seen = np.array([drawn[pair] for pair in ends])
    common = expected >= 5
    z = (seen[common] - expected[common]) / np.sqrt(expected[common] * (1 - expected[common] / 2000))
    assert sum(drawn[pair] for pair in ends) == 2000 and np.abs(z).max() < 4.5
    counts = [np.append(one[common], one[~common].sum()) for one in (seen, expected)]
    told = counts[1] > 0  # The rare ones are one cell, and at sharpness 0 there are none.
    assert 1e-4 < stats.chisquare(*(one[told] for one in counts)).pvalue < 1 - 1e-4


@given(st.lists(st.integers(2, 6), min_size=1, max_size=8), st.floats(-3, 3), st.integers(0, 99))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_draws_have_the_lengths_that_were_asked_for(lengths, sharpness, seed):
    text = english().draw(np.random.default_rng(seed), lengths, sharpness)
    assert [len(word) for word in text.split()] == lengths
    assert text == english().draw(np.random.default_rng(seed), lengths, sharpness)


def test_lengths_without_a_word_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(BadInput, match="9 letters"):
        english().draw(rng, [3, 9])
    with pytest.raises(BadInput, match="at least one word"):
        english().draw(rng, [])
