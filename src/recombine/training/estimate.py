"""How long a run would take: arithmetic of its steps over the speed that this machine shows."""

from __future__ import annotations

import functools
import time

import equinox as eqx
import jax
import jax.numpy as jnp

from recombine.training.config import RunConfig
from recombine.training.prepare import first_network

EFFICIENCY = 0.4
"""The share of a bare matrix product's speed that a whole training step reaches, roughly."""


def flops_per_step(config: RunConfig) -> float:
    """Multiply-adds of the weight matrices, forward and backward. Good to a factor of two."""
    parts = config.model, config.encoding, config.space, config.family
    shapes = eqx.filter_eval_shape(
        lambda key: first_network(*parts, config.family.draw(config.space, key), key), jax.random.key(0)
    )
    leaves = [leaf for leaf in jax.tree.leaves(shapes) if isinstance(leaf, jax.ShapeDtypeStruct)]
    weights = sum(leaf.size for leaf in leaves if len(leaf.shape) > 1)
    return 6.0 * weights * config.recipe.tasks * config.recipe.samples


@functools.cache
def machine_flops() -> float:
    """Operations a second in a training step here, from a short measurement."""
    square = jnp.ones((512, 512))
    product = jax.jit(lambda left: left @ left)
    product(square).block_until_ready()
    begin = time.perf_counter()
    for _ in range(10):
        product(square).block_until_ready()
    return EFFICIENCY * 10 * 2 * 512**3 / (time.perf_counter() - begin)
