"""A small text encoder that is trained with the model."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from recombine.encodings.base import Reader
from recombine.encodings.script import PAD

lecun_normal = jax.nn.initializers.lecun_normal()


def normalised(
    values: Float[Array, "word width"], scale: Float[Array, " width"]
) -> Float[Array, "word width"]:
    """Each vector divided by its root mean square."""
    return scale * values * jax.lax.rsqrt(jnp.mean(values**2, axis=-1, keepdims=True) + 1e-6)


class Block(eqx.Module):
    """Attention among the words, then two layers on each word; both added to what was there."""

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
    """How much of what attention and layers find is added; None: all of it."""

    @staticmethod
    def draw(width: int, heads: int, key: Array) -> Block:
        keys = jax.random.split(key, 6)
        query, key, value, out = (lecun_normal(one, (width, width)) for one in keys[:4])
        up, down = lecun_normal(keys[4], (width, 4 * width)), lecun_normal(keys[5], (4 * width, width))
        scales = jnp.ones(width), jnp.ones(width)
        return Block(query, key, value, out, up, down, scales, jnp.zeros(4 * width), heads)

    def __call__(
        self, words: Float[Array, "word width"], real: Bool[Array, " word"]
    ) -> Float[Array, "word width"]:
        attention, layers = (1.0, 1.0) if self.gates is None else self.gates
        words = words + attention * self._attend(normalised(words, self.scales[0]), real)
        hidden = jax.nn.gelu(normalised(words, self.scales[1]) @ self.up + self.bias)
        return words + layers * (hidden @ self.down)

    def _attend(
        self, words: Float[Array, "word width"], real: Bool[Array, " word"]
    ) -> Float[Array, "word width"]:
        by_head = (len(words), self.heads, -1)
        query, key, value = ((words @ one).reshape(by_head) for one in (self.query, self.key, self.value))
        match = jnp.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
        share = jax.nn.softmax(match, axis=-1, where=real)
        return jnp.einsum("hqk,khd->qhd", share, value).reshape(words.shape) @ self.out


class TextReader(Reader):
    """Vectors of words and of their positions, blocks, then the mean over the words. Pads are not seen, but for the first
    of a text without words: what is withheld from a model is read as something of its own."""

    words: Float[Array, "vocabulary width"]
    """The first is the pad's: what an empty text is read as."""
    positions: Float[Array, "word width"]
    blocks: tuple[Block, ...]
    scale: Float[Array, " width"]

    @staticmethod
    def draw(vocabulary: int, length: int, width: int, layers: int, heads: int, key: Array) -> TextReader:
        by_word, by_position, by_block = jax.random.split(key, 3)
        blocks = tuple(Block.draw(width, heads, one) for one in jax.random.split(by_block, layers))
        words = jax.random.normal(by_word, (vocabulary + 1, width))
        positions = 0.1 * jax.random.normal(by_position, (length, width))
        return TextReader(words, positions, blocks, jnp.ones(width))

    def __call__(self, code: Float[Array, " code"]) -> Float[Array, " feature"]:
        ids = jnp.round(code).astype(jnp.int32)
        real = ids != PAD
        real = real.at[0].set(real[0] | ~jnp.any(real))
        hidden = self.words[ids] + self.positions
        for block in self.blocks:
            hidden = block(hidden, real)
        return jnp.mean(normalised(hidden, self.scale), axis=0, where=real[:, None])
