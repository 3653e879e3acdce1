"""An encoder-decoder transformer: the prompt is read as a whole, then the answer is said with an eye on it."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.families.vocabulary import PAD
from recombine.models.attention import Block, Kept
from recombine.models.base import Edit, Trace, unedited
from recombine.models.sequence import SequenceModel, SequenceNetwork, Words, flat, standing

Told = tuple[tuple[Kept, ...], Bool[Array, "*row word"]]
"""For each block what it attends to in the prompt, and which of the prompt's tokens are real."""


class EncoderDecoderNetwork(SequenceNetwork):
    """Blocks on the prompt, in which all words see each other; blocks on the answer that attend to what came of them."""

    readers: tuple[Block, ...]
    speakers: tuple[Block, ...]

    def _told(
        self, prompts: Int[Array, "*row word"], steps: Int[Array, "*#row place"], edit: Edit
    ) -> tuple[Told, Trace]:
        real = prompts != PAD
        places = self.turns(standing(real), steps)
        # A prompt without a word still has something to be seen: its first pad.
        real = real.at[..., 0].set(True)
        stream, sites = self.words.embed(prompts), {}
        for number, block in enumerate(self.readers, start=1):
            stream, _ = block(stream, places, real[..., None, :])
            site = f"reader {number}"
            sites[site] = edit(site, flat(stream))
            stream = sites[site].reshape(stream.shape)
        return (
            tuple(block.crossing.keep(stream) for block in self.speakers if block.crossing is not None),
            real,
        ), sites

    def said(
        self,
        prompts: Int[Array, "row word"],
        shown: Int[Array, "row token"],
        steps: Int[Array, "#row place"],
        edit: Edit,
    ) -> tuple[Float[Array, "row token width"], Trace]:
        (told, real), sites = self._told(prompts, steps, edit)
        size = shown.shape[1]
        places = self.turns(jnp.arange(size)[None], steps)
        seen = jnp.asarray(np.tril(np.ones((1, size, size), bool)))
        stream = self.words.embed(shown)
        for number, (block, kept) in enumerate(zip(self.speakers, told, strict=True), start=1):
            stream, _ = block(stream, places, seen, None, (kept, real))
            site = f"speaker {number}"
            sites[site] = edit(site, flat(stream))
            stream = sites[site].reshape(stream.shape)
        return stream, sites

    def begin(
        self, prompt: Int[Array, " word"], steps: Int[Array, " place"]
    ) -> tuple[Told, tuple[Kept, ...]]:
        told, _ = self._told(prompt, steps, unedited)
        kept = [
            Kept(*(jnp.zeros((self.longest, *part.shape[1:]), part.dtype) for part in one)) for one in told[0]
        ]
        return told, tuple(kept)

    def next(
        self,
        memory: tuple[Told, tuple[Kept, ...]],
        token: Int[Array, ""],
        number: Int[Array, ""],
        steps: Int[Array, " place"],
    ) -> tuple[Float[Array, " vocabulary"], tuple[Told, tuple[Kept, ...]]]:
        (told, real), kept = memory
        place = self.turns(number[None], steps)
        seen = jnp.append(jnp.arange(self.longest) < number, True)[None]
        stream = self.words.embed(token[None])
        after = []
        for block, past, crossed in zip(self.speakers, kept, told, strict=True):
            stream, own = block(stream, place, seen, past, (crossed, real))
            after.append(Kept(*(old.at[number].set(new[0]) for old, new in zip(past, own, strict=True))))
        return self.words.read(stream[0]), ((told, real), tuple(after))


class EncoderDecoder(SequenceModel):
    """`layers` blocks that read and as many that answer, of `heads` heads on streams of `width`; rotary positions."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> EncoderDecoderNetwork:
        by_words, *by_block = jax.random.split(key, 1 + 2 * self.layers)

        def block(one: Array, crossing: bool) -> Block:
            return Block.draw(self.width, self.heads, self.widening, one, crossing)

        return EncoderDecoderNetwork(
            words=Words.draw(output_size // input_size, self.width, self.tied, by_words),
            longest=input_size,
            unit=self.width // self.heads,
            readers=tuple(block(one, False) for one in by_block[: self.layers]),
            speakers=tuple(block(one, True) for one in by_block[self.layers :]),
        )
