"""A decoder-only transformer: prompt and answer are one sequence, and each token sees those before it."""

from __future__ import annotations

import functools
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import NonNegativeInt, PositiveInt

from recombine.language.vocabulary import PAD
from recombine.models.base import Edit, Trace
from recombine.models.layers import Block, KVCache, causal, lecun_normal, matmul
from recombine.models.sequence import Embedding, RowSteps, SequenceModel, SequenceNetwork, flatten, token_indices

Memory = tuple[tuple[KVCache, ...], Bool[Array, " place"], Int[Array, " distance"]]
"""The cache of each application of a block, which of its places hold a real token, and the tokens just before, nearest first."""


class DecoderNetwork(SequenceNetwork):
    """Blocks on the prompt's tokens and then the answer's. Pads are not seen and take no position."""

    blocks: tuple[Block, ...]
    repeats: int = eqx.field(static=True, default=1)
    """How often each block is applied in a row."""
    before: tuple[Float[Array, "width width"], ...] = ()
    """What a token takes from the embeddings of those just before it, nearest first."""

    def _embed(
        self, tokens: Int[Array, "*row token"], preceding: Int[Array, "*row token distance"]
    ) -> Float[Array, "*row token width"]:
        """The embeddings of tokens, with those just before each; PAD stands for none."""
        stream = self.embedding.embed(tokens)
        for distance, weight in enumerate(self.before):
            others = preceding[..., distance]
            stream = stream + matmul(jnp.where(others[..., None] == PAD, 0, self.embedding.embed(others)), weight)
        return stream

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
        stream, sites = self._embed(tokens, _preceding(tokens, real, len(self.before))), {}
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
        size = len(self.before)
        # What is before a token that follows the prompt: the last place is that of such a token.
        longer, follows = jnp.append(prompt, PAD), jnp.append(real, True)
        preceding = _preceding(longer, follows, size)
        stream = self._embed(prompt, preceding[:-1])
        caches = []
        for block in self.stages:
            stream, own = block(stream, positions, visible)
            caches.append(KVCache(*(jnp.pad(part, ((0, self.longest_answer), (0, 0), (0, 0))) for part in own)))
        return tuple(caches), jnp.pad(real, (0, self.longest_answer)), preceding[-1]

    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        caches, real, preceding = memory
        position = self.rotary(jnp.sum(real)[None], steps)
        visible = jnp.append(real, True)[None]
        place = len(real) - self.longest_answer + number
        stream = self._embed(token[None], preceding[None])
        updated = []
        for block, past in zip(self.stages, caches, strict=True):
            stream, own = block(stream, position, visible, past)
            updated.append(past.write(place, own))
        preceding = jnp.append(token[None], preceding)[: len(preceding)]
        return self.embedding.logits(stream[0]), (tuple(updated), real.at[place].set(True), preceding)


def _visible(real: Bool[Array, "*row token"]) -> Bool[Array, "*row token token"]:
    """Each token sees the real ones before it, and itself."""
    size = real.shape[-1]
    return (jnp.asarray(causal(size)) & real[..., None, :]) | jnp.eye(size, dtype=bool)


def _preceding(
    tokens: Int[Array, "*row token"], real: Bool[Array, "*row token"], number: int
) -> Int[Array, "*row token {number}"]:
    """The last `number` real tokens before each token, nearest first; PAD where there are fewer."""
    if not number:
        return jnp.zeros((*tokens.shape, 0), tokens.dtype)
    if tokens.ndim > 1:
        return jax.vmap(functools.partial(_preceding, number=number))(tokens, real)
    rank = jnp.cumsum(real) - real  # How many real tokens are before each.
    packed = jnp.full_like(tokens, PAD).at[jnp.where(real, rank, len(tokens))].set(tokens, mode="drop")
    places = rank[:, None] - 1 - jnp.arange(number)
    return jnp.where(places < 0, PAD, packed[jnp.maximum(places, 0)])


class Decoder(SequenceModel):
    """A decoder-only transformer: pre-norm blocks, rotary positions, RMS-normed queries and keys."""

    kind: Literal["decoder"] = "decoder"
    later: ClassVar[frozenset[str]] = frozenset({"repeats", "window"})
    repeats: PositiveInt = 1
    """How often each block is applied in a row: neighbouring layers share weights where it is more than one."""

    window: NonNegativeInt = 0
    """How many tokens before each token its embedding includes (a short convolution). Without, the first attention has to learn which
    neighbours belong together before the next one can compare examples."""

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
            before=tuple(
                lecun_normal(jax.random.fold_in(by_embedding, distance), (self.width, self.width))
                for distance in range(1, 1 + self.window)
            ),
        )
