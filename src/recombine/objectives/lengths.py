"""A loss over answers of many lengths, in groups of like length: what no answer of a group needs is not computed."""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from recombine.families.base import Batch
from recombine.families.vocabulary import PAD
from recombine.models.base import Network

CUTS = 4
"""A group is as long as the longest answer, or three quarters, a half or a quarter of that: each is compiled apart."""

Cost = Callable[[Network, Float[Array, "task code"], Batch, Array], Float[Array, ""]]
"""The mean loss over the tokens of a batch."""


def grouped(
    cost: Cost,
    groups: int,
    network: Network,
    codes: Float[Array, "task code"],
    batch: Batch,
    key: Array,
) -> Float[Array, ""]:
    """The cost of a batch: tasks sorted by length, in so many groups, one after another, each with its gradient.

    Which cut a group has is known when it is computed and not before. Loops and branches of that kind have no gradient backwards, so it is
    made forwards.
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
        def one(weights: PyTree, codes: Array, batch: Batch, shares: Array, key: Array) -> Array:
            less = eqx.tree_at(
                lambda one: (one.inputs, one.targets),
                batch,
                (batch.inputs[..., :size], batch.targets[..., :size]),
            )
            return jnp.sum(shares) * cost(eqx.combine(weights, static), codes, less, key)

        return jax.value_and_grad(one)

    branches = [of_group(size) for size in cuts]

    def sums(weights: PyTree) -> tuple[Float[Array, ""], PyTree]:
        def add(sofar: PyTree, given: tuple[PyTree, Int[Array, ""], Array]) -> tuple[PyTree, None]:
            part, cut, key = given
            return jax.tree.map(jnp.add, sofar, jax.lax.switch(cut, branches, weights, *part, key)), None

        nothing = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), weights))
        return jax.lax.scan(add, nothing, (parts, which, jax.random.split(key, groups)))[0]

    @jax.custom_vjp
    def total(weights: PyTree) -> Float[Array, ""]:
        return sums(weights)[0]

    def backward(gradient: PyTree, above: Float[Array, ""]) -> tuple[PyTree]:
        return (jax.tree.map(lambda leaf: above.astype(leaf.dtype) * leaf, gradient),)

    total.defvjp(sums, backward)
    return total(weights)
