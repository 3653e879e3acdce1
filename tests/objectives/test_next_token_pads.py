"""Training that does not pay for pads: the same loss, and none where words would be lost."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.maximum_sum import MaximumSum
from recombine.models.decoder import Decoder
from recombine.objectives.next_token import NextToken, cut
from recombine.spaces.lists import ListSpace

SPACE = ListSpace(longest=4)
FAMILY = MaximumSum(lists=SPACE)


def loss_of(objective: NextToken, lists: list[list[int]]) -> float:
    """The loss of a fresh network on some lists."""
    teacher = FAMILY.draw(SPACE, jax.random.key(0))
    rows = np.concatenate([SPACE.of(np.array([one])) for one in lists])
    network = Decoder(width=16, layers=1, heads=2).draw(
        FAMILY.longest_prompt, FAMILY.input_size, FAMILY.output_size, jax.random.key(1)
    )

    def example(row: jax.Array) -> tuple:
        task = teacher.task(row, jax.random.key(0))
        return teacher.prompt(task).astype(float), teacher.batch(task, jax.random.key(0), 1)

    codes, batch = jax.vmap(example)(jnp.asarray(rows))
    predictions = objective.predict(network, codes, batch, jax.random.key(2))
    return float(objective.loss(predictions, batch))


def test_short_problems_have_the_same_loss_without_their_pads() -> None:
    lists = [[1, 2], [3, -4], [-5, 5]]
    assert loss_of(NextToken(prompt_length=2, answer_length=5), lists) == pytest.approx(
        loss_of(NextToken(), lists), rel=1e-5
    )
    # At random places the draws are others, so only nearly the same.
    spread = [
        loss_of(NextToken(random_positions=30, prompt_length=p, answer_length=a), lists) for p, a in ((0, 0), (2, 5))
    ]
    assert spread[0] == pytest.approx(spread[1], rel=0.05)


def test_a_run_that_would_lose_words_fails() -> None:
    lists = [[1, 2], [3, -4, 1]]
    assert np.isfinite(loss_of(NextToken(prompt_length=3, answer_length=7), lists))
    assert np.isnan(loss_of(NextToken(prompt_length=2, answer_length=7), lists))
    assert np.isnan(loss_of(NextToken(prompt_length=3, answer_length=5), lists))


def test_cut_tokens_are_noticed() -> None:
    tokens = jnp.array([[3, 4, 0, 0], [5, 0, 0, 0]])
    assert not cut(tokens, 2)[1] and cut(tokens, 1)[1]
    np.testing.assert_array_equal(cut(tokens, 0)[0], tokens)
