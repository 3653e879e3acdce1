"""Experts on a trained network: one scale per singular value of each matrix, or low-rank factors (LoRA); and mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree
from pydantic import PositiveInt

from recombine.component import field
from recombine.errors import BadInput
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.decoder import Decoder
from recombine.models.layers import lecun_normal
from recombine.models.sequence import Embedding, Memory, RowSteps, SequenceModel, SequenceNetwork, Steps, TaskSteps

Matrix = Float[Array, "row column"]


class SingularValues(eqx.Module):
    """A matrix is left @ diag(values) @ right. Only the scales of its singular values are trained; they begin as ones."""

    left: Float[Array, "row value"]
    """Left singular vectors, each times its singular value."""
    right: Float[Array, "value column"]
    """Right singular vectors."""
    scales: Float[Array, " value"]

    @staticmethod
    def of(matrix: Matrix) -> SingularValues:
        """The decomposition of a matrix, with scales of one."""
        left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
        return SingularValues(left * values, right, jnp.ones_like(values))

    def change(self) -> Matrix:
        """What is added to the matrix. It is exactly zero where all scales are one."""
        return (self.left * (self.scales - 1)) @ self.right


class LowRank(eqx.Module):
    """Two factors whose product is added to a matrix (LoRA). The second begins as zeros, so nothing is added at first."""

    scales_in: Float[Array, "row rank"]
    scales_out: Float[Array, "rank column"]

    @staticmethod
    def of(matrix: Matrix, rank: int, key: Array) -> LowRank:
        """Fresh factors for a matrix."""
        rows, columns = matrix.shape
        return LowRank(lecun_normal(key, (rows, rank)), jnp.zeros((rank, columns)))

    def change(self) -> Matrix:
        """What is added to the matrix."""
        return self.scales_in @ self.scales_out


Adapter = SingularValues | LowRank


def is_adapter(node: object) -> bool:
    """Whether this node of a tree belongs to one matrix."""
    return isinstance(node, SingularValues | LowRank)


class ExpertNetwork(SequenceNetwork):
    """A base with one or several experts. Each expert adds a change to every matrix of the base, times the expert's weight."""

    network: SequenceNetwork
    """The base without its embedding, which is `embedding`."""
    experts: tuple[PyTree, ...]
    """Of each expert, one adapter per matrix; None for what is no matrix."""
    weights: Float[Array, " expert"]
    """How much of each expert is added: 1 for the whole expert, 0 for none of it."""

    def base(self) -> SequenceNetwork:
        """The network without experts."""
        return eqx.tree_at(
            lambda network: network.embedding, self.network, self.embedding, is_leaf=lambda leaf: leaf is None
        )

    def merged(self) -> SequenceNetwork:
        """The base plus the changes of all experts, as a network of the base's kind."""
        changes = [
            jax.tree.map(lambda adapter: adapter.change(), expert, is_leaf=is_adapter) for expert in self.experts
        ]

        def with_changes(leaf: Any, *own: Any) -> Any:
            return leaf if own[0] is None else leaf + sum(w * each for w, each in zip(self.weights, own, strict=True))

        network = jax.tree.map(with_changes, self.network, *changes, is_leaf=lambda leaf: leaf is None)
        return eqx.tree_at(lambda merged: merged.embedding, network, self.embedding, is_leaf=lambda leaf: leaf is None)

    def weighted(self, weights: Float[Array, " expert"]) -> ExpertNetwork:
        """The same experts with other weights."""
        return eqx.tree_at(lambda network: network.weights, self, jnp.asarray(weights, self.weights.dtype))

    # Matrices are merged once per call, not once per token.

    def hidden_states(
        self, prompts: Int[Array, "row word"], shown: Int[Array, "row token"], steps: RowSteps, edit: Edit
    ) -> tuple[Float[Array, "row token width"], dict[str, Array]]:
        return self.merged().hidden_states(prompts, shown, steps, edit)

    def prefill(self, prompt: Int[Array, " word"], steps: Steps) -> Memory:
        return self.merged().prefill(prompt, steps)

    def next_logits(
        self, memory: Memory, token: Int[Array, ""], number: Int[Array, ""], steps: Steps
    ) -> tuple[Float[Array, " vocabulary"], Memory]:
        return self.merged().next_logits(memory, token, number, steps)

    def trace_at(self, code: Code, inputs: Inputs, steps: Steps, edit: Edit = unedited) -> Traced:
        return self.merged().trace_at(code, inputs, steps, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs, steps: TaskSteps | None = None) -> TaskOutputs:
        return self.merged().tasks(codes, inputs, steps)

    def generate(
        self,
        codes: Codes,
        steps: TaskSteps | None = None,
        key: Array | None = None,
        lengths: Int[Array, " task"] | None = None,
    ) -> Int[Array, "task token"]:
        return self.merged().generate(codes, steps, key, lengths)


