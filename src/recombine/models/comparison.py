"""A network that embeds four items alike and finds the one that is least like the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field, PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.odd_one_out import ITEMS, OddOneOut
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.convnet import max_pool
from recombine.models.layers import Block, Linear, RotaryEmbedding, convolve, draw_convolution, rms_norm


class SentenceEncoder(eqx.Module):
    """A transformer in which all words of a sentence see each other."""

    words: Float[Array, "word width"]
    blocks: tuple[Block, ...]
    norm: Float[Array, " width"]
    heads: int = eqx.field(static=True)

    @staticmethod
    def draw(vocabulary: int, width: int, layers: int, heads: int, key: Array) -> SentenceEncoder:
        """Fresh weights."""
        by_word, *by_block = jax.random.split(key, 1 + layers)
        words = jax.random.normal(by_word, (vocabulary, width))
        blocks = tuple(Block.draw(width, heads, 4, block_key) for block_key in by_block)
        return SentenceEncoder(words, blocks, jnp.ones(width), heads)

    def states(self, tokens: Int[Array, "row word"]) -> Float[Array, "row word width"]:
        """What the last block has at each word."""
        stream = self.words[tokens]
        positions = RotaryEmbedding.first(tokens.shape[-1], self.words.shape[1] // self.heads, stream.dtype)
        visible = jnp.ones((1, 1, tokens.shape[-1]), bool)
        for block in self.blocks:
            stream, _ = block(stream, positions, visible)
        return rms_norm(stream, self.norm)

    def __call__(self, items: Float[Array, "row feature"]) -> Float[Array, "row width"]:
        return jnp.mean(self.states(jnp.round(items).astype(jnp.int32)), axis=1)


class PictureEncoder(eqx.Module):
    """Convolutions of 3 x 3, each followed by max pooling, then a dense layer."""

    convolutions: tuple[Linear, ...]
    dense: Linear
    pixels: int = eqx.field(static=True)

    @staticmethod
    def draw(pixels: int, width: int, levels: int, key: Array) -> PictureEncoder:
        """Fresh weights."""
        by_dense, *keys = jax.random.split(key, 1 + levels)
        channels = [max(width // 2 ** (levels - level), 4) for level in range(levels)]
        convolutions = tuple(
            draw_convolution(before, after, layer)
            for before, after, layer in zip([1, *channels[:-1]], channels, keys, strict=True)
        )
        features = (pixels // 2**levels) ** 2 * channels[-1]
        return PictureEncoder(convolutions, Linear.draw(features, width, by_dense), pixels)

    def __call__(self, items: Float[Array, "row feature"]) -> Float[Array, "row width"]:
        images = items.reshape(-1, self.pixels, self.pixels, 1)
        for layer in self.convolutions:
            images = max_pool(jax.nn.relu(convolve(images, layer)))
        return self.dense(images.reshape(len(images), -1))


class ComparisonNetwork(Network):
    """One encoder for all items. An item's score is minus the sum of its cosines with the others. Site: `embedding`."""

    encoder: SentenceEncoder | PictureEncoder

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        embedded = self.encoder(inputs.reshape(len(inputs) * ITEMS, -1)).reshape(len(inputs), -1)
        embedded = edit("embedding", embedded)
        items = embedded.reshape(len(inputs), ITEMS, -1)
        unit = items / jnp.maximum(jnp.linalg.norm(items, axis=-1, keepdims=True), 1e-6)
        alike = jnp.einsum("siw,sjw->sij", unit, unit)
        return 1 - jnp.sum(alike, axis=-1), {"embedding": embedded}

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The items of all tasks are one batch; the code says nothing.
        scores, _ = self.trace(codes[0], inputs.reshape(-1, inputs.shape[-1]))
        return scores.reshape(*inputs.shape[:2], -1)


class Comparison(Model):
    """Embeds each of four items by one encoder: a transformer for sentences, convolutions for pictures.

    With a parent it goes on with that network. Of a `word-filler`, it takes over the encoder.
    """

    kind: Literal["comparison"] = "comparison"
    reads_code: ClassVar[bool] = False
    reads_tokens: ClassVar[bool] = True
    items: Literal["sentences", "pictures"] = "sentences"
    """What is compared."""
    width: PositiveInt = 64
    """Numbers of an embedding."""
    layers: PositiveInt = Field(default=2, le=1000)
    """Blocks of the transformer, or convolutions."""
    heads: PositiveInt = 4
    """Attention heads of each block."""
    vocabulary: PositiveInt = 128
    """The most tokens that sentences may have."""

    @model_validator(mode="after")
    def _heads_fit(self) -> Comparison:
        if self.width % (2 * self.heads):
            raise ValueError(f"width={self.width} must be a multiple of twice the heads={self.heads}")
        return self

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if not isinstance(family, OddOneOut) or family.items != self.items:
            fix = (
                f"family=odd-one-out family.items={self.items}, or model.items={getattr(family, 'items', 'sentences')}"
            )
            raise BadInput(
                f"The model 'comparison' with items={self.items} does not fit the family {family.kind!r}.", fix=fix
            )
        if self.items == "sentences" and family.source.vocabulary > self.vocabulary:  # type: ignore[union-attr]
            need = family.source.vocabulary  # type: ignore[union-attr]
            raise BadInput(
                f"The sentences have {need} tokens, and vocabulary={self.vocabulary}.", fix=f"vocabulary={need}"
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> ComparisonNetwork:
        if self.items == "sentences":
            return ComparisonNetwork(SentenceEncoder.draw(self.vocabulary, self.width, self.layers, self.heads, key))
        pixels = math.isqrt(input_size // ITEMS)
        return ComparisonNetwork(PictureEncoder.draw(pixels, self.width, self.layers, key))

    def inherit(self, network: Network, parents: Sequence[Network]) -> Network:
        from recombine.models.word_filler import WordFillerNetwork

        adopted = [
            ComparisonNetwork(parent.encoder) if isinstance(parent, WordFillerNetwork) else parent for parent in parents
        ]
        return super().inherit(network, adopted)
