"""A decoder-only transformer: prompt and answer are one sequence, and each token sees those before it."""

from __future__ import annotations

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import PositiveInt

from recombine.language.vocabulary import PAD
from recombine.models.base import Edit, Trace
from recombine.models.layers import Block, KVCache, causal
from recombine.models.sequence import Embedding, RowSteps, SequenceModel, SequenceNetwork, flatten, token_indices

Memory = tuple[tuple[KVCache, ...], Bool[Array, " place"]]
"""The cache of each application of a block, and which of its places hold a real token."""


class DecoderNetwork(SequenceNetwork):
    """Blocks on the prompt's tokens and then the answer's. Pads are not seen and take no position."""

    blocks: tuple[Block, ...]
    repeats: int = eqx.field(static=True, default=1)
    """How often each block is applied in a row."""

    @property
    def stages(self) -> tuple[Block, ...]:
        """The blocks in the order in which they are applied."""
        return tuple(block for block in self.blocks for _ in range(self.repeats))

    def hidden_states(
        self, prompts: Int[Array, "row word"], shown: Int[Array, "row token"], steps: RowSteps, edit: Edit
    ) -> tuple[Float[Array, "row token width"], Trace]:
        prompt_size = prompts.shape[1]
        tokens = jnp.concatenate([prompts, shown], axis=1)
        # The pads of an answer count as tokens, so that every token sees at least itself. Their outputs are unused.
        real = (tokens != PAD) | (jnp.arange(tokens.shape[1]) >= prompt_size)
        positions, visible = self.rotary(token_indices(real), steps), _visible(real)
        stream, sites = self.embedding.embed(tokens), {}
        for number, block in enumerate(self.stages, start=1):
            # Outputs of the last block at the prompt's tokens are unused.
            prefix = prompt_size if number < len(self.stages) else 0
            stream, _ = block(stream, positions, visible, first=prompt_size - prefix)
            site = f"block {number}"
            sites[site] = edit(site, flatten(stream[:, prefix:]))
            answer = sites[site].reshape(*shown.shape, -1)
            stream = jnp.concatenate([stream[:, :prefix], answer], axis=1) if prefix else answer
        return stream, sites

    def prefill(self, prompt: Int[Array, " word"], steps: Int[Array, " place"]) -> Memory:
        real = prompt != PAD
        positions, visible = self.rotary(token_indices(real), steps), _visible(real)
        stream = self.embedding.embed(prompt)
        caches = []
        for block in self.stages:
            stream, own = block(stream, positions, visible)
            caches.append(KVCache(*(jnp.pad(part, ((0, self.longest_answer), (0, 0), (0, 0))) for part in own)))
        return tuple(caches), jnp.pad(real, (0, self.longest_answer))

    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        caches, real = memory
        position = self.rotary(jnp.sum(real)[None], steps)
        visible = jnp.append(real, True)[None]
        place = len(real) - self.longest_answer + number
        stream = self.embedding.embed(token[None])
        updated = []
        for block, past in zip(self.stages, caches, strict=True):
            stream, own = block(stream, position, visible, past)
            updated.append(past.write(place, own))
        return self.embedding.logits(stream[0]), (tuple(updated), real.at[place].set(True))


def _visible(real: Bool[Array, "*row token"]) -> Bool[Array, "*row token token"]:
    """Each token sees the real ones before it, and itself."""
    size = real.shape[-1]
    return (jnp.asarray(causal(size)) & real[..., None, :]) | jnp.eye(size, dtype=bool)


class Decoder(SequenceModel):
    """A decoder-only transformer: pre-norm blocks, rotary positions, RMS-normed queries and keys."""

    kind: Literal["decoder"] = "decoder"
    later: ClassVar[frozenset[str]] = frozenset({"repeats"})
    repeats: PositiveInt = 1
    """How often each block is applied in a row: neighbouring layers share weights where it is more than one."""

    def reuse(self) -> int:
        return self.repeats

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> DecoderNetwork:
        by_embedding, *by_block = jax.random.split(key, 1 + self.layers)
        return DecoderNetwork(
            embedding=Embedding.draw(output_size // input_size, self.width, self.tied_embeddings, by_embedding),
            longest_answer=input_size,
            head_size=self.width // self.heads,
            blocks=tuple(Block.draw(self.width, self.heads, self.mlp_ratio, block_key) for block_key in by_block),
            repeats=self.repeats,
        )
