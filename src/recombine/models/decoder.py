"""A decoder-only transformer: prompt and answer are one sequence, and each token sees those before it."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.families.vocabulary import PAD
from recombine.models.attention import Block, Kept
from recombine.models.base import Edit, Trace
from recombine.models.sequence import SequenceModel, SequenceNetwork, Words, flat, standing


class DecoderNetwork(SequenceNetwork):
    """Blocks on the prompt's tokens and then the answer's. Pads are not seen and take no place."""

    blocks: tuple[Block, ...]

    def said(
        self,
        prompts: Int[Array, "row word"],
        shown: Int[Array, "row token"],
        steps: Int[Array, "#row place"],
        edit: Edit,
    ) -> tuple[Float[Array, "row token width"], Trace]:
        told = prompts.shape[1]
        tokens = jnp.concatenate([prompts, shown], axis=1)
        # Behind an answer's END nothing is asked; its pads count as tokens so that everyone sees at least themselves.
        real = (tokens != PAD) | (jnp.arange(tokens.shape[1]) >= told)
        places, seen = self.turns(standing(real), steps), _seen(real)
        stream, sites = self.words.embed(tokens), {}
        for number, block in enumerate(self.blocks, start=1):
            # Nothing comes after the last block, so that it has no use for the prompt's places.
            before = told if number < len(self.blocks) else 0
            stream, _ = block(stream, places, seen, first=told - before)
            site = f"block {number}"
            sites[site] = edit(site, flat(stream[:, before:]))
            answer = sites[site].reshape(*shown.shape, -1)
            stream = jnp.concatenate([stream[:, :before], answer], axis=1) if before else answer
        return stream, sites

    def begin(
        self, prompt: Int[Array, " word"], steps: Int[Array, " place"]
    ) -> tuple[tuple[Kept, ...], Bool[Array, " place"]]:
        real = prompt != PAD
        places, seen = self.turns(standing(real), steps), _seen(real)
        stream = self.words.embed(prompt)
        kept = []
        for block in self.blocks:
            stream, own = block(stream, places, seen)
            kept.append(Kept(*(jnp.pad(part, ((0, self.longest), (0, 0), (0, 0))) for part in own)))
        return tuple(kept), jnp.pad(real, (0, self.longest))

    def next(
        self,
        memory: tuple[tuple[Kept, ...], Bool[Array, " place"]],
        token: Int[Array, ""],
        number: Int[Array, ""],
        steps: Int[Array, " place"],
    ) -> tuple[Float[Array, " vocabulary"], tuple[tuple[Kept, ...], Bool[Array, " place"]]]:
        kept, real = memory
        place = self.turns(jnp.sum(real)[None], steps)
        seen = jnp.append(real, True)[None]
        at = len(real) - self.longest + number
        stream = self.words.embed(token[None])
        after = []
        for block, past in zip(self.blocks, kept, strict=True):
            stream, own = block(stream, place, seen, past)
            after.append(Kept(*(old.at[at].set(new[0]) for old, new in zip(past, own, strict=True))))
        return self.words.read(stream[0]), (tuple(after), real.at[at].set(True))


def _seen(real: Bool[Array, "*row token"]) -> Bool[Array, "*row token token"]:
    """Each token sees the real ones before it, and itself."""
    size = real.shape[-1]
    before = jnp.asarray(np.tril(np.ones((size, size), bool)))
    return (before & real[..., None, :]) | jnp.eye(size, dtype=bool)


class Decoder(SequenceModel):
    """`layers` blocks of `heads` heads on a stream of `width`; rotary positions, normed queries and keys."""

    kind: Literal["decoder"] = "decoder"

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> DecoderNetwork:
        by_words, *by_block = jax.random.split(key, 1 + self.layers)
        return DecoderNetwork(
            words=Words.draw(output_size // input_size, self.width, self.tied, by_words),
            longest=input_size,
            unit=self.width // self.heads,
            blocks=tuple(Block.draw(self.width, self.heads, self.widening, one) for one in by_block),
        )
