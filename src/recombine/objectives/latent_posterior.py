"""Latents fitted to each text by a few fast steps, then one slow step of the decoder (latent-thought language models)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch, TargetKind
from recombine.models.base import Codes, Model, Network, TaskOutputs
from recombine.models.latent_decoder import LatentDecoder, LatentDecoderNetwork
from recombine.models.sequence import as_tokens
from recombine.objectives.base import Objective

LogLikelihood = Callable[[Array], Float[Array, " row"]]
"""From the latents of several rows to the log-probability of each row's data, in nats."""


class Posterior(eqx.Module):
    """An independent normal distribution of each number in the latents of each row. The prior is standard normal."""

    mean: Float[Array, "row ..."]
    log_variance: Float[Array, "row ..."]

    @staticmethod
    def prior(*shape: int) -> Posterior:
        """The prior of latents of this shape; the first axis is the row."""
        return Posterior(jnp.zeros(shape), jnp.zeros(shape))

    def at(self, noise: Float[Array, "row ..."]) -> Float[Array, "row ..."]:
        """The latents that standard normal noise stands for."""
        return self.mean + jnp.exp(self.log_variance / 2) * noise

    def divergence(self) -> Float[Array, " row"]:
        """The Kullback-Leibler divergence from the prior, in nats."""
        each = (self.mean**2 + jnp.exp(self.log_variance) - 1 - self.log_variance) / 2
        return jnp.sum(each.reshape(len(each), -1), axis=1)


def fit_posterior(
    log_likelihood: LogLikelihood, start: Posterior, noises: Float[Array, "step row ..."], rate: float, damping: float
) -> Posterior:
    """Fit a posterior to each row by steps of Adam on the bound, with one draw of noise in each step.

    Rows do not influence each other. Weights that `log_likelihood` uses get no gradient: differentiate only its latents.

    Args:
        log_likelihood: Of each row's data given its latents.
        start: The posterior before the first step.
        noises: The standard normal noise of each step. The same noise in all steps makes the fit depend on it.
        rate: The learning rate.
        damping: Added to the root mean square of the gradient, so that numbers that hardly change the bound hardly move.
    """
    optimiser = optax.adam(rate, eps=damping)

    def cost(given: tuple[Array, Array], noise: Array) -> Float[Array, ""]:
        posterior = Posterior(*given)
        return jnp.sum(posterior.divergence() - log_likelihood(posterior.at(noise)))

    def step(carry: tuple[tuple[Array, Array], optax.OptState], noise: Array) -> tuple[Any, None]:
        given, state = carry
        updates, state = optimiser.update(jax.grad(cost)(given, noise), state)
        return (optax.apply_updates(given, updates), state), None

    first = start.mean, start.log_variance
    return Posterior(*jax.lax.scan(step, (first, optimiser.init(first)), noises)[0][0])


def mean_log_likelihood(
    log_likelihood: Callable[[Array], Array], posterior: Posterior, key: Array, samples: int
) -> Array:
    """The mean of a function of latents over fresh draws from the posterior.

    Minus the divergence, the mean log-likelihood is a lower bound on the log-probability of the data. The noise must not be
    that of the fit: with noise that the posterior was fitted to, the result is no bound.
    """

    def draw(key: Array) -> Array:
        return log_likelihood(posterior.at(jax.random.normal(key, posterior.mean.shape)))

    return jnp.mean(jax.lax.map(draw, jax.random.split(key, samples)), axis=0)


