"""A small text encoder that is trained with the model."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import PositiveInt, model_validator

from recombine.encodings.base import Embedder, Encoding, coefficient_law
from recombine.encodings.script import PAD
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.layers import attend, lecun_normal, rms_norm
from recombine.spaces.base import Space


class TextBlock(eqx.Module):
    """Self-attention among the words, then a hidden layer on each word; both are added to the stream.

    It differs from `models.layers.Block`: no rotary positions, no norm of queries and keys, GELU, and optional gates.
    """

    query: Float[Array, "width width"]
    key: Float[Array, "width width"]
    value: Float[Array, "width width"]
    out: Float[Array, "width width"]
    up: Float[Array, "width hidden"]
    down: Float[Array, "hidden width"]
    scales: tuple[Float[Array, " width"], Float[Array, " width"]]
    bias: Float[Array, " hidden"]
    heads: int = eqx.field(static=True)
    gates: Float[Array, " 2"] | None = None
    """Factors on what attention and hidden layer add; None for one."""

    @staticmethod
    def draw(width: int, heads: int, key: Array) -> TextBlock:
        """Fresh weights."""
        keys = jax.random.split(key, 6)
        query, key, value, out = (lecun_normal(each, (width, width)) for each in keys[:4])
        up, down = lecun_normal(keys[4], (width, 4 * width)), lecun_normal(keys[5], (4 * width, width))
        scales = jnp.ones(width), jnp.ones(width)
        return TextBlock(query, key, value, out, up, down, scales, jnp.zeros(4 * width), heads)

    def __call__(self, words: Float[Array, "word width"], real: Bool[Array, " word"]) -> Float[Array, "word width"]:
        attention_gate, mlp_gate = (1.0, 1.0) if self.gates is None else self.gates
        words = words + attention_gate * self._attend(rms_norm(words, self.scales[0]), real)
        hidden = jax.nn.gelu(rms_norm(words, self.scales[1]) @ self.up + self.bias)
        return words + mlp_gate * (hidden @ self.down)

    def _attend(self, words: Float[Array, "word width"], real: Bool[Array, " word"]) -> Float[Array, "word width"]:
        by_head = (len(words), self.heads, -1)
        query, key, value = ((words @ weight).reshape(by_head) for weight in (self.query, self.key, self.value))
        return attend(query, key, value, real[None]).reshape(words.shape) @ self.out


class TextEncoder(Embedder):
    """Embeddings of words and positions, blocks, then the mean over the words.

    Pads are not seen, except the first pad of an empty text: a withheld caption has its own learned vector.
    """

    words: Float[Array, "vocabulary width"]
    """The first vector is that of the pad."""
    positions: Float[Array, "word width"]
    blocks: tuple[TextBlock, ...]
    scale: Float[Array, " width"]

    @staticmethod
    def draw(vocabulary: int, length: int, width: int, layers: int, heads: int, key: Array) -> TextEncoder:
        """Fresh weights, for a number of words (without the pad) and texts of at most `length` words."""
        by_word, by_position, by_block = jax.random.split(key, 3)
        blocks = tuple(TextBlock.draw(width, heads, block) for block in jax.random.split(by_block, layers))
        words = jax.random.normal(by_word, (vocabulary + 1, width))
        positions = 0.1 * jax.random.normal(by_position, (length, width))
        return TextEncoder(words, positions, blocks, jnp.ones(width))

    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        tokens = jnp.round(code).astype(jnp.int32)
        real = tokens != PAD
        real = real.at[0].set(real[0] | ~jnp.any(real))
        hidden = self.words[tokens] + self.positions
        for block in self.blocks:
            hidden = block(hidden, real)
        return jnp.mean(rms_norm(hidden, self.scale), axis=0, where=real[:, None])


class TextEncoding(Encoding, abc.ABC):
    """Codes are texts without coefficients, read by a text encoder that is trained with the model."""

    width: PositiveInt = 64
    """Size of the word vectors, and of the features that the model sees."""
    layers: PositiveInt = 1
    """Blocks of the text encoder."""
    heads: PositiveInt = 4
    """Attention heads; they divide the width."""

    @model_validator(mode="after")
    def _divides(self) -> TextEncoding:
        if self.width % self.heads:
            raise ValueError(f"heads must divide width, got width={self.width} and heads={self.heads}")
        return self

    def features(self, space: Space, family: Family) -> int:
        return self.width

    def refuse_coefficients(self, family: Family, fix: str) -> None:
        """Raise BadInput for a family whose constituents have coefficients."""
        law = coefficient_law(family)
        if law != "k-hot":
            words = f"{self.kind.capitalize()} cannot express coefficients; those of this family are {law}."
            raise BadInput(words, fix=f"{fix}, or encoding=token-embedding")
