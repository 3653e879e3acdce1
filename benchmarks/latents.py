"""The fast steps of latents against as many forward and backward passes of the latents alone."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from measuring import row, side_by_side
from recombine.models.latent_decoder import LatentDecoder, LatentDecoderNetwork
from recombine.objectives.latent_posterior import LatentPosterior, as_latent_decoder

TEXTS, LENGTH, CHARACTERS, STEPS = 16, 64, 27, 16
TURNS = 9


@eqx.filter_jit
def passes(network: LatentDecoderNetwork, given: Array, inputs: Array, targets: Array) -> Array:
    """Forward, and backward to the latents."""

    def cost(latents: Array) -> Array:
        return jnp.sum(network.log_likelihoods(network.stem(inputs), latents, targets))

    return jax.grad(cost)(given)


def latents() -> None:
    """The whole fit (noise, passes, Adam) against the gradient of the log-likelihood with respect to latents, one call per step."""
    tokens = jax.random.randint(jax.random.key(1), (TEXTS, LENGTH + 1), 3, CHARACTERS)
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    fit = eqx.filter_jit(LatentPosterior(fast_steps=STEPS).fit)
    for width in (32, 128):
        network = as_latent_decoder(LatentDecoder(width=width).draw(1, LENGTH, LENGTH * CHARACTERS, jax.random.key(0)))

        given = jax.random.normal(jax.random.key(2), (TEXTS, *network.latent_shape))
        own, bare = side_by_side(
            [
                lambda network=network: fit(network, inputs, targets, jax.random.key(3)),
                lambda network=network, given=given: [passes(network, given, inputs, targets) for _ in range(STEPS)],
            ],
            TURNS,
        )
        row(
            f"{STEPS} fast steps, 2 x {width}, {TEXTS} texts of {LENGTH} tokens",
            f"{own / bare:.2f} x as many forward-backward passes of the latents",
            f"{1000 * own / STEPS:.1f} ms a fast step",
        )
