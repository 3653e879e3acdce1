"""The bound of latents: against exact likelihoods of a linear-Gaussian model, its trap, and the fit of a decoder's latents."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.models import Decoder, LatentDecoderNetwork
from recombine.objectives.latent_posterior import LatentPosterior, Posterior, fit_posterior, mean_log_likelihood
from recombine.training.config import RunConfig

ROWS, SIZE, FEATURES, NOISE = 64, 3, 8, 0.4


class Linear(eqx.Module):
    """x = W z + noise with orthogonal columns, so that the exact posterior is independent in each number."""

    weight: jax.Array
    data: jax.Array

    def __call__(self, latents: jax.Array) -> jax.Array:
        error = (self.data - latents @ self.weight.T) / NOISE
        return jnp.sum(-(error**2) / 2 - np.log(NOISE) - np.log(2 * np.pi) / 2, axis=1)


@pytest.fixture(scope="module")
def world() -> tuple[Linear, np.ndarray]:
    """The model, and the exact log-likelihood of each row."""
    draw = np.random.default_rng(0)
    basis = np.linalg.qr(draw.normal(size=(FEATURES, SIZE)))[0] * np.array([0.5, 1.0, 2.0])
    data = draw.normal(size=(ROWS, SIZE)) @ basis.T + NOISE * draw.normal(size=(ROWS, FEATURES))
    covariance = basis @ basis.T + NOISE**2 * np.eye(FEATURES)
    quadratic = np.sum(data * np.linalg.solve(covariance, data.T).T, axis=1)
    exact = -(quadratic + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
    return Linear(jnp.asarray(basis, jnp.float32), jnp.asarray(data, jnp.float32)), exact


@eqx.filter_jit
def fitted(model: Linear, noises: jax.Array, rate: float) -> Posterior:
    return fit_posterior(model, Posterior.prior(ROWS, SIZE), noises, rate, 1e-8)


@eqx.filter_jit
def bound(model: Linear, posterior: Posterior, key: jax.Array) -> jax.Array:
    return mean_log_likelihood(model, posterior, key, 256) - posterior.divergence()


def test_the_exact_posterior_reaches_the_exact_likelihood(world: tuple[Linear, np.ndarray]) -> None:
    model, exact = world
    precision = 1 + jnp.sum(model.weight**2, axis=0) / NOISE**2
    mean = model.data @ model.weight / NOISE**2 / precision
    best = Posterior(mean, jnp.broadcast_to(-jnp.log(precision), mean.shape))
    np.testing.assert_allclose(bound(model, best, jax.random.key(0)).mean(), exact.mean(), atol=0.03)
    shifted = Posterior(mean + 0.3, best.log_variance)
    assert bound(model, shifted, jax.random.key(0)).mean() < exact.mean() - 0.1


def test_a_fit_with_fresh_noise_comes_close_from_below(world: tuple[Linear, np.ndarray]) -> None:
    model, exact = world
    noises = jax.random.normal(jax.random.key(1), (400, ROWS, SIZE))
    value = float(bound(model, fitted(model, noises, 0.05), jax.random.key(2)).mean())
    assert exact.mean() - 0.2 < value < exact.mean() + 0.02


def test_reused_noise_is_no_bound(world: tuple[Linear, np.ndarray]) -> None:
    """The trap: with the noise that it was fitted to, a posterior seems better than is possible, and with fresh noise it is worse."""
    model, exact = world
    noise = jax.random.normal(jax.random.key(3), (ROWS, SIZE))
    posterior = fitted(model, jnp.broadcast_to(noise, (400, ROWS, SIZE)), 0.05)
    reused = float((model(posterior.at(noise)) - posterior.divergence()).mean())
    fresh = float(bound(model, posterior, jax.random.key(4)).mean())
    assert fresh < exact.mean() - 0.2 < exact.mean() + 0.2 < reused


@settings(max_examples=25, deadline=None)
@given(st.floats(-3, 3), st.floats(-4, 2))
def test_divergence_against_numerical_integration(mean: float, log_variance: float) -> None:
    spread = np.exp(log_variance / 2)
    places, step = np.linspace(mean - 12 * spread, mean + 12 * spread, 4001, retstep=True)
    log_density = stats.norm.logpdf(places, mean, spread)
    wanted = np.sum(np.exp(log_density) * (log_density - stats.norm.logpdf(places))) * step
    found = Posterior(jnp.full((1, 1), mean), jnp.full((1, 1), log_variance)).divergence()
    np.testing.assert_allclose(found, [wanted], rtol=1e-3, atol=1e-4)


RUN = RunConfig.model_validate(
    {
        "family": {"kind": "topics", "groups": 2, "members": 3, "length": 12},
        "space": {"kind": "product", "factors": {"topic": 3, "style": 3}},
        "model": {"kind": "latent-decoder", "width": 8, "latents": 2, "latent_size": 3, "window": 2},
        "objective": {"kind": "latent-posterior", "fast_steps": 3},
    }
)


@pytest.fixture(scope="module")
def texts() -> tuple[LatentDecoderNetwork, jax.Array]:
    network = RUN.model.draw(1, 12, 12 * 9, jax.random.key(0))
    assert isinstance(network, LatentDecoderNetwork)
    return network, jax.random.randint(jax.random.key(1), (4, 13), 3, 9)


def test_texts_are_fitted_independently(texts: tuple[LatentDecoderNetwork, jax.Array]) -> None:
    """What is fitted to a text does not depend on the other texts of the batch."""
    network, tokens = texts
    other = tokens.at[1:].set(jnp.flip(tokens[1:], axis=1))
    objective = RUN.objective
    assert isinstance(objective, LatentPosterior)
    fit = eqx.filter_jit(objective.fit)
    first, second = (fit(network, each[:, :-1], each[:, 1:], jax.random.key(2)) for each in (tokens, other))
    np.testing.assert_allclose(first.mean[0], second.mean[0], atol=1e-6)
    assert not np.allclose(first.mean[1], second.mean[1])
    assert first.mean.shape == (4, 2, 2, 3) and (first.divergence() > 0).all()


def test_the_slow_step_does_not_see_through_the_fit(texts: tuple[LatentDecoderNetwork, jax.Array]) -> None:
    """The gradient of the cost is that of the bound at a posterior that is held fixed."""
    network, tokens = texts
    objective = RUN.objective
    assert isinstance(objective, LatentPosterior)
    inputs, text = tokens[:, :-1], tokens[:, 1:]
    batch = jax.vmap(Batch)(inputs[:, None].astype(float), text[:, None].astype(float), jnp.ones((4, 1)))
    key = jax.random.key(5)
    by_fit, by_draw = jax.random.split(key)
    posterior = eqx.filter_jit(objective.fit)(network, inputs, text, by_fit)
    latents = posterior.at(jax.random.normal(jax.random.split(by_draw, 1)[0], posterior.mean.shape))

    def by_hand(network: LatentDecoderNetwork) -> jax.Array:
        return -jnp.mean(network.log_likelihoods(network.stem(inputs), latents, text))

    wanted = eqx.filter_jit(eqx.filter_grad(by_hand))(network)
    codes = jnp.zeros((4, 1))
    found = eqx.filter_jit(eqx.filter_grad(lambda own: objective.cost(own, codes, batch, key)))(network)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_other_models_are_refused() -> None:
    with pytest.raises(BadInput, match="fits latents"):
        LatentPosterior().check_model(Decoder())
    with pytest.raises(ValueError, match="predicts texts"):
        RunConfig.model_validate({"family": "hyperteacher", "model": "latent-decoder"})
