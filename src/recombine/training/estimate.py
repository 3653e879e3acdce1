"""Estimating the time of a run: the arithmetic of its steps, divided by the measured speed of this machine."""

from __future__ import annotations

import functools
import time

import jax
import jax.numpy as jnp

from recombine.training.config import RunConfig
from recombine.training.prepare import network_shapes

EFFICIENCY = 0.4
"""The speed of a training step relative to a bare matrix product, roughly."""


def flops_per_step(config: RunConfig) -> float:
    """Operations of one training step: products with the weight matrices, forward and backward.

    Correct to a factor of two, except for convolutions, which use their weights many times. `flops.py` counts exactly.
    """
    rows = config.recipe.tasks * config.recipe.samples
    if config.model.autoregressive:
        # Every token passes through every matrix.
        rows *= config.encoding.size(config.space, config.family) + config.family.input_size
    leaves = jax.tree.leaves(network_shapes(config.model, config.encoding, config.space, config.family))
    shapes = [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    return 6.0 * rows * config.model.reuse() * sum(shape.size for shape in shapes if len(shape.shape) > 1)


@functools.cache
def machine_flops() -> float:
    """Operations per second in a training step on this machine, from a short measurement."""
    square = jnp.ones((512, 512))
    product = jax.jit(lambda left: left @ left)
    product(square).block_until_ready()
    begin = time.perf_counter()
    for _ in range(10):
        product(square).block_until_ready()
    return EFFICIENCY * 10 * 2 * 512**3 / (time.perf_counter() - begin)
