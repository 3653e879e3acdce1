"""How long a run would take: arithmetic of its steps over the speed that this machine shows."""

from __future__ import annotations

import functools
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from recombine.encodings.base import Encoding
from recombine.families.base import Family
from recombine.models.base import Model
from recombine.spaces.base import Space
from recombine.training.config import RunConfig
from recombine.training.prepare import first_network

EFFICIENCY = 0.4
"""The share of a bare matrix product's speed that a whole training step reaches, roughly."""


def flops_per_step(config: RunConfig) -> float:
    """Multiply-adds of the weight matrices, forward and backward. Good to a factor of two, but for convolutions, whose
    weights are used many times."""
    rows = config.recipe.tasks * config.recipe.samples
    if config.model.speaks:
        # Every token passes through every matrix.
        rows *= config.encoding.size(config.space, config.family) + config.family.input_size
    return 6.0 * rows * _weights(config.model, config.encoding, config.space, config.family)


@functools.lru_cache(maxsize=64)
def _weights(model: Model, encoding: Encoding, space: Space, family: Family) -> int:
    """How many numbers the matrices of a network have. The teacher is drawn only for a model that is made of it, as some
    families take long for it."""

    def made(key: Array) -> PyTree:
        if type(model).build is not Model.build:
            return first_network(model, encoding, space, family, family.draw(space, key), key)
        sizes = encoding.features(space, family), family.input_size, family.output_size
        return model.draw(*sizes, key), encoding.reader(space, family, key)

    leaves = jax.tree.leaves(eqx.filter_eval_shape(made, jax.random.key(0)))
    return sum(leaf.size for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct) and len(leaf.shape) > 1)


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
