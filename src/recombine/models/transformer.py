"""A causal transformer that reads one token for the task, then one for each input."""

from __future__ import annotations

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Edit, Model, Network, Trace, unedited
from recombine.models.mlp import Layer, lecun_normal

BASE = 10_000.0
"""The slowest pair of a head turns by about 1 / BASE a position."""

EPSILON = 1e-6


def normed(values: Float[Array, "*place unit"], scale: Float[Array, " unit"]) -> Float[Array, "*place unit"]:
    """Values of root mean square one over the last axis, times a learned scale."""
    return scale * values * jax.lax.rsqrt(jnp.mean(values**2, axis=-1, keepdims=True) + EPSILON)


def rotated(values: Float[Array, "token head unit"]) -> Float[Array, "token head unit"]:
    """Rotary positions: pair j of every head (its units j and j + half) turned by token x BASE^(-j / half).

    So the product of a query and a key depends on how far apart they stand, not on where.
    """
    tokens, _, size = values.shape
    speeds = BASE ** -(np.arange(size // 2) / (size // 2))
    angles = np.arange(tokens)[:, None, None] * speeds
    cosine, sine = jnp.asarray(np.cos(angles), values.dtype), jnp.asarray(np.sin(angles), values.dtype)
    return turned(values, cosine, sine)


def turned(
    values: Float[Array, "*row token head unit"],
    cosine: Float[Array, "*#row token 1 half"],
    sine: Float[Array, "*#row token 1 half"],
) -> Float[Array, "*row token head unit"]:
    """Each pair of units turned by its angle."""
    one, other = jnp.split(values, 2, axis=-1)
    return jnp.concatenate([one * cosine - other * sine, one * sine + other * cosine], axis=-1)


def attend(
    queries: Float[Array, "token head unit"],
    keys: Float[Array, "token head unit"],
    values: Float[Array, "token head unit"],
) -> Float[Array, "token head unit"]:
    """Softmax attention of each token to itself and those before it."""
    tokens, _, size = queries.shape
    scores = jnp.einsum("thu,shu->hts", queries, keys) / size**0.5
    seen = np.tril(np.ones((tokens, tokens), bool))
    shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return jnp.einsum("hts,shu->thu", shares, values)


class Block(eqx.Module):
    """Attention, then a perceptron of one hidden layer; each reads a normed stream and adds to it.

    All heads of a projection are one matrix: optimisers that treat matrices as a whole see it as one.
    """

    before_attention: Float[Array, " width"]
    query: Float[Array, "width width"]
    key: Float[Array, "width width"]
    value: Float[Array, "width width"]
    query_scale: Float[Array, " unit"]
    key_scale: Float[Array, " unit"]
    mix: Float[Array, "width width"]
    before_perceptron: Float[Array, " width"]
    up: Layer
    down: Layer

    @staticmethod
    def draw(width: int, heads: int, widening: int, key: Array) -> Block:
        """A block with fresh weights."""
        wide = widening * width
        *square, by_up, by_down = jax.random.split(key, 6)
        query, by_key, value, mix = (lecun_normal(one, (width, width)) for one in square)
        return Block(
            before_attention=jnp.ones(width),
            query=query,
            key=by_key,
            value=value,
            query_scale=jnp.ones(width // heads),
            key_scale=jnp.ones(width // heads),
            mix=mix,
            before_perceptron=jnp.ones(width),
            up=Layer(lecun_normal(by_up, (width, wide)), jnp.zeros(wide)),
            down=Layer(lecun_normal(by_down, (wide, width)), jnp.zeros(width)),
        )

    def __call__(self, stream: Float[Array, "token width"]) -> Float[Array, "token width"]:
        heads = (len(stream), -1, len(self.query_scale))
        read = normed(stream, self.before_attention)
        queries = rotated(normed((read @ self.query).reshape(heads), self.query_scale))
        keys = rotated(normed((read @ self.key).reshape(heads), self.key_scale))
        attended = attend(queries, keys, (read @ self.value).reshape(heads))
        stream = stream + attended.reshape(stream.shape) @ self.mix
        wide = jax.nn.relu(normed(stream, self.before_perceptron) @ self.up.weight + self.up.bias)
        return stream + wide @ self.down.weight + self.down.bias


class TransformerNetwork(Network):
    """Tokens, blocks, and a readout at the tokens of the inputs.

    Inputs are read in sequences of at most `context`, each behind a task token of its own. So a network that is shown more
    inputs than it was trained with meets no position that is new to it.
    """

    of_code: Layer
    of_input: Layer
    blocks: tuple[Block, ...]
    before_readout: Float[Array, " width"]
    readout: Layer
    context: int = eqx.field(static=True)

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        samples = len(inputs)
        length = min(self.context, samples)
        number = math.ceil(samples / length)
        told = code @ self.of_code.weight + self.of_code.bias
        shown = inputs @ self.of_input.weight + self.of_input.bias
        # Pads stand at the end of the last sequence, where no input sees them.
        stream = jnp.pad(shown, ((0, number * length - samples), (0, 0))).reshape(number, length, -1)
        stream = jnp.concatenate([jnp.broadcast_to(told, (number, 1, len(told))), stream], axis=1)
        sites = {}
        for place, block in enumerate(self.blocks, start=1):
            stream = jax.vmap(block)(stream)
            flat = stream[:, 1:].reshape(number * length, -1)
            edited = edit(f"block {place}", flat[:samples])
            sites[f"block {place}"] = edited
            tokens = jnp.concatenate([edited, flat[samples:]]).reshape(number, length, -1)
            stream = jnp.concatenate([stream[:, :1], tokens], axis=1)
        read = normed(sites[f"block {len(self.blocks)}"], self.before_readout)
        return read @ self.readout.weight + self.readout.bias, sites


class Transformer(Model):
    """`layers` blocks of `heads` heads on a stream of `width`: pre-norm, rotary positions, normed queries and keys."""

    kind: Literal["transformer"] = "transformer"
    width: PositiveInt = 256
    """Units of the residual stream."""
    layers: PositiveInt = 4
    """Number of blocks."""
    heads: PositiveInt = 4
    """Attention heads of each block; they share the width equally."""
    widening: PositiveInt = 4
    """Hidden units of each block's perceptron, as a multiple of the width."""
    context: PositiveInt = 8
    """The most inputs that are read as one sequence; more are read as several. Not more than the recipe has samples:
    places of a sequence that were never trained would be read badly."""

    @model_validator(mode="after")
    def _heads_fit(self) -> Transformer:
        if self.width % self.heads:
            raise ValueError(
                f"width={self.width} cannot be shared by heads={self.heads}: give a width that is a multiple of heads"
            )
        if self.width // self.heads % 2:
            raise ValueError(
                f"width={self.width} gives each of heads={self.heads} {self.width // self.heads} units: rotary positions "
                f"turn pairs of units, so give a width that is a multiple of {2 * self.heads}"
            )
        return self

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if self.context > samples:
            raise BadInput(
                f"The transformer reads {self.context} inputs in a row (context), but training shows {samples} of a task: "
                "later places would never be trained.",
                fix=f"context={samples}, or at least samples={self.context}",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> TransformerNetwork:
        by_code, by_input, by_readout, *by_block = jax.random.split(key, 3 + self.layers)

        def layer(one: Array, features: int, units: int) -> Layer:
            return Layer(lecun_normal(one, (features, units)), jnp.zeros(units))

        return TransformerNetwork(
            of_code=layer(by_code, code_size, self.width),
            of_input=layer(by_input, input_size, self.width),
            blocks=tuple(Block.draw(self.width, self.heads, self.widening, one) for one in by_block),
            before_readout=jnp.ones(self.width),
            readout=layer(by_readout, self.width, output_size),
            context=self.context,
        )
