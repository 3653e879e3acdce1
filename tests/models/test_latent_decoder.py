"""The decoder with latents: what a token sees, that latents of each layer count, and conformance."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest

from recombine.models import LatentDecoder, LatentDecoderNetwork
from recombine.testing import check_model


@pytest.mark.parametrize("latents", [0, 2])
def test_conforms(latents: int) -> None:
    model = LatentDecoder(width=8, latents=latents, latent_size=3)
    check_model(model, output_size=28)


def likelihoods(model: LatentDecoder, tokens: jax.Array, latents: jax.Array) -> np.ndarray:
    network = model.draw(1, 12, 12 * 9, jax.random.key(0))
    assert isinstance(network, LatentDecoderNetwork)

    @eqx.filter_jit
    def run(network: LatentDecoderNetwork, tokens: jax.Array, latents: jax.Array) -> jax.Array:
        return network.log_likelihoods(network.stem(tokens[:, :-1]), latents, tokens[:, 1:])

    return np.asarray(run(network, tokens, latents))


@pytest.mark.parametrize(("window", "layers"), [(1, 2), (2, 2), (3, 2), (3, 1), (0, 2)])
def test_a_token_sees_as_far_as_reach_says(window: int, layers: int) -> None:
    model = LatentDecoder(width=8, latents=1, latent_size=3, window=window, layers=layers)
    tokens = jax.random.randint(jax.random.key(1), (1, 13), 3, 9)
    latents = jax.random.normal(jax.random.key(2), (1, layers, 1, 3))
    before = likelihoods(model, tokens, latents)
    after = likelihoods(model, tokens.at[0, 2].set(3 + (tokens[0, 2] - 2) % 6), latents)
    # Token 2 is predicted at place 1, and is seen from place 2 on.
    changed = np.flatnonzero(~np.isclose(before, after, atol=1e-6)[0])
    reach = model.reach or 10
    assert set(changed) - {1} <= set(range(2, 2 + reach)) and changed.max() == min(11, 1 + reach)


def test_latents_of_each_layer_and_each_text_count() -> None:
    model = LatentDecoder(width=8, latents=2, latent_size=3)
    tokens = jax.random.randint(jax.random.key(1), (2, 13), 3, 9)
    latents = jax.random.normal(jax.random.key(2), (2, 2, 2, 3))
    plain = likelihoods(model, tokens, latents)
    for layer in range(2):
        after = likelihoods(model, tokens, latents.at[0, layer].set(0))
        assert not np.allclose(plain[0], after[0])
        np.testing.assert_allclose(plain[1], after[1], atol=1e-6)
    # A set of latents: their order does not count.
    np.testing.assert_allclose(plain, likelihoods(model, tokens, latents[:, :, ::-1]), atol=1e-5)


def test_heads_must_fit() -> None:
    with pytest.raises(ValueError, match="even number of units"):
        LatentDecoder(width=10, heads=2)
