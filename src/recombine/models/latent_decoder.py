"""A decoder with a short attention window that also attends to latents of its text, in every layer."""

from __future__ import annotations

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Code, Edit, Inputs, Model, Network, Traced, unedited
from recombine.models.layers import Block, RotaryEmbedding, causal, lecun_normal, matmul, rms_norm
from recombine.models.sequence import Embedding, as_tokens, flatten

Latents = Float[Array, "row layer latent size"]
"""The latents of several texts: each layer has its own."""
Stem = Float[Array, "row token width"]
"""The stream of several texts before it meets any latent."""


class LatentDecoderNetwork(Network):
    """Pre-norm blocks: attention to the last few tokens, cross-attention to the layer's latents, MLP."""

    embedding: Embedding
    blocks: tuple[Block, ...]
    readers: tuple[Float[Array, "size width"], ...]
    """What each layer makes of its latents before it attends to them; none without latents."""
    latents: int = eqx.field(static=True)
    """Latents of each layer."""
    window: int = eqx.field(static=True)
    """How many tokens a token attends to, itself included; 0 for all before it."""
    head_size: int = eqx.field(static=True)

    @property
    def latent_shape(self) -> tuple[int, int, int]:
        """Layers, latents of each, and numbers in each."""
        return len(self.blocks), self.latents, len(self.readers[0]) if self.readers else 0

    def _places(self, tokens: int) -> tuple[RotaryEmbedding, Bool[np.ndarray, "token token"]]:
        visible = causal(tokens)
        if self.window:
            visible = visible & ~np.tril(visible, -self.window)
        return RotaryEmbedding.first(tokens, self.head_size, self.embedding.vectors.dtype), visible

    def _attended(self, block: Block, stream: Stem) -> Stem:
        """The stream after the self-attention of a block."""
        positions, visible = self._places(stream.shape[-2])
        normed = rms_norm(stream, block.norm)
        attention = block.attention
        return stream + attention(attention.queries(normed, positions), attention.cache(normed, positions), visible)

    def stem(self, tokens: Int[Array, "row token"]) -> Stem:
        """The part of the computation that no latent changes: computed once, however many fast steps follow."""
        return self._attended(self.blocks[0], self.embedding.embed(tokens))

    def hidden_states(self, stem: Stem, latents: Latents, edit: Edit = unedited) -> tuple[Stem, dict[str, Array]]:
        """The stream before the readout, and the sites."""
        stream, sites = stem, {}
        for number, block in enumerate(self.blocks):
            if number:
                stream = self._attended(block, stream)
            cross, norm = block.cross_attention, block.cross_norm
            if cross is not None and norm is not None:
                cache = cross.cache(matmul(latents[:, number], self.readers[number]))
                visible = np.ones((stream.shape[-2], self.latents), bool)
                stream = stream + cross(cross.queries(rms_norm(stream, norm)), cache, visible)
            stream = stream + block.mlp(stream)
            site = f"block {number + 1}"
            sites[site] = edit(site, flatten(stream))
            stream = sites[site].reshape(stream.shape)
        return stream, sites

    def log_likelihoods(
        self, stem: Stem, latents: Latents, targets: Int[Array, "row token"]
    ) -> Float[Array, "row token"]:
        """The log-probability of each token given the latents and the tokens before it, in nats."""
        logits = self.embedding.logits(self.hidden_states(stem, latents)[0]).astype(jnp.float32)
        return jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)[..., 0]

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        """With all latents at the mean of the prior: what the decoder knows without them."""
        nothing = jnp.zeros((len(inputs), *self.latent_shape))
        stream, sites = self.hidden_states(self.stem(as_tokens(inputs)), nothing, edit)
        return self.embedding.logits(stream).reshape(len(inputs), -1), sites


class LatentDecoder(Model):
    """A decoder whose layers attend to the last `window` tokens, and to latents that are fitted to each text."""

    kind: Literal["latent-decoder"] = "latent-decoder"
    reads_code: ClassVar[bool] = False
    reads_tokens: ClassVar[bool] = True
    width: PositiveInt = 32
    """Units of the residual stream."""
    layers: PositiveInt = Field(default=2, le=1000)
    """Number of blocks."""
    heads: PositiveInt = 2
    """Attention heads of each block; each has an equal share of the width."""
    mlp_ratio: PositiveInt = 4
    """Hidden units of each block's MLP, as a multiple of the width."""
    latents: NonNegativeInt = 4
    """Latents of each layer. 0: a decoder without latents and cross-attention."""
    latent_size: PositiveInt = 8
    """Numbers in each latent."""
    window: NonNegativeInt = 3
    """How many tokens a token attends to, itself included; 0 for all before it."""

    @model_validator(mode="after")
    def _heads_fit(self) -> LatentDecoder:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width={self.width} does not give each of heads={self.heads} an even number of units, which rotary "
                f"positions turn in pairs: choose a width that is a multiple of {2 * self.heads}"
            )
        return self

    @property
    def reach(self) -> int:
        """How many tokens a prediction depends on; 0 for all before it."""
        return self.layers * (self.window - 1) + 1 if self.window else 0

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if family.targets != "text":
            raise BadInput(
                f"The model 'latent-decoder' predicts texts; the targets of {family.kind!r} are {family.targets}.",
                fix="family=topics",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> LatentDecoderNetwork:
        by_embedding, by_reader, *by_block = jax.random.split(key, 2 + self.layers)
        readers = jax.random.split(by_reader, self.layers) if self.latents else ()
        return LatentDecoderNetwork(
            embedding=Embedding.draw(output_size // input_size, self.width, True, by_embedding),
            blocks=tuple(
                Block.draw(self.width, self.heads, self.mlp_ratio, own, crossing=self.latents > 0) for own in by_block
            ),
            readers=tuple(lecun_normal(own, (self.latent_size, self.width)) for own in readers),
            latents=self.latents,
            window=self.window,
            head_size=self.width // self.heads,
        )
