"""A causal transformer that reads one token for the task, then one for each input."""

from __future__ import annotations

import functools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Code, Edit, Inputs, Model, Network, Traced, unedited
from recombine.models.layers import Attention, Block, Linear, MLPBlock, RotaryEmbedding, causal, matmul, rms_norm


def causal_block(block: Block, stream: Float[Array, "token width"]) -> Float[Array, "token width"]:
    """A block on one sequence in which each token sees itself and those before it."""
    tokens = len(stream)
    positions = RotaryEmbedding.first(tokens, len(block.attention.key_scale), stream.dtype)
    normed = rms_norm(stream, block.norm)
    # Queries before keys, and the last bias after the sum: `Block` itself does both the other way round, and recorded runs
    # depend on the order in their last bits.
    queries = block.attention.queries(normed, positions)
    stream = stream + block.attention(queries, block.attention.cache(normed, positions), causal(tokens))
    return stream + matmul(block.mlp.hidden(stream), block.mlp.down.weight) + block.mlp.down.bias


class TransformerNetwork(Network):
    """Tokens, blocks, and a readout at the tokens of the inputs.

    Inputs are read in sequences of at most `context`, each behind its own copy of the task token. So a network that sees
    more inputs than in training meets no new position.
    """

    of_code: Linear
    of_input: Linear
    blocks: tuple[Block, ...]
    readout_norm: Float[Array, " width"]
    readout: Linear
    context: int = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        samples = len(inputs)
        length = min(self.context, samples)
        number = math.ceil(samples / length)
        task_token = self.of_code(code)
        # Pads are at the end of the last sequence, where no input sees them.
        padded = jnp.pad(self.of_input(inputs), ((0, number * length - samples), (0, 0)))
        stream = padded.reshape(number, length, -1)
        task_tokens = jnp.broadcast_to(task_token, (number, 1, len(task_token)))
        stream = jnp.concatenate([task_tokens, stream], axis=1)
        sites = {}
        for index, block in enumerate(self.blocks, start=1):
            site = f"block {index}"
            stream = jax.vmap(functools.partial(causal_block, block))(stream)
            flat = stream[:, 1:].reshape(number * length, -1)
            sites[site] = edit(site, flat[:samples])
            tokens = jnp.concatenate([sites[site], flat[samples:]]).reshape(number, length, -1)
            stream = jnp.concatenate([stream[:, :1], tokens], axis=1)
        return self.readout(rms_norm(sites[f"block {len(self.blocks)}"], self.readout_norm)), sites


class Transformer(Model):
    """A causal transformer: pre-norm blocks, rotary positions, RMS-normed queries and keys.

    It reads one token for the task's code, then one token for each input.
    """

    kind: Literal["transformer"] = "transformer"
    width: PositiveInt = 256
    """Units of the residual stream."""
    layers: PositiveInt = 4
    """Number of blocks."""
    heads: PositiveInt = 4
    """Attention heads of each block; each has an equal share of the width."""
    mlp_ratio: PositiveInt = 4
    """Hidden units of each block's MLP, as a multiple of the width."""
    context: PositiveInt = 8
    """Inputs in one sequence; more inputs are read as several sequences. At most the recipe's samples, because positions
    that training never shows would be read badly."""

    @model_validator(mode="after")
    def _heads_fit(self) -> Transformer:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width={self.width} does not give each of heads={self.heads} an even number of units, which rotary "
                f"positions turn in pairs: choose a width that is a multiple of {2 * self.heads}"
            )
        return self

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if self.context > samples:
            raise BadInput(
                f"The transformer reads {self.context} inputs per sequence (context), but training shows {samples} per task: "
                "later positions would never be trained.",
                fix=f"context={samples}, or at least samples={self.context}",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> TransformerNetwork:
        by_code, by_input, by_readout, *by_block = jax.random.split(key, 3 + self.layers)

        def block(key: Array) -> Block:
            keys = jax.random.split(key, 6)
            attention = Attention.draw(self.width, self.heads, keys[:4])
            return Block(jnp.ones(self.width), attention, MLPBlock.draw(self.width, self.mlp_ratio, keys[4:]))

        return TransformerNetwork(
            of_code=Linear.draw(code_size, self.width, by_code),
            of_input=Linear.draw(input_size, self.width, by_input),
            blocks=tuple(map(block, by_block)),
            readout_norm=jnp.ones(self.width),
            readout=Linear.draw(self.width, output_size, by_readout),
            context=self.context,
        )
