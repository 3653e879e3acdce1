"""A loss over answers of many lengths, computed in groups of similar length, so that fewer pads are computed."""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from recombine.families.base import Batch
from recombine.language.vocabulary import PAD
from recombine.models.base import Codes, Network

CUTS = 4
"""A group has the full length, or three quarters, a half or a quarter of it. Each length is compiled separately."""

Cost = Callable[[Network, Codes, Batch, Array], Float[Array, ""]]
"""The mean loss over the tokens of a batch."""


def grouped(cost: Cost, groups: int, network: Network, codes: Codes, batch: Batch, key: Array) -> Float[Array, ""]:
    """The cost of a batch, computed in groups of tasks of similar length. Their number divides that of the tasks.

    The length of a group is known only at run time. JAX cannot differentiate such branches inside a loop in reverse mode,
    so each group computes its gradient together with its cost.
    """
    weights, static = eqx.partition(network, eqx.is_inexact_array)
    tokens = jnp.sum((batch.targets != PAD) * batch.mask[..., None], axis=(1, 2))
    longest = jnp.max(jnp.sum(batch.targets != PAD, axis=2), axis=1)
    order = jnp.argsort(longest)
    given = (codes, batch, tokens / jnp.maximum(jnp.sum(tokens), 1))
    parts = jax.tree.map(lambda leaf: leaf[order].reshape(groups, -1, *leaf.shape[1:]), given)
    size = batch.targets.shape[2]
    cuts = [math.ceil(size * (number + 1) / CUTS) for number in range(CUTS)]
    which = jnp.searchsorted(jnp.asarray(cuts), jnp.max(longest[order].reshape(groups, -1), axis=1))

    def of_group(size: int) -> Callable[..., tuple[Float[Array, ""], PyTree]]:
        def group_cost(weights: PyTree, codes: Array, batch: Batch, shares: Array, key: Array) -> Array:
            shorter = eqx.tree_at(
                lambda batch: (batch.inputs, batch.targets),
                batch,
                (batch.inputs[..., :size], batch.targets[..., :size]),
            )
            return jnp.sum(shares) * cost(eqx.combine(weights, static), codes, shorter, key)

        return jax.value_and_grad(group_cost)

    branches = [of_group(size) for size in cuts]

    def sums(weights: PyTree) -> tuple[Float[Array, ""], PyTree]:
        def add(total: PyTree, given: tuple[PyTree, Int[Array, ""], Array]) -> tuple[PyTree, None]:
            part, cut, key = given
            return jax.tree.map(jnp.add, total, jax.lax.switch(cut, branches, weights, *part, key)), None

        nothing = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), weights))
        return jax.lax.scan(add, nothing, (parts, which, jax.random.split(key, groups)))[0]

    @jax.custom_vjp
    def total(weights: PyTree) -> Float[Array, ""]:
        return sums(weights)[0]

    def backward(gradient: PyTree, above: Float[Array, ""]) -> tuple[PyTree]:
        return (jax.tree.map(lambda leaf: above.astype(leaf.dtype) * leaf, gradient),)

    total.defvjp(sums, backward)
    return total(weights)
