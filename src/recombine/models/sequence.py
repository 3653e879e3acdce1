"""What sequence models share: they read a prompt, then say an answer token by token."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree
from pydantic import PositiveInt, model_validator

from recombine.families.vocabulary import BEGIN, END, PAD
from recombine.models.attention import Turns, product, turns
from recombine.models.base import Edit, Model, Network, Trace, unedited
from recombine.models.transformer import normed

Memory = Any
"""What a network keeps of the prompt and of what it said so far: arrays of fixed shape."""


class Words(eqx.Module):
    """Vectors of words, and from vectors back to words: by the same matrix where they are tied."""

    vectors: Float[Array, "vocabulary width"]
    before_readout: Float[Array, " width"]
    readout: Float[Array, "width vocabulary"] | None

    @staticmethod
    def draw(vocabulary: int, width: int, tied: bool, key: Array) -> Words:
        """Fresh weights: vectors whose length is one, so that a tied readout begins with small numbers."""
        by_vector, by_readout = jax.random.split(key)
        vectors = jax.random.normal(by_vector, (vocabulary, width)) * width**-0.5
        readout = None if tied else jax.random.normal(by_readout, (width, vocabulary)) * width**-0.5
        return Words(vectors, jnp.ones(width), readout)

    def embed(self, tokens: Int[Array, "*place"]) -> Float[Array, "*place width"]:
        """The stream at its beginning: numbers of size one."""
        return self.vectors[tokens] * self.vectors.shape[1] ** 0.5

    def read(self, stream: Float[Array, "*place width"]) -> Float[Array, "*place vocabulary"]:
        """How much each word is expected."""
        out = self.vectors.T if self.readout is None else self.readout
        return product(normed(stream, self.before_readout), out)


class SequenceNetwork(Network):
    """A drawn sequence model. A code is the prompt's tokens, inputs are the tokens before each of the answer's."""

    words: Words
    longest: int = eqx.field(static=True)
    """Tokens of the longest answer."""
    unit: int = eqx.field(static=True)
    """Numbers of each head."""

    @abc.abstractmethod
    def said(
        self,
        prompts: Int[Array, "row word"],
        shown: Int[Array, "row token"],
        steps: Int[Array, "#row place"],
        edit: Edit,
    ) -> tuple[Float[Array, "row token width"], Trace]:
        """The stream at each of the answer's places, before the readout, and the sites; a row for each answer. `steps` are the
        places at which one token after another stands."""

    @abc.abstractmethod
    def begin(self, prompt: Int[Array, " word"], steps: Int[Array, " place"]) -> Memory:
        """What is kept of a prompt."""

    @abc.abstractmethod
    def next(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        """What is expected after the token that stands at a place of the answer, and what is kept then."""

    def spread(
        self,
        code: Float[Array, " code"],
        inputs: Float[Array, "sample feature"],
        steps: Int[Array, " place"],
        edit: Edit = unedited,
    ) -> tuple[Float[Array, "sample output"], Trace]:
        """`trace` with tokens at other places than one after another."""
        prompts = jnp.broadcast_to(whole(code), (len(inputs), len(code)))
        stream, sites = self.said(prompts, whole(inputs), steps[None], edit)
        return self.words.read(stream).reshape(len(inputs), -1), sites

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        return self.spread(code, inputs, jnp.arange(len(code) + self.longest), edit)

    def tasks(
        self,
        codes: Float[Array, "task code"],
        inputs: Float[Array, "task sample feature"],
        steps: Int[Array, "task place"] | None = None,
    ) -> Float[Array, "task sample output"]:
        """All answers of all tasks as rows of one batch, so that a weight's gradient is one product."""
        tasks, samples, size = inputs.shape
        if steps is None:
            steps = jnp.arange(codes.shape[1] + self.longest)[None]
        elif samples > 1:
            steps = jnp.repeat(steps, samples, axis=0)
        prompts = whole(codes if samples == 1 else jnp.repeat(codes, samples, axis=0))
        stream, _ = self.said(prompts, whole(inputs).reshape(-1, size), steps, unedited)
        return self.words.read(stream).reshape(tasks, samples, -1)

    def turns(self, numbers: Int[Array, "*row token"], steps: Int[Array, "*#row place"]) -> Turns:
        """The turns of the tokens before which so many others stand."""
        return turns(jnp.take_along_axis(steps, numbers, axis=-1), self.unit)

    def generate(
        self,
        codes: Float[Array, "task code"],
        steps: Int[Array, "task place"] | None = None,
        key: Array | None = None,
    ) -> Int[Array, "task token"]:
        """The answers that the network gives by itself: at every place the likeliest token after those it said before, or,
        with a key, one that is drawn as it is expected.

        Ends when all answers have ended. What follows END is PAD.
        """
        tasks, size = codes.shape
        if steps is None:
            steps = jnp.broadcast_to(jnp.arange(size + self.longest), (tasks, size + self.longest))
        memory = jax.vmap(self.begin)(whole(codes), steps)
        answers = jnp.full((tasks, self.longest), PAD)
        first = jnp.full(tasks, BEGIN)

        def going(state: tuple[Array, Array, Memory, Array]) -> Array:
            number, token, _, _ = state
            return (number < self.longest) & ~jnp.all((token == END) | (token == PAD))

        def step(state: tuple[Array, Array, Memory, Array]) -> tuple[Array, Array, Memory, Array]:
            number, token, memory, answers = state
            expected, memory = jax.vmap(self.next, in_axes=(0, 0, None, 0))(memory, token, number, steps)
            # Neither pad nor beginning is ever said.
            expected = expected.at[:, PAD].set(-jnp.inf).at[:, BEGIN].set(-jnp.inf)
            over = (token == END) | (token == PAD)
            if key is not None:
                expected += jax.random.gumbel(jax.random.fold_in(key, number), expected.shape)
            said = jnp.where(over, PAD, jnp.argmax(expected, axis=-1))
            return number + 1, said, memory, answers.at[:, number].set(said)

        return jax.lax.while_loop(going, step, (jnp.zeros((), int), first, memory, answers))[3]

    def answers(
        self, codes: Float[Array, "task code"], steps: Int[Array, "task place"] | None = None
    ) -> Int[Array, "task token"]:
        """`generate`, in one loop also where a caller vmaps it over tasks.

        A loop that is vmapped goes on until the last of its tasks has ended, and copies what every task keeps at every
        token; all tasks as rows of one batch copy nothing.
        """
        weights, static = eqx.partition(self, eqx.is_array)

        def say(weights: PyTree, codes: Array, steps: Array | None) -> Array:
            return eqx.combine(weights, static).generate(codes, steps)

        said = jax.custom_batching.custom_vmap(say)

        @said.def_vmap
        def together(size: int, batched: PyTree, *given: Any) -> tuple[Array, bool]:
            if any(jax.tree.leaves(batched[0])):  # Networks of their own: a stack of runs.
                axes = jax.tree.map(lambda one: 0 if one else None, tuple(batched))
                return jax.vmap(say, in_axes=axes)(*given), True
            rows = jax.tree.map(
                lambda leaf, own: leaf if own else jnp.broadcast_to(leaf, (size, *leaf.shape)),
                given[1:],
                tuple(batched[1:]),
            )
            rows = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), rows)
            return say(given[0], *rows).reshape(size, -1, self.longest), True

        return said(weights, codes, steps)


