"""What sequence models share: they read a prompt, then generate an answer token by token."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree
from pydantic import Field, PositiveInt, model_validator

from recombine.language.vocabulary import BEGIN, END, PAD
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.layers import RotaryEmbedding, matmul, rms_norm

Memory = Any
"""What generation keeps of the prompt and of the tokens so far: arrays of fixed shape."""

Steps = Int[Array, " place"]
RowSteps = Int[Array, "#row place"]
TaskSteps = Int[Array, "task place"]
"""The positions of consecutive tokens: of one sequence, of the rows of a batch, of several tasks."""


class Embedding(eqx.Module):
    """From tokens to vectors, and from vectors to logits; both by one matrix where the embeddings are tied."""

    vectors: Float[Array, "vocabulary width"]
    readout_norm: Float[Array, " width"]
    readout: Float[Array, "width vocabulary"] | None

    @staticmethod
    def draw(vocabulary: int, width: int, tied_embeddings: bool, key: Array) -> Embedding:
        """Fresh weights: vectors of length one, so that a tied readout begins with small logits."""
        by_vector, by_readout = jax.random.split(key)
        vectors = jax.random.normal(by_vector, (vocabulary, width)) * width**-0.5
        readout = None if tied_embeddings else jax.random.normal(by_readout, (width, vocabulary)) * width**-0.5
        return Embedding(vectors, jnp.ones(width), readout)

    def embed(self, tokens: Int[Array, "*place"]) -> Float[Array, "*place width"]:
        """The residual stream before the first block: numbers of about size one."""
        return self.vectors[tokens] * self.vectors.shape[1] ** 0.5

    def logits(self, stream: Float[Array, "*place width"]) -> Float[Array, "*place vocabulary"]:
        """The logit of each token of the vocabulary."""
        readout = self.vectors.T if self.readout is None else self.readout
        return matmul(rms_norm(stream, self.readout_norm), readout)


class SequenceNetwork(Network):
    """A drawn sequence model. A code is the prompt's tokens; inputs are the tokens before each token of the answer.

    `steps` are the positions of consecutive tokens: 0, 1, ... unless an objective draws random positions.
    """

    embedding: Embedding
    longest_answer: int = eqx.field(static=True)
    """Tokens of the longest answer."""
    head_size: int = eqx.field(static=True)
    """Units of each attention head."""

    @abc.abstractmethod
    def hidden_states(
        self, prompts: Int[Array, "row word"], shown: Int[Array, "row token"], steps: RowSteps, edit: Edit
    ) -> tuple[Float[Array, "row token width"], dict[str, Array]]:
        """The stream at each token of the answers, before the readout, and the sites. One row per answer."""

    @abc.abstractmethod
    def prefill(self, prompt: Int[Array, " word"], steps: Int[Array, " place"]) -> Memory:
        """What generation keeps of a prompt."""

    @abc.abstractmethod
    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Int[Array, " place"]
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        """The logits after the token with this number in the answer, and the memory with that token."""

    def trace_at(self, code: Code, inputs: Inputs, steps: Steps, edit: Edit = unedited) -> Traced:
        """`trace` with tokens at other positions than 0, 1, ..."""
        prompts = jnp.broadcast_to(as_tokens(code), (len(inputs), len(code)))
        stream, sites = self.hidden_states(prompts, as_tokens(inputs), steps[None], edit)
        return self.embedding.logits(stream).reshape(len(inputs), -1), sites

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self.trace_at(code, inputs, jnp.arange(len(code) + self.longest_answer), edit)

    def tasks(self, codes: Codes, inputs: TaskInputs, steps: TaskSteps | None = None) -> TaskOutputs:
        """All answers of all tasks as rows of one batch, so that a weight's gradient is one product."""
        tasks, samples, size = inputs.shape
        if steps is None:
            steps = jnp.arange(codes.shape[1] + self.longest_answer)[None]
        elif samples > 1:
            steps = jnp.repeat(steps, samples, axis=0)
        prompts = as_tokens(codes if samples == 1 else jnp.repeat(codes, samples, axis=0))
        stream, _ = self.hidden_states(prompts, as_tokens(inputs).reshape(-1, size), steps, unedited)
        return self.embedding.logits(stream).reshape(tasks, samples, -1)

    def rotary(self, numbers: Int[Array, "*row token"], steps: Int[Array, "*#row place"]) -> RotaryEmbedding:
        """The rotary embedding of tokens, given by how many others are before each."""
        return RotaryEmbedding.at(jnp.take_along_axis(steps, numbers, axis=-1), self.head_size)

    def generate(
        self,
        codes: Codes,
        steps: TaskSteps | None = None,
        key: Array | None = None,
        lengths: Int[Array, " task"] | None = None,
    ) -> Int[Array, "task token"]:
        """Free-running answers: each token follows from the prompt and the tokens generated before it.

        Args:
            codes: The prompts.
            steps: The positions of consecutive tokens; None for 0, 1, ...
            key: Tokens are sampled with this key; None for the most likely token (greedy decoding).
            lengths: Each answer has exactly this number of tokens, END included; None where the network ends its answers.

        Returns:
            The tokens of each answer, with PAD after END. The loop ends when all answers have ended.
        """
        tasks, size = codes.shape
        if steps is None:
            steps = jnp.broadcast_to(jnp.arange(size + self.longest_answer), (tasks, size + self.longest_answer))
        memory = jax.vmap(self.prefill)(as_tokens(codes), steps)
        answers = jnp.full((tasks, self.longest_answer), PAD)
        first = jnp.full(tasks, BEGIN)

        def unfinished(state: tuple[Array, Array, Memory, Array]) -> Array:
            number, token, _, _ = state
            return (number < self.longest_answer) & ~jnp.all((token == END) | (token == PAD))

        def step(state: tuple[Array, Array, Memory, Array]) -> tuple[Array, Array, Memory, Array]:
            number, token, memory, answers = state
            logits, memory = jax.vmap(self.next_logits, in_axes=(0, 0, None, 0))(memory, token, number, steps)
            # An answer never contains PAD or BEGIN.
            logits = logits.at[:, PAD].set(-jnp.inf).at[:, BEGIN].set(-jnp.inf)
            ended = (token == END) | (token == PAD)
            if key is not None:
                logits += jax.random.gumbel(jax.random.fold_in(key, number), logits.shape)
            if lengths is not None:
                last = number == lengths - 1
                logits = logits.at[:, END].set(jnp.where(last, jnp.inf, -jnp.inf))
            chosen = jnp.where(ended, PAD, jnp.argmax(logits, axis=-1))
            return number + 1, chosen, memory, answers.at[:, number].set(chosen)

        return jax.lax.while_loop(unfinished, step, (jnp.zeros((), int), first, memory, answers))[3]

    def generate_vmappable(
        self, codes: Codes, steps: TaskSteps | None = None, lengths: Int[Array, " task"] | None = None
    ) -> Int[Array, "task token"]:
        """`generate` as one loop even where a caller vmaps it over tasks.

        A vmapped loop runs until the last task has ended, and copies the memory of every task at every token. With all
        tasks as rows of one batch nothing is copied.
        """
        weights, static = eqx.partition(self, eqx.is_array)

        def run(weights: PyTree, codes: Array, steps: Array | None, lengths: Array | None) -> Array:
            return eqx.combine(weights, static).generate(codes, steps, lengths=lengths)

        batched_run = jax.custom_batching.custom_vmap(run)

        @batched_run.def_vmap
        def together(size: int, batched: PyTree, *given: Any) -> tuple[Array, bool]:
            if any(jax.tree.leaves(batched[0])):  # The networks differ: a stack of runs.
                axes = jax.tree.map(lambda is_batched: 0 if is_batched else None, tuple(batched))
                return jax.vmap(run, in_axes=axes)(*given), True
            rows = jax.tree.map(
                lambda leaf, is_batched: leaf if is_batched else jnp.broadcast_to(leaf, (size, *leaf.shape)),
                given[1:],
                tuple(batched[1:]),
            )
            rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)
            return run(given[0], *rows).reshape(size, -1, self.longest_answer), True

        return batched_run(weights, codes, steps, lengths)


