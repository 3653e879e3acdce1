"""Blocks of sequence models: attention to what is seen, where it stands and what was said before, then a perceptron."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.models.mlp import Layer, lecun_normal
from recombine.models.transformer import BASE, normed, turned


class Kept(NamedTuple):
    """What later tokens attend to: the keys and the values of earlier ones."""

    keys: Float[Array, "*row token head unit"]
    values: Float[Array, "*row token head unit"]


class Turns(NamedTuple):
    """By how much each pair of units of a token is turned: its rotary position."""

    cosine: Float[Array, "*row token 1 half"]
    sine: Float[Array, "*row token 1 half"]


def turns(places: Int[Array, "*row token"], unit: int) -> Turns:
    """The turns of tokens at these places. Products of queries and keys then depend on their distance alone."""
    half = unit // 2
    speeds = jnp.asarray(BASE ** -(np.arange(half) / half), jnp.float32)
    angles = places[..., None, None].astype(jnp.float32) * speeds
    # Computed once: else the compiler computes them anew for each head wherever they are used.
    return jax.lax.optimization_barrier(Turns(jnp.cos(angles), jnp.sin(angles)))


@jax.custom_vjp
def _product(
    rows: Float[Array, "row feature"], weight: Float[Array, "feature unit"]
) -> Float[Array, "row unit"]:
    return rows @ weight


def _product_forward(rows: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    return rows @ weight, (rows, weight)


def _product_backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    rows, weight = kept
    # On a CPU a product of two long matrices is half as fast where its result has more rows than columns. The barrier
    # keeps the compiler from turning the faster form back.
    if weight.shape[0] > weight.shape[1]:
        return gradient @ weight.T, jax.lax.optimization_barrier(gradient.T @ rows).T
    return gradient @ weight.T, rows.T @ gradient


_product.defvjp(_product_forward, _product_backward)


def product(
    stream: Float[Array, "*row feature"], weight: Float[Array, "feature unit"]
) -> Float[Array, "*row unit"]:
    """`stream @ weight`, with all tokens of all sequences as rows of one matrix."""
    return _product(stream.reshape(-1, len(weight)), weight).reshape(*stream.shape[:-1], -1)


class Attention(eqx.Module):
    """Several heads with normed queries and keys. All heads of a projection are one matrix, as optimisers like it."""

    query: Float[Array, "width width"]
    key: Float[Array, "width width"]
    value: Float[Array, "width width"]
    mix: Float[Array, "width width"]
    query_scale: Float[Array, " unit"]
    key_scale: Float[Array, " unit"]

    @staticmethod
    def draw(width: int, heads: int, key: Array) -> Attention:
        """Fresh weights."""
        query, by_key, value, mix = (lecun_normal(one, (width, width)) for one in jax.random.split(key, 4))
        return Attention(query, by_key, value, mix, jnp.ones(width // heads), jnp.ones(width // heads))

    def _by_head(self, values: Float[Array, "*row token width"]) -> Float[Array, "*row token head unit"]:
        return values.reshape(*values.shape[:-1], -1, len(self.query_scale))

    def keep(self, read: Float[Array, "*row token width"], places: Turns | None = None) -> Kept:
        """The keys and values of tokens."""
        keys = normed(self._by_head(product(read, self.key)), self.key_scale)
        keys = keys if places is None else turned(keys, *_cast(places, keys))
        return Kept(keys, self._by_head(product(read, self.value)))

    def __call__(
        self,
        read: Float[Array, "*row token width"],
        kept: Kept,
        seen: Bool[Array, "*#row #token other"],
        places: Turns | None = None,
    ) -> Float[Array, "*row token width"]:
        """What each token finds among the kept ones that it may see: at least one."""
        queries = normed(self._by_head(product(read, self.query)), self.query_scale)
        queries = queries if places is None else turned(queries, *_cast(places, queries))
        match = jnp.einsum("...thu,...shu->...hts", queries, kept.keys) / len(self.query_scale) ** 0.5
        shares = jax.nn.softmax(jnp.where(seen[..., None, :, :], match, -jnp.inf), axis=-1)
        found = jnp.einsum("...hts,...shu->...thu", shares, kept.values)
        return product(found.reshape(read.shape), self.mix)


def _cast(places: Turns, like: Array) -> Turns:
    return Turns(*(part.astype(like.dtype) for part in places))


class Perceptron(eqx.Module):
    """One hidden layer on each token."""

    before: Float[Array, " width"]
    up: Layer
    down: Layer

    @staticmethod
    def draw(width: int, widening: int, key: Array) -> Perceptron:
        """Fresh weights."""
        by_up, by_down = jax.random.split(key)
        wide = widening * width
        return Perceptron(
            jnp.ones(width),
            Layer(lecun_normal(by_up, (width, wide)), jnp.zeros(wide)),
            Layer(lecun_normal(by_down, (wide, width)), jnp.zeros(width)),
        )

    def __call__(self, stream: Float[Array, "*row width"]) -> Float[Array, "*row width"]:
        wide = jax.nn.relu(product(normed(stream, self.before), self.up.weight) + self.up.bias)
        return product(wide, self.down.weight) + self.down.bias


class Block(eqx.Module):
    """Attention among tokens, attention to a prompt that was read apart (if there is one), perceptron: each adds to the stream."""

    before_attention: Float[Array, " width"]
    attention: Attention
    perceptron: Perceptron
    before_crossing: Float[Array, " width"] | None = None
    crossing: Attention | None = None

    @staticmethod
    def draw(width: int, heads: int, widening: int, key: Array, crossing: bool = False) -> Block:
        """Fresh weights."""
        by_attention, by_perceptron, by_crossing = jax.random.split(key, 3)
        return Block(
            jnp.ones(width),
            Attention.draw(width, heads, by_attention),
            Perceptron.draw(width, widening, by_perceptron),
            jnp.ones(width) if crossing else None,
            Attention.draw(width, heads, by_crossing) if crossing else None,
        )

    def __call__(
        self,
        stream: Float[Array, "*row token width"],
        places: Turns,
        seen: Bool[Array, "*#row #token other"],
        past: Kept | None = None,
        prompt: tuple[Kept, Bool[Array, "*row word"]] | None = None,
        first: int = 0,
    ) -> tuple[Float[Array, "*row last width"], Kept]:
        """The stream after the block, and what later tokens need of these. `seen` is about the past, then the tokens. Of the
        tokens before the `first` only keys and values are made: what the last block would make of them nobody reads."""
        read = normed(stream, self.before_attention)
        own = self.attention.keep(read, places)
        if first:
            stream, read, seen = stream[..., first:, :], read[..., first:, :], seen[..., first:, :]
            places = Turns(*(part[..., first:, :, :] for part in places))
        kept = own if past is None else Kept(*map(_behind, past, own))
        stream = stream + self.attention(read, kept, seen, places)
        if self.crossing is not None and self.before_crossing is not None and prompt is not None:
            told, real = prompt
            stream = stream + self.crossing(normed(stream, self.before_crossing), told, real[..., None, :])
        return stream + self.perceptron(stream), own


def _behind(past: Float[Array, "*row earlier head unit"], own: Float[Array, "*row token head unit"]) -> Array:
    return jnp.concatenate([past, own], axis=-3)
