"""The layers that models and text encoders are made of, in the order: affine maps, norms, rotary positions, attention,
blocks, convolutions.

Weights are plain matrices (features x units, all heads of a projection side by side), so that an optimiser such as Muon
sees each projection and each convolution as one matrix. This module imports nothing else of recombine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

EPSILON = 1e-6
"""Added to the mean square before its root is taken."""
ROTARY_BASE = 10_000.0
"""The slowest pair of units of a head turns by about 1 / ROTARY_BASE per position."""
KERNEL = 3
"""Rows and columns of a convolution's kernel."""

lecun_normal = jax.nn.initializers.lecun_normal()

Images = Float[Array, "image _ _ _"]
"""Rows, columns and channels of several images."""


class Linear(eqx.Module):
    """An affine map, `inputs @ weight + bias`."""

    weight: Float[Array, "feature unit"]
    bias: Float[Array, " unit"]

    @staticmethod
    def draw(features: int, units: int, key: Array) -> Linear:
        """Fresh weights: LeCun-normal weights, zero biases."""
        return Linear(lecun_normal(key, (features, units)), jnp.zeros(units))

    def __call__(self, inputs: Float[Array, "*row feature"]) -> Float[Array, "*row unit"]:
        return inputs @ self.weight + self.bias


def rms_norm(
    values: Float[Array, "*row unit"], scale: Float[Array, " unit"] | None = None
) -> Float[Array, "*row unit"]:
    """Divide by the root mean square over the last axis.

    Args:
        values: Any number of leading axes.
        scale: A learned factor for each unit; None for no factor.
    """
    scaled = values if scale is None else scale * values
    return scaled * jax.lax.rsqrt(jnp.mean(values**2, axis=-1, keepdims=True) + EPSILON)


def layer_norm(values: Float[Array, " unit"]) -> Float[Array, " unit"]:
    """Shift and scale a vector to mean zero and mean square one. Nothing is learned."""
    centred = values - jnp.mean(values)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2) + EPSILON)


class RotaryEmbedding(NamedTuple):
    """Rotary positions: the cosine and the sine of the angle by which each pair of units of a token is turned."""

    cosine: Float[Array, "*row token 1 half"]
    sine: Float[Array, "*row token 1 half"]

    @staticmethod
    def at(positions: Int[Array, "*row token"], unit: int) -> RotaryEmbedding:
        """The rotary embedding of tokens at any positions, computed inside the compiled program.

        Products of queries and keys depend on the difference of positions only. Heads have an even number of units.
        """
        half = unit // 2
        speeds = jnp.asarray(ROTARY_BASE ** -(np.arange(half) / half), jnp.float32)
        angles = positions[..., None, None].astype(jnp.float32) * speeds
        # The barrier makes the compiler compute them once instead of once per head and use.
        return jax.lax.optimization_barrier(RotaryEmbedding(jnp.cos(angles), jnp.sin(angles)))

    @staticmethod
    def first(tokens: int, unit: int, dtype: jnp.dtype) -> RotaryEmbedding:
        """The rotary embedding of positions 0, 1, ..., as constants of the program."""
        half = unit // 2
        angles = np.arange(tokens)[:, None, None] * ROTARY_BASE ** -(np.arange(half) / half)
        return RotaryEmbedding(jnp.asarray(np.cos(angles), dtype), jnp.asarray(np.sin(angles), dtype))

    def rotate(self, values: Float[Array, "*row token head unit"]) -> Float[Array, "*row token head unit"]:
        """Turn each pair of units (j and j + half of every head) by its angle."""
        cosine, sine = self.cosine.astype(values.dtype), self.sine.astype(values.dtype)
        left, right = jnp.split(values, 2, axis=-1)
        return jnp.concatenate([left * cosine - right * sine, left * sine + right * cosine], axis=-1)

    def after(self, tokens: int) -> RotaryEmbedding:
        """The part for all tokens but the first `tokens`."""
        return RotaryEmbedding(self.cosine[..., tokens:, :, :], self.sine[..., tokens:, :, :])


class KVCache(NamedTuple):
    """The keys and values of tokens that later tokens attend to."""

    keys: Float[Array, "*row token head unit"]
    values: Float[Array, "*row token head unit"]

    def append(self, new: KVCache) -> KVCache:
        """The cache with further tokens behind its own."""
        return KVCache(*(jnp.concatenate(pair, axis=-3) for pair in zip(self, new, strict=True)))

    def write(self, place: Int[Array, ""], new: KVCache) -> KVCache:
        """The cache with one token written at a place."""
        return KVCache(*(old.at[place].set(own[0]) for old, own in zip(self, new, strict=True)))


@jax.custom_vjp
def _matmul(rows: Float[Array, "row feature"], weight: Float[Array, "feature unit"]) -> Float[Array, "row unit"]:
    return rows @ weight


