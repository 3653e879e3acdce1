"""Syntactic attention: recurrences against plain loops, and which information reaches what."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.language.vocabulary import PAD, SPECIAL
from recombine.models.syntactic_attention import GRU, SyntacticAttention, SyntacticAttentionNetwork
from recombine.testing import check_model

WORDS, LONGEST, VOCABULARY, WIDTH = 4, 3, 9, 8


def drawn(**settings: object) -> SyntacticAttentionNetwork:
    model = SyntacticAttention.model_validate({"width": WIDTH, **settings})
    return model.draw(WORDS, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))


def sites(network: SyntacticAttentionNetwork, prompt: list[int]) -> dict[str, np.ndarray]:
    """The sites of one prompt; syntax and meaning by word, END with them."""
    shown = jnp.full((1, LONGEST), SPECIAL, jnp.float32)
    traced = network.trace(jnp.asarray(prompt, jnp.float32), shown)[1]
    return {name: np.asarray(values).reshape(-1, WIDTH) for name, values in traced.items()}


def test_it_conforms() -> None:
    check_model(SyntacticAttention(width=8, separate=False))


def test_a_recurrent_unit_against_a_loop() -> None:
    unit = GRU.draw(3, 5, jax.random.key(1))
    words = np.asarray(jax.random.normal(jax.random.key(2), (4, 3)))
    real = np.array([True, True, True, False])

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    for reverse in (False, True):
        state, wanted = np.zeros(5), {}
        for place in reversed(range(4)) if reverse else range(4):
            if real[place]:
                given = words[place] @ np.asarray(unit.inputs.weight) + np.asarray(unit.inputs.bias)
                own = state @ np.asarray(unit.recurrent)
                reset, update = sigmoid(given[:5] + own[:5]), sigmoid(given[5:10] + own[5:10])
                state = update * state + (1 - update) * np.tanh(given[10:] + reset * own[10:])
            wanted[place] = state
        found = unit.run(jnp.asarray(words), jnp.asarray(real), reverse)
        np.testing.assert_allclose(found, np.stack([wanted[place] for place in range(4)]), atol=1e-5)


def test_the_meaning_of_a_word_depends_on_no_other_word() -> None:
    for separate in (True, False):
        one, other = (sites(drawn(separate=separate), [4, word, 5, PAD])["meaning"] for word in (6, 7))
        assert np.allclose(one[0], other[0]) == separate, "the word before the changed one"
        assert np.allclose(one[2], other[2]) == separate, "the word after it"
        assert not np.allclose(one[1], other[1])


def test_words_that_are_alike_in_syntax_are_attended_to_alike() -> None:
    """Two verbs with one syntax embedding: the answers differ in their meanings only."""
    network = drawn(spread=1.0)
    network = eqx.tree_at(lambda own: own.syntax, network, network.syntax.at[7].set(network.syntax[6]))
    one, other = (sites(network, [4, word, 5, PAD]) for word in (6, 7))
    np.testing.assert_allclose(one["syntax"], other["syntax"], atol=1e-6)
    # What is found is a weighted mean of meanings with the same weights.
    difference = other["found"] - one["found"]
    direction = np.asarray(network.embedding.embed(jnp.array([7])) - network.embedding.embed(jnp.array([6])))[0]
    shares = difference @ direction / (direction @ direction)
    np.testing.assert_allclose(difference, shares[:, None] * direction, atol=1e-5)
    assert ((shares > 0) & (shares < 1)).all()


def test_the_penalty_is_that_of_the_syntax_embeddings() -> None:
    network = drawn(shrink=0.5)
    assert float(network.penalty()) == pytest.approx(0.5 * float(np.sum(np.asarray(network.syntax) ** 2)), rel=1e-5)


def test_bad_input() -> None:
    with pytest.raises(ValidationError, match="width=7 must be even"):
        SyntacticAttention(width=7)