def as_tokens(values: Float[Array, "*place"]) -> Int[Array, "*place"]:
    """Token numbers as integers; codes and inputs hold them as floats."""
    return jnp.round(values).astype(jnp.int32)


def token_indices(real: Bool[Array, "*row token"]) -> Int[Array, "*row token"]:
    """The index of each token among the real ones: pads take no position."""
    return jnp.maximum(jnp.cumsum(real, axis=-1) - 1, 0)


def flatten(stream: Float[Array, "*row token width"]) -> Float[Array, "sample _"]:
    """The stream of each row as one vector: a site."""
    return stream.reshape(-1, stream.shape[-2] * stream.shape[-1])


class SequenceModel(Model, abc.ABC):
    """The configuration of a sequence model."""

    autoregressive: ClassVar[bool] = True
    width: PositiveInt = 128
    """Units of the residual stream."""
    layers: PositiveInt = Field(default=2, le=1000)
    """Number of blocks; of the encoder and of the decoder each, where there are both."""
    heads: PositiveInt = 4
    """Attention heads of each block; each has an equal share of the width."""
    mlp_ratio: PositiveInt = 4
    """Hidden units of each block's MLP, as a multiple of the width."""
    tied_embeddings: bool = True
    """Whether tokens are read out by the matrix that embeds them."""

    @model_validator(mode="after")
    def _heads_fit(self) -> SequenceModel:
        if self.width % (2 * self.heads):
            raise ValueError(
                f"width={self.width} does not give each of heads={self.heads} an even number of units, which rotary "
                f"positions turn in pairs: choose a width that is a multiple of {2 * self.heads}"
            )
        return self