def _matmul_forward(rows: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    return rows @ weight, (rows, weight)


def _matmul_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    rows, weight = saved
    # On a CPU a product of two long matrices is half as fast where its result has more rows than columns. The barrier
    # keeps the compiler from turning the faster form back.
    if weight.shape[0] > weight.shape[1]:
        return gradient @ weight.T, jax.lax.optimization_barrier(gradient.T @ rows).T
    return gradient @ weight.T, rows.T @ gradient


_matmul.defvjp(_matmul_forward, _matmul_backward)


def matmul(inputs: Float[Array, "*row feature"], weight: Float[Array, "feature unit"]) -> Float[Array, "*row unit"]:
    """`inputs @ weight`, with all tokens of all sequences as rows of one matrix, and a faster gradient on CPUs."""
    if inputs.ndim == 2:  # One sequence: a caller that vmaps it gets the plain product.
        return inputs @ weight
    return _matmul(inputs.reshape(-1, len(weight)), weight).reshape(*inputs.shape[:-1], -1)


def attend(
    queries: Float[Array, "*row token head unit"],
    keys: Float[Array, "*row other head unit"],
    values: Float[Array, "*row other head unit"],
    visible: Bool[Array | np.ndarray, "*#row #token other"],
) -> Float[Array, "*row token head unit"]:
    """Softmax attention, scaled by the root of a head's size.

    Args:
        queries: Of the tokens that attend.
        keys: Of the tokens that are attended to.
        values: Of the tokens that are attended to.
        visible: Which of these each token may attend to: at least one.
    """
    scores = jnp.einsum("...thu,...shu->...hts", queries, keys) / queries.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(visible[..., None, :, :], scores, -jnp.inf), axis=-1)
    return jnp.einsum("...hts,...shu->...thu", weights, values)


def causal(tokens: int) -> Bool[np.ndarray, "token token"]:
    """The mask by which each token sees itself and those before it."""
    return np.tril(np.ones((tokens, tokens), bool))