class LatentPosterior(Objective):
    """The evidence lower bound of texts. In each step the posterior of each text's latents is fitted anew, then the decoder makes one step.

    Evaluation fits a posterior in the same way, and computes the bound with fresh noise.
    """

    kind: Literal["latent-posterior"] = "latent-posterior"
    serves: ClassVar[TargetKind] = "text"
    fast_steps: PositiveInt = 16
    """Steps in which the posterior of a text is fitted."""
    fast_rate: PositiveFloat = 0.3
    """The learning rate of these steps."""
    damping: NonNegativeFloat = 0.1
    """Added to the root mean square of a gradient in these steps. Near 0, each number moves by about `fast_rate` per step, also where
    it is of no use."""
    deviation: PositiveFloat = 1.0
    """The standard deviation of each latent number before the first fast step; that of the prior is 1. The mean begins at 0."""
    fixed_noise: bool = False
    """Whether all steps of a fit use the same noise. The fit then depends on that noise."""
    draws: int = Field(default=8, ge=8)
    """Draws of fresh noise with which the bound is evaluated."""

    def check_model(self, model: Model) -> None:
        if not isinstance(model, LatentDecoder):
            raise BadInput(
                f"The objective 'latent-posterior' fits latents; the model {model.kind!r} has none.",
                fix="model=latent-decoder",
            )

    def passes(self) -> float:
        # A fast step needs no gradient of the weights: two thirds of a pass.
        return 1 + 2 / 3 * self.fast_steps

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        real = batch.mask[..., None] * jnp.ones_like(predictions)
        return -jnp.sum(predictions * real) / jnp.maximum(jnp.sum(real), 1)

    def noises(self, key: Array, steps: int, shape: tuple[int, ...]) -> Float[Array, "step row layer latent size"]:
        """The noise of each fast step."""
        if self.fixed_noise:
            return jnp.broadcast_to(jax.random.normal(key, shape), (steps, *shape))
        return jax.random.normal(key, (steps, *shape))

    def fit(
        self, network: LatentDecoderNetwork, inputs: Array, targets: Array, key: Array, steps: int | None = None
    ) -> Posterior:
        """The posterior of the latents of each row, given its tokens.

        Args:
            network: The decoder; its weights do not change.
            inputs: The tokens before each token (row, token).
            targets: The tokens (row, token).
            key: Draws the noise of the fit.
            steps: The number of fast steps; None for `fast_steps`.
        """
        shape = (len(inputs), *network.latent_shape)
        if not network.latents:
            return Posterior.prior(*shape)
        stem = network.stem(inputs)

        def log_likelihood(latents: Array) -> Array:
            return jnp.sum(network.log_likelihoods(stem, latents.astype(stem.dtype), targets), axis=1)

        noises = self.noises(key, self.fast_steps if steps is None else steps, shape)
        start = Posterior(jnp.zeros(shape), jnp.full(shape, 2 * math.log(self.deviation)))
        return fit_posterior(log_likelihood, start, noises, self.fast_rate, self.damping)

    def predict(self, network: Network, codes: Codes, batch: Batch, key: Array) -> TaskOutputs:
        """The bound as log-probabilities of tokens, with one draw of fresh noise. The divergence is shared equally by the tokens."""
        return self._bound(network, batch, key, 1)

    def evaluate(self, network: Network, codes: Codes, batch: Batch, key: Array) -> TaskOutputs:
        return self._bound(network, batch, key, self.draws)

    def _bound(self, network: Network, batch: Batch, key: Array, draws: int) -> TaskOutputs:
        network = as_latent_decoder(network)
        by_fit, by_draw = jax.random.split(key)
        shape = batch.targets.shape
        inputs, targets = (as_tokens(each).reshape(-1, shape[-1]) for each in (batch.inputs, batch.targets))
        # The gradient of a slow step does not pass through the fit.
        frozen = jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_array(leaf) else leaf, network)
        posterior = jax.lax.stop_gradient(self.fit(frozen, inputs, targets, by_fit))
        stem = network.stem(inputs)

        def log_likelihoods(latents: Array) -> Array:
            return network.log_likelihoods(stem, latents.astype(stem.dtype), targets)

        if not network.latents:
            return log_likelihoods(posterior.mean).reshape(shape)
        expected = mean_log_likelihood(log_likelihoods, posterior, by_draw, draws)
        return (expected - posterior.divergence()[:, None] / shape[-1]).reshape(shape)


def as_latent_decoder(network: Network) -> LatentDecoderNetwork:
    """The network, typed as one that has latents."""
    assert isinstance(network, LatentDecoderNetwork)  # The configuration of a run guarantees it.
    return network
