"""Syntactic attention: a word's context decides where to attend, and the word alone decides what is found there."""

from __future__ import annotations

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from recombine.language.vocabulary import END, PAD
from recombine.models.base import Edit, Model, Trace, unedited
from recombine.models.layers import Linear, lecun_normal, matmul, rms_norm
from recombine.models.sequence import Embedding, RowSteps, SequenceNetwork, flatten

Encoded = tuple[Float[Array, "*row entry width"], Float[Array, "*row entry width"], Bool[Array, "*row entry"]]
"""The syntax of each word of a prompt and of its end, their meaning, and which of them are real."""
Memory = tuple[Encoded, Float[Array, "*row width"]]
"""The encoded prompt and the state of the decoder."""


class GRU(eqx.Module):
    """A gated recurrent unit."""

    inputs: Linear
    """To the reset gate, the update gate and the candidate."""
    recurrent: Float[Array, "unit three_units"]

    @staticmethod
    def draw(features: int, units: int, key: Array) -> GRU:
        """Fresh weights: LeCun-normal."""
        by_input, by_state = jax.random.split(key)
        return GRU(Linear.draw(features, 3 * units, by_input), lecun_normal(by_state, (units, 3 * units)))

    def project(self, inputs: Float[Array, "*row feature"]) -> Float[Array, "*row three_units"]:
        """The part of the gates that follows from the inputs: of all steps at once."""
        return matmul(inputs, self.inputs.weight) + self.inputs.bias

    def step(self, state: Float[Array, "*row unit"], projected: Float[Array, "*row three_units"]) -> Array:
        """The next state."""
        reset, update, candidate = jnp.split(projected, 3, axis=-1)
        own_reset, own_update, own = jnp.split(state @ self.recurrent, 3, axis=-1)
        update = jax.nn.sigmoid(update + own_update)
        candidate = jnp.tanh(candidate + jax.nn.sigmoid(reset + own_reset) * own)
        return update * state + (1 - update) * candidate

    def run(
        self, words: Float[Array, "*row word feature"], real: Bool[Array, "*row word"], reverse: bool = False
    ) -> Float[Array, "*row word unit"]:
        """The state after each word, from left to right or from right to left. Pads leave the state as it is."""

        def step(state: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
            projected, is_real = given
            state = jnp.where(is_real[..., None], self.step(state, projected), state)
            return state, state

        projected = jnp.moveaxis(self.project(words), -2, 0)
        first = jnp.zeros((*words.shape[:-2], len(self.recurrent)), words.dtype)
        return jnp.moveaxis(
            jax.lax.scan(step, first, (projected, jnp.moveaxis(real, -1, 0)), reverse=reverse)[1], 0, -2
        )


class BothWays(eqx.Module):
    """Two recurrent units over the words of a prompt, one in each direction."""

    forward: GRU
    backward: GRU

    @staticmethod
    def draw(width: int, key: Array) -> BothWays:
        """Fresh weights; each direction has half of the width."""
        by_forward, by_backward = jax.random.split(key)
        return BothWays(GRU.draw(width, width // 2, by_forward), GRU.draw(width, width // 2, by_backward))

    def __call__(self, words: Float[Array, "*row word width"], real: Bool[Array, "*row word"]) -> tuple[Array, Array]:
        """The states of both directions after each word."""
        return self.forward.run(words, real), self.backward.run(words, real, reverse=True)


class SyntacticAttentionNetwork(SequenceNetwork):
    """Recurrent, with one attention head. The decoder sees where it attended, and never which actions it wrote."""

    shrink: float = eqx.field(static=True)
    syntax: Float[Array, "vocabulary width"]
    around: BothWays
    """Reads the words before and those after each word, without the word."""
    order: BothWays
    """Reads these contexts."""
    start: Linear
    decoder: GRU
    key_scale: Float[Array, " width"]
    in_context: BothWays | None
    """Reads the meanings of words in their order; None where meanings do not depend on other words."""

    def _encode(self, prompts: Int[Array, "*row word"], edit: Edit) -> tuple[Memory, Trace]:
        count = jnp.sum(prompts != PAD, axis=-1, keepdims=True)
        tokens = jnp.concatenate([prompts, jnp.full_like(prompts[..., :1], PAD)], axis=-1)
        place = jnp.arange(tokens.shape[-1])
        # END is a word of the prompt: attending to it ends the answer.
        tokens, real = jnp.where(place == count, END, tokens), place <= count
        left, right = self.around(self.syntax[tokens], real)
        nothing = jnp.zeros_like(left[..., :1, :])
        before = jnp.concatenate([nothing, left[..., :-1, :]], axis=-2)
        after = jnp.concatenate([right[..., 1:, :], nothing], axis=-2)
        context = jnp.concatenate([before, after], axis=-1)
        forward, backward = self.order(context, real)
        syntax = jnp.concatenate([forward, backward], axis=-1)
        meaning = self.embedding.embed(tokens)
        if self.in_context is not None:
            meaning = jnp.concatenate(self.in_context(meaning, real), axis=-1)
        sites = {}
        for site, values in (("syntax", syntax), ("meaning", meaning)):
            sites[site] = edit(site, flatten(values))
        syntax, meaning = (values.reshape(syntax.shape) for values in sites.values())
        whole = jnp.concatenate([forward[..., -1, :], backward[..., 0, :]], axis=-1)
        return ((syntax, meaning, real), jnp.tanh(self.start(whole))), sites

    def _attend(self, encoded: Encoded, state: Float[Array, "*row width"]) -> tuple[Array, Array]:
        """The meaning that is found, and the next state."""
        syntax, meaning, real = encoded
        keys = rms_norm(syntax, self.key_scale)
        scores = jnp.einsum("...wu,...u->...w", keys, rms_norm(state))
        weights = jax.nn.softmax(jnp.where(real, scores / state.shape[-1] ** 0.5, -jnp.inf), axis=-1)
        found = jnp.einsum("...w,...wu->...u", weights, meaning)
        seen = jnp.einsum("...w,...wu->...u", weights, syntax)
        return found, self.decoder.step(state, self.decoder.project(seen))

    def hidden_states(
        self, prompts: Int[Array, "row word"], shown: Int[Array, "row token"], steps: RowSteps, edit: Edit
    ) -> tuple[Float[Array, "row token width"], Trace]:
        (encoded, state), sites = self._encode(prompts, edit)

        def step(state: Array, _: None) -> tuple[Array, Array]:
            found, state = self._attend(encoded, state)
            return state, found

        found = jnp.moveaxis(jax.lax.scan(step, state, None, length=shown.shape[1])[1], 0, 1)
        sites["found"] = edit("found", flatten(found))
        return sites["found"].reshape(found.shape), sites

    def penalty(self) -> Float[Array, ""]:
        return self.shrink * jnp.sum(self.syntax**2)

    def prefill(self, prompt: Int[Array, " word"], steps: Int[Array, " place"]) -> Memory:
        # A batch of one row, so that sites are flat in the same way.
        (encoded, state), _ = self._encode(prompt[None], unedited)
        syntax, meaning, real = encoded
        return (syntax[0], meaning[0], real[0]), state[0]

    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        encoded, state = memory
        found, state = self._attend(encoded, state)
        return self.embedding.logits(found), (encoded, state)


class SyntacticAttention(Model):
    """An encoder-decoder with two streams: attention follows from syntax, and what is attended to is the meaning of words.

    The syntax of a word follows from the words around it, without the word. Its meaning is an embedding of the word alone. The
    decoder attends by syntax, sees the syntax of what it attended to, and writes the action of the meaning that it found. After
    Russin, Jo, O'Reilly and Bengio (2019), with gated recurrent units.

    Example:
        ```python
        RunConfig(family="scan", model=SyntacticAttention(width=64))
        ```
    """

    kind: Literal["syntactic-attention"] = "syntactic-attention"
    autoregressive: ClassVar[bool] = True
    reads_inputs: ClassVar[bool] = False
    width: PositiveInt = 64
    """Units of each stream and of the decoder's state."""
    spread: PositiveFloat = 0.03
    """The standard deviation of the first syntax embeddings. Where it is small, words differ in syntax only as far as training needs
    it: verbs that are used alike stay alike."""
    shrink: NonNegativeFloat = 0.01
    """The penalty on the squares of the syntax embeddings, for the same reason."""
    separate: bool = True
    """Whether a word's meaning is independent of the other words. Without, a recurrent network reads meanings in their order: the
    ablation, which has more weights."""

    @field_validator("width")
    @classmethod
    def _even(cls, width: int) -> int:
        if width % 2:
            raise ValueError(f"width={width} must be even, because each direction has half of it: choose {width + 1}")
        return width

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> SyntacticAttentionNetwork:
        by_meaning, by_syntax, by_around, by_order, by_start, by_decoder, by_context = jax.random.split(key, 7)
        vocabulary, width = output_size // input_size, self.width
        return SyntacticAttentionNetwork(
            embedding=Embedding.draw(vocabulary, width, False, by_meaning),
            longest_answer=input_size,
            head_size=width,
            shrink=self.shrink,
            syntax=self.spread * jax.random.normal(by_syntax, (vocabulary, width)),
            around=BothWays.draw(width, by_around),
            order=BothWays.draw(width, by_order),
            start=Linear.draw(width, width, by_start),
            decoder=GRU.draw(width, width, by_decoder),
            key_scale=jnp.ones(width),
            in_context=None if self.separate else BothWays.draw(width, by_context),
        )