class Attention(eqx.Module):
    """Multi-head attention with RMS-normed queries and keys."""

    query: Float[Array, "width width"]
    key: Float[Array, "width width"]
    value: Float[Array, "width width"]
    out: Float[Array, "width width"]
    query_scale: Float[Array, " unit"]
    key_scale: Float[Array, " unit"]

    @staticmethod
    def draw(width: int, heads: int, keys: Sequence[Array] | Array) -> Attention:
        """Fresh weights, from four keys."""
        query, key, value, out = (lecun_normal(each, (width, width)) for each in keys)
        return Attention(query, key, value, out, jnp.ones(width // heads), jnp.ones(width // heads))

    def _by_head(self, values: Float[Array, "*row token width"]) -> Float[Array, "*row token head unit"]:
        return values.reshape(*values.shape[:-1], -1, len(self.query_scale))

    def cache(self, normed: Float[Array, "*row token width"], positions: RotaryEmbedding | None = None) -> KVCache:
        """The keys and values of tokens."""
        keys = rms_norm(self._by_head(matmul(normed, self.key)), self.key_scale)
        keys = keys if positions is None else positions.rotate(keys)
        return KVCache(keys, self._by_head(matmul(normed, self.value)))

    def queries(
        self, normed: Float[Array, "*row token width"], positions: RotaryEmbedding | None = None
    ) -> Float[Array, "*row token head unit"]:
        """The queries of tokens."""
        queries = rms_norm(self._by_head(matmul(normed, self.query)), self.query_scale)
        return queries if positions is None else positions.rotate(queries)

    def __call__(
        self,
        queries: Float[Array, "*row token head unit"],
        cache: KVCache,
        visible: Bool[Array | np.ndarray, "*#row #token other"],
    ) -> Float[Array, "*row token width"]:
        """What each token finds among the cached ones that are visible to it."""
        attended = attend(queries, cache.keys, cache.values, visible)
        return matmul(attended.reshape(*attended.shape[:-2], -1), self.out)


class MLPBlock(eqx.Module):
    """RMS norm and one hidden ReLU layer, on each token."""

    norm: Float[Array, " width"]
    up: Linear
    down: Linear

    @staticmethod
    def draw(width: int, mlp_ratio: int, keys: Sequence[Array] | Array) -> MLPBlock:
        """Fresh weights, from two keys."""
        up, down = keys
        hidden = mlp_ratio * width
        return MLPBlock(jnp.ones(width), Linear.draw(width, hidden, up), Linear.draw(hidden, width, down))

    def hidden(self, stream: Float[Array, "*row width"]) -> Float[Array, "*row hidden"]:
        """The activations of the hidden layer."""
        return jax.nn.relu(matmul(rms_norm(stream, self.norm), self.up.weight) + self.up.bias)

    def __call__(self, stream: Float[Array, "*row width"]) -> Float[Array, "*row width"]:
        """What the block adds to the stream."""
        return matmul(self.hidden(stream), self.down.weight) + self.down.bias


class Block(eqx.Module):
    """A pre-norm transformer block: self-attention, cross-attention to a prompt (if there is one), MLP."""

    norm: Float[Array, " width"]
    attention: Attention
    mlp: MLPBlock
    cross_norm: Float[Array, " width"] | None = None
    cross_attention: Attention | None = None

    @staticmethod
    def draw(width: int, heads: int, mlp_ratio: int, key: Array, crossing: bool = False) -> Block:
        """Fresh weights; with `crossing`, also those of cross-attention."""
        by_attention, by_mlp, by_crossing = jax.random.split(key, 3)
        return Block(
            jnp.ones(width),
            Attention.draw(width, heads, jax.random.split(by_attention, 4)),
            MLPBlock.draw(width, mlp_ratio, jax.random.split(by_mlp)),
            jnp.ones(width) if crossing else None,
            Attention.draw(width, heads, jax.random.split(by_crossing, 4)) if crossing else None,
        )

    def __call__(
        self,
        stream: Float[Array, "*row token width"],
        positions: RotaryEmbedding,
        visible: Bool[Array | np.ndarray, "*#row #token other"],
        past: KVCache | None = None,
        prompt: tuple[KVCache, Bool[Array, "*row word"]] | None = None,
        first: int = 0,
    ) -> tuple[Float[Array, "*row last width"], KVCache]:
        """Apply the block.

        Args:
            stream: The residual stream.
            positions: Of the tokens.
            visible: What each token attends to: tokens of the past, then those of the stream.
            past: Keys and values of earlier tokens.
            prompt: Keys and values for cross-attention, and which tokens of the prompt are real.
            first: Tokens before this one give keys and values only; their outputs are unused in a last block.

        Returns:
            The stream after the block, from token `first` on, and the keys and values of all its tokens.
        """
        normed = rms_norm(stream, self.norm)
        own = self.attention.cache(normed, positions)
        if first:
            stream, normed, visible = stream[..., first:, :], normed[..., first:, :], visible[..., first:, :]
            positions = positions.after(first)
        cache = own if past is None else past.append(own)
        stream = stream + self.attention(self.attention.queries(normed, positions), cache, visible)
        if self.cross_attention is not None and self.cross_norm is not None and prompt is not None:
            prompt_cache, real = prompt
            queries = self.cross_attention.queries(rms_norm(stream, self.cross_norm))
            stream = stream + self.cross_attention(queries, prompt_cache, real[..., None, :])
        return stream + self.mlp(stream), own


# Convolutions as matrix products of gathered patches. On CPUs the gradients of XLA's own convolution are many times
# slower inside a compiled loop (docs/performance.md).


def draw_convolution(channels: int, units: int, key: Array) -> Linear:
    """A convolution with fresh weights, as the matrix that `convolve` takes."""
    return Linear.draw(KERNEL**2 * channels, units, key)


def neighbourhoods(images: Images) -> Images:
    """The KERNEL x KERNEL patch around every position, row by row, as its channels; zeros beyond the border."""
    rows, columns = images.shape[1:3]
    reach = KERNEL // 2
    wide = jnp.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    shifts = [(down, right) for down in range(KERNEL) for right in range(KERNEL)]
    return jnp.concatenate([wide[:, down : down + rows, right : right + columns] for down, right in shifts], axis=-1)


def pointwise(images: Images, layer: Linear) -> Images:
    """An affine map of the channels, the same at every position (a 1 x 1 convolution)."""
    flat = images.reshape(-1, images.shape[-1])
    return layer(flat).reshape(*images.shape[:-1], -1)


def convolve(images: Images, layer: Linear) -> Images:
    """A convolution that keeps the resolution. The rows of its matrix are those of `neighbourhoods`."""
    return pointwise(neighbourhoods(images), layer)


def space_to_depth(images: Images, factor: int) -> Images:
    """Make one position of each square of `factor` x `factor` positions, with their channels side by side."""
    number, rows, columns, channels = images.shape
    apart = images.reshape(number, rows // factor, factor, columns // factor, factor, channels)
    squares = apart.transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(number, rows // factor, columns // factor, factor**2 * channels)


def depth_to_space(images: Images, factor: int) -> Images:
    """The inverse of `space_to_depth`."""
    number, rows, columns, channels = images.shape
    squares = images.reshape(number, rows, columns, factor, factor, channels // factor**2)
    apart = squares.transpose(0, 1, 3, 2, 4, 5)
    return apart.reshape(number, rows * factor, columns * factor, channels // factor**2)
