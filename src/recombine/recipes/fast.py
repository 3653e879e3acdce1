"""Muon in blocks with a linearly decaying learning rate: the results of `paper` in a fraction of the time."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jaxtyping import Array, Float
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from recombine.recipes.base import Recipe, matrices

COEFFICIENTS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
)
"""The first Newton-Schulz polynomials of Polar Express (Amsel et al. 2025, arXiv 2505.16932). They map singular values
between .01 and 1 to between .18 and 1.87. Closer to 1 is not better here: Muon's usual five iterations, which give .68 to
1.13, need as many training steps."""


def split(weight: Array, block: int) -> Array:
    """Split a matrix whose sides both exceed `block` into (features, blocks, units of a block), padded with zeros."""
    if weight.ndim != 2 or min(weight.shape) <= block:
        return weight
    features, units = weight.shape
    number = math.ceil(units / block)
    wide = math.ceil(units / number)
    return jnp.pad(weight, ((0, 0), (0, number * wide - units))).reshape(features, number, wide)


def join(blocks: Array, like: Array) -> Array:
    """The inverse of `split`."""
    if blocks.shape == like.shape:
        return blocks
    return blocks.reshape(blocks.shape[0], -1)[:, : like.shape[1]]


def _dimensions(weights: optax.Params) -> optax.Params:
    """Muon optimises matrices, whole or split; Adam optimises vectors."""
    return jax.tree.map(
        lambda weight: optax.contrib.MuonDimensionNumbers(0, weight.ndim - 1) if weight.ndim > 1 else None, weights
    )


def block_muon(block: int, iterations: int) -> optax.GradientTransformation:
    """Muon at unit learning rate that orthogonalises each matrix in blocks of at most `block` of its units.

    An n x n matrix costs n^3 per Newton-Schulz iteration, its blocks n^2 x block. Blocks train as well per step.
    """
    muon = optax.contrib.muon(
        1.0, ns_coeffs=COEFFICIENTS[:iterations], ns_steps=iterations, muon_weight_dimension_numbers=_dimensions
    )

    def cut(tree: optax.Params) -> optax.Params:
        return jax.tree.map(lambda weight: split(weight, block), tree)

    def update(
        updates: optax.Updates, state: optax.OptState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, optax.OptState]:
        split_updates, state = muon.update(cut(updates), state, None if params is None else cut(params))
        return jax.tree.map(join, split_updates, updates), state

    return optax.GradientTransformation(lambda params: muon.init(cut(params)), update)


class Fast(Recipe):
    """Muon in blocks; the learning rate falls linearly to zero; 128 tasks of 8 samples."""

    kind: Literal["fast"] = "fast"
    learning_rate: PositiveFloat = 0.025
    steps: NonNegativeInt = 500
    tasks: PositiveInt = 128
    samples: PositiveInt = 8
    block: PositiveInt = 128
    """The most units of a block in which a matrix is orthogonalised."""
    weight_decay: NonNegativeFloat = 0.0
    """Weight decay of matrices: each step subtracts this share of them, times the learning rate."""

    later: ClassVar[frozenset[str]] = Recipe.later | {"weight_decay"}

    def optimiser(self) -> optax.GradientTransformation:
        muon = block_muon(self.block, len(COEFFICIENTS))
        if not self.weight_decay:
            return muon
        # Muon's updates already have a negative sign, so the decay needs one too.
        return optax.chain(muon, optax.add_decayed_weights(-self.weight_decay, mask=matrices))

    def schedule(self, done: Float[Array, ""]) -> Float[Array, ""]:
        return 1 - done
