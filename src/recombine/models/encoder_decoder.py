"""An encoder-decoder transformer: blocks read the whole prompt, then others generate the answer and attend to it."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from recombine.language.vocabulary import PAD
from recombine.models.base import Edit, Trace, unedited
from recombine.models.layers import Block, KVCache, causal
from recombine.models.sequence import Embedding, RowSteps, SequenceModel, SequenceNetwork, flatten, token_indices

EncodedPrompt = tuple[tuple[KVCache, ...], Bool[Array, "*row word"]]
"""What each block of the decoder attends to in the prompt, and which of the prompt's tokens are real."""
Memory = tuple[EncodedPrompt, tuple[KVCache, ...]]
"""The encoded prompt, and the cache of each block of the decoder."""


class EncoderDecoderNetwork(SequenceNetwork):
    """An encoder in which all words of the prompt see each other, and a decoder with cross-attention to its output.

    Sites are called `reader` (encoder) and `speaker` (decoder).
    """

    encoder: tuple[Block, ...]
    decoder: tuple[Block, ...]

    def _encode(
        self, prompts: Int[Array, "*row word"], steps: Int[Array, "*#row place"], edit: Edit
    ) -> tuple[EncodedPrompt, Trace]:
        real = prompts != PAD
        positions = self.rotary(token_indices(real), steps)
        # The first pad of an empty prompt is visible, so that attention has something to attend to.
        real = real.at[..., 0].set(True)
        stream, sites = self.embedding.embed(prompts), {}
        for number, block in enumerate(self.encoder, start=1):
            stream, _ = block(stream, positions, real[..., None, :])
            site = f"reader {number}"
            sites[site] = edit(site, flatten(stream))
            stream = sites[site].reshape(stream.shape)
        attentions = [block.cross_attention for block in self.decoder]
        caches = tuple(attention.cache(stream) for attention in attentions if attention is not None)
        return (caches, real), sites

    def hidden_states(
        self, prompts: Int[Array, "row word"], shown: Int[Array, "row token"], steps: RowSteps, edit: Edit
    ) -> tuple[Float[Array, "row token width"], Trace]:
        (prompt_caches, real), sites = self._encode(prompts, steps, edit)
        size = shown.shape[1]
        positions = self.rotary(jnp.arange(size)[None], steps)
        visible = jnp.asarray(causal(size)[None])
        stream = self.embedding.embed(shown)
        for number, (block, cache) in enumerate(zip(self.decoder, prompt_caches, strict=True), start=1):
            stream, _ = block(stream, positions, visible, None, (cache, real))
            site = f"speaker {number}"
            sites[site] = edit(site, flatten(stream))
            stream = sites[site].reshape(stream.shape)
        return stream, sites

    def prefill(self, prompt: Int[Array, " word"], steps: Int[Array, " place"]) -> Memory:
        encoded, _ = self._encode(prompt, steps, unedited)
        empty = [
            KVCache(*(jnp.zeros((self.longest_answer, *part.shape[1:]), part.dtype) for part in cache))
            for cache in encoded[0]
        ]
        return encoded, tuple(empty)

    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        (prompt_caches, real), caches = memory
        position = self.rotary(number[None], steps)
        visible = jnp.append(jnp.arange(self.longest_answer) < number, True)[None]
        stream = self.embedding.embed(token[None])
        updated = []
        for block, past, prompt_cache in zip(self.decoder, caches, prompt_caches, strict=True):
            stream, own = block(stream, position, visible, past, (prompt_cache, real))
            updated.append(past.write(number, own))
        return self.embedding.logits(stream[0]), ((prompt_caches, real), tuple(updated))


class EncoderDecoder(SequenceModel):
    """An encoder-decoder transformer with `layers` blocks on each side: pre-norm, rotary positions."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> EncoderDecoderNetwork:
        by_embedding, *by_block = jax.random.split(key, 1 + 2 * self.layers)

        def block(block_key: Array, crossing: bool) -> Block:
            return Block.draw(self.width, self.heads, self.mlp_ratio, block_key, crossing)

        return EncoderDecoderNetwork(
            embedding=Embedding.draw(output_size // input_size, self.width, self.tied_embeddings, by_embedding),
            longest_answer=input_size,
            head_size=self.width // self.heads,
            encoder=tuple(block(block_key, False) for block_key in by_block[: self.layers]),
            decoder=tuple(block(block_key, True) for block_key in by_block[self.layers :]),
        )