def matrices(network: PyTree) -> PyTree:
    """The matrices of a network; None for all else."""
    return jax.tree.map(lambda leaf: leaf if eqx.is_inexact_array(leaf) and leaf.ndim == 2 else None, network)


def trained_parameters(network: ExpertNetwork) -> int:
    """The number of parameters that are trained of the experts of a network."""
    adapters = jax.tree.leaves(network.experts, is_leaf=is_adapter)
    return sum(
        each.scales.size if isinstance(each, SingularValues) else each.scales_in.size + each.scales_out.size
        for each in adapters
    )


class Expert(Model):
    """The trained network of a parent run, and on each of its matrices an adapter; only the adapters are trained.

    Singular value fine-tuning (Sun et al. 2025): W = U S V', and one scale per singular value is trained. The comparison is LoRA:
    two factors of low rank whose product is added to W. The embedding is left as it is. With several `experts` the network is a
    mixture: the parents are that many experts on one base, and the matrices are the base's plus the mean of the experts' changes.
    """

    kind: Literal["expert"] = "expert"
    autoregressive: ClassVar[bool] = True
    trained: ClassVar[tuple[str, ...]] = ("experts.*scales*",)
    model: field("models", Model) = Decoder()  # type: ignore[valid-type]
    """The model of the base."""
    adapter: Literal["singular-values", "low-rank"] = "singular-values"
    """What is trained of each matrix."""
    rank: PositiveInt = 16
    """The rank of low-rank factors."""
    experts: PositiveInt = 1
    """Experts that are mixed. With more than one, the parents are experts."""

    def check(self, family: Any, encoding: Any, samples: int) -> None:
        self.model.check(family, encoding, samples)
        if not isinstance(self.model, SequenceModel):
            raise BadInput(
                f"An expert is for a model that answers in tokens, and {self.model.kind!r} does not.",
                fix="model.model=decoder, with the settings of the parent's model",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> ExpertNetwork:
        by_base, by_expert = jax.random.split(key)
        base = self.model.draw(code_size, input_size, output_size, by_base)
        assert isinstance(base, SequenceNetwork)
        return self._on(base, by_expert)

    def _on(self, base: SequenceNetwork, key: Array) -> ExpertNetwork:
        """Fresh experts on a base."""
        embedding: Embedding = base.embedding
        network = eqx.tree_at(lambda network: network.embedding, base, None)
        leaves, structure = jax.tree.flatten(matrices(network))

        def expert(key: Array) -> PyTree:
            keys = jax.random.split(key, len(leaves))
            adapters = [
                SingularValues.of(matrix) if self.adapter == "singular-values" else LowRank.of(matrix, self.rank, own)
                for matrix, own in zip(leaves, keys, strict=True)
            ]
            return jax.tree.unflatten(structure, adapters)

        members = tuple(map(expert, jax.random.split(key, self.experts)))
        weights = jnp.full(self.experts, 1 / self.experts)
        return ExpertNetwork(embedding, base.longest_answer, base.head_size, network, members, weights)

    def inherit(self, network: Network, parents: Sequence[Network]) -> Network:
        assert isinstance(network, ExpertNetwork)
        if self.experts > 1:
            return self._mixture(network, parents)
        # An expert on an expert: the first one becomes part of the base.
        bases = [parent.merged() if isinstance(parent, ExpertNetwork) else parent for parent in parents]
        base = self.model.inherit(network.base(), bases)
        assert isinstance(base, SequenceNetwork)
        if self.adapter == "low-rank":
            kept = eqx.tree_at(lambda outer: outer.embedding, network, base.embedding)
            return eqx.tree_at(
                lambda outer: outer.network, kept, eqx.tree_at(lambda inner: inner.embedding, base, None)
            )
        return self._on(base, jax.random.key(0))  # Nothing of this expert is drawn.

    def _mixture(self, network: ExpertNetwork, parents: Sequence[Network]) -> ExpertNetwork:
        experts = [parent for parent in parents if isinstance(parent, ExpertNetwork) and len(parent.experts) == 1]
        if len(experts) != self.experts or len(parents) != self.experts:
            raise BadInput(
                f"A mixture of {self.experts} experts needs as many experts as parents; {len(parents)} parents are given, "
                f"{len(experts)} of them experts.",
                fix=f"parents: {self.experts} runs with model=expert on one base",
            )
        first = experts[0]
        members = tuple(expert.experts[0] for expert in experts)
        return ExpertNetwork(
            first.embedding, first.longest_answer, first.head_size, first.network, members, network.weights
        )