def whole(tokens: Float[Array, "*place"]) -> Int[Array, "*place"]:
    """Tokens as whole numbers; codes and inputs are floats."""
    return jnp.round(tokens).astype(jnp.int32)


def standing(real: Bool[Array, "*row token"]) -> Int[Array, "*row token"]:
    """How many real tokens stand before each: pads take no place."""
    return jnp.maximum(jnp.cumsum(real, axis=-1) - 1, 0)


def flat(stream: Float[Array, "*row token width"]) -> Float[Array, "sample _"]:
    """The stream of each row as one vector: a site."""
    return stream.reshape(-1, stream.shape[-2] * stream.shape[-1])


class SequenceModel(Model, abc.ABC):
    """The configuration of a sequence model."""

    speaks: ClassVar[bool] = True
    width: PositiveInt = 128
    """Units of the residual stream."""
    layers: PositiveInt = 2
    """Number of blocks (of the reading and of the answering part each, where there are two)."""
    heads: PositiveInt = 4
    """Attention heads of each block; they share the width equally."""
    widening: PositiveInt = 4
    """Hidden units of each block's perceptron, as a multiple of the width."""
    tied: bool = True
    """Whether words are read out by the vectors that they are embedded by."""

    @model_validator(mode="after")
    def _heads_fit(self) -> SequenceModel:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width={self.width} does not give each of heads={self.heads} an even number of units, which rotary "
                f"positions turn in pairs: give a width that is a multiple of {2 * self.heads}"
            )
        return self
