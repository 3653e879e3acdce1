"""Groups of like length: the same loss and the same gradient as all at once."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.base import Batch
from recombine.language.vocabulary import BEGIN, END, PAD, SPECIAL, padded
from recombine.models.base import Model, Network
from recombine.models.decoder import Decoder
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.objectives.next_token import NextToken

PROMPT, LONGEST, VOCABULARY, TASKS = 4, 13, 8, 12


def batch_of(lengths: list[int]) -> tuple[jax.Array, Batch]:
    """Prompts and answers of random words, a task for each length."""
    rng = np.random.default_rng(0)
    answers = padded([[*rng.integers(SPECIAL, VOCABULARY, size).tolist(), END] for size in lengths], LONGEST)
    shown = np.concatenate([np.full((len(answers), 1), BEGIN), answers[:, :-1]], axis=1)
    prompts = padded([rng.integers(SPECIAL, VOCABULARY, 1 + size % PROMPT).tolist() for size in lengths], PROMPT)
    inputs, targets, codes = (jnp.asarray(one, jnp.float32) for one in (shown, answers, prompts))
    flat = Batch(inputs, targets, jnp.ones(len(lengths)))
    return codes, jax.tree.map(lambda leaf: leaf[:, None], flat)


@eqx.filter_jit
def cost(objective: NextToken, network: Network, codes: jax.Array, batch: Batch) -> tuple[jax.Array, Network]:
    return eqx.filter_value_and_grad(lambda one: objective.cost(one, codes, batch, jax.random.key(1)))(network)


@pytest.mark.parametrize(
    "model",
    [Decoder(width=16, layers=2, heads=2, mlp_ratio=2), EncoderDecoder(width=16, layers=1, heads=2)],
    ids=lambda model: model.kind,
)
@pytest.mark.parametrize("lengths", [[0, 12, 3, 7, 1, 1, 5, 9, 2, 12, 4, 6], [2] * TASKS])
def test_groups_change_nothing(model: Model, lengths: list[int]) -> None:
    network = model.draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))
    codes, batch = batch_of(lengths)
    (whole, slope), (parts, slopes) = (
        cost(NextToken(length_groups=groups), network, codes, batch) for groups in (0, 4)
    )
    np.testing.assert_allclose(whole, parts, rtol=1e-5)
    for one, other in zip(jax.tree.leaves(slope), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_batch_that_cannot_be_cut_evenly_is_cut_into_fewer() -> None:
    network = Decoder(width=16, layers=1, heads=2).draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))
    codes, batch = batch_of(list(range(TASKS)))
    found = [float(cost(NextToken(length_groups=groups), network, codes, batch)[0]) for groups in (0, 8, 7)]
    np.testing.assert_allclose(found[1:], found[0], rtol=1e-5)


def test_words_that_would_be_lost_fail_in_groups_too() -> None:
    network = Decoder(width=16, layers=1, heads=2).draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))
    codes, batch = batch_of([12, *[3] * (TASKS - 1)])
    assert (batch.targets != PAD).any()
    assert np.isnan(cost(NextToken(length_groups=4, answer_length=8), network, codes, batch)[0])
    assert np.isfinite(cost(NextToken(length_groups=4, answer_length=13), network, codes, batch)[0])
