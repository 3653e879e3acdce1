"""How long a run would take: arithmetic of its steps over the speed that this machine shows."""

from __future__ import annotations

import functools
import time

import jax
import jax.numpy as jnp

from recombine.training.config import RunConfig
from recombine.training.prepare import form_of

EFFICIENCY = 0.4
"""The share of a bare matrix product's speed that a whole training step reaches, roughly."""


def flops_per_step(config: RunConfig) -> float:
    """Multiply-adds of the weight matrices, forward and backward. Good to a factor of two, but for convolutions, whose
    weights are used many times."""
    rows = config.recipe.tasks * config.recipe.samples
    if config.model.speaks:
        # Every token passes through every matrix.
        rows *= config.encoding.size(config.space, config.family) + config.family.input_size
    leaves = jax.tree.leaves(form_of(config.model, config.encoding, config.space, config.family))
    shapes = [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    return 6.0 * rows * sum(shape.size for shape in shapes if len(shape.shape) > 1)


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
