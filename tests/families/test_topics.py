"""Texts with topic and style: probabilities against hidden-Markov sums by hand, frequencies, and bad input."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.sequences.topics import Topics, TopicsTeacher
from recombine.language.vocabulary import BEGIN, SPECIAL
from recombine.spaces import ProductSpace, SubsetSpace
from recombine.testing import check_family

SPACE = ProductSpace(factors=(("topic", ("a", "b", "c")), ("style", ("x", "y"))))
FAMILY = Topics(groups=2, members=3, length=6)


@pytest.fixture(scope="module")
def teacher() -> TopicsTeacher:
    return FAMILY.draw(SPACE, jax.random.key(0))


def probability(teacher: TopicsTeacher, text: tuple[int, ...], topic: int, style: int) -> float:
    """The probability of characters (0, 1, ...) in a row, the first group uniform, multiplied out."""
    topics, styles = np.exp(teacher.topics), np.exp(teacher.styles)
    groups, members = np.divmod(np.array(text), 3)
    result = 0.5 * topics[topic, groups[0], members[0]]
    for before, group, member in zip(groups, groups[1:], members[1:], strict=False):
        result *= styles[style, before, group] * topics[topic, group, member]
    return float(result)


def test_conforms() -> None:
    check_family(FAMILY, SPACE)


@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_exact_is_the_mixture_of_all_topics_and_styles(teacher: TopicsTeacher, window: int) -> None:
    """Bayes' rule by hand: joint probabilities of what is seen, with and without the next token."""
    text = (0, 4, 3, 1, 2, 5)
    found = teacher.exact(jnp.array(text) + SPECIAL, window)
    every = list(itertools.product(range(3), range(2)))
    for place in range(len(text)):
        seen = text[max(0, place - window) if window else 0 : place]
        longer = sum(probability(teacher, (*seen, text[place]), *each) for each in every)
        # With nothing seen only the beginning of a text has a uniform first group.
        shorter = sum(probability(teacher, seen, *each) for each in every) if seen else len(every)
        if seen or not place:
            np.testing.assert_allclose(found[place], np.log(longer / shorter), rtol=1e-4)


def test_told_probabilities_sum_to_one(teacher: TopicsTeacher) -> None:
    every = jnp.array(list(itertools.product(range(6), repeat=3))) + SPECIAL
    short = TopicsTeacher(teacher.topics, teacher.styles, 3)
    by_topic, by_style = jax.vmap(short.log_likelihoods)(every)
    total = by_topic.sum(1)[:, :, None] + by_style.sum(1)[:, None, :]
    np.testing.assert_allclose(jnp.exp(total).sum(0), np.ones((3, 2)), rtol=1e-4)


def test_texts_have_the_probabilities_of_their_task(teacher: TopicsTeacher) -> None:
    task = teacher.task(jnp.array([1, 4]), jax.random.key(0))
    texts = jax.jit(lambda keys: jax.vmap(lambda key: teacher.text(task, key))(keys))(
        jax.random.split(jax.random.key(1), 4000)
    )
    pairs, counts = np.unique(np.asarray(texts)[:, :2] - SPECIAL, axis=0, return_counts=True)
    wanted = [probability(teacher, tuple(pair), 1, 1) for pair in pairs]
    np.testing.assert_allclose(counts / 4000, wanted, atol=6 * 0.5 / 4000**0.5)
    assert np.asarray(texts).min() >= SPECIAL and np.asarray(texts).max() < SPECIAL + 6


def test_inputs_are_the_text_one_place_later(teacher: TopicsTeacher) -> None:
    batch = teacher.batch(teacher.task(jnp.array([0, 3]), jax.random.key(0)), jax.random.key(2), 4)
    assert (batch.inputs[:, 0] == BEGIN).all()
    np.testing.assert_array_equal(batch.inputs[:, 1:], batch.targets[:, :-1])


def test_other_spaces_are_refused() -> None:
    with pytest.raises(BadInput, match="needs the factors topic and style"):
        FAMILY.draw(SubsetSpace(modules=4, max_active=2), jax.random.key(0))
