"""A network whose weights are fixed and switched on or off: pruning by continuous sparsification finds its subnetworks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from pydantic import Field, NonNegativeFloat, PositiveFloat

from recombine.component import field
from recombine.errors import BadInput
from recombine.models.base import Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.mlp import MLP

Tree = TypeVar("Tree")

Part = Literal["soft", "subnetwork", "ablated"]
"""Weights times soft masks, as in training; only the weights that are kept; only the others."""


class MaskedNetwork(Network):
    """A network times masks. A weight is kept where the logit of its mask is positive."""

    network: Network
    """With the weights of the parent; they are not trained."""
    masks: PyTree
    """One logit per weight of each matrix; None for leaves that are not masked."""
    temperature: Float[Array, ""]
    """The slope of the sigmoid. It grows in training, until masks are nearly 0 or 1."""
    highest: float = eqx.field(static=True)
    weight: float = eqx.field(static=True)

    def soft(self) -> PyTree:
        """The masks, between 0 and 1."""
        return jax.tree.map(lambda logit: jax.nn.sigmoid(self.temperature * logit), self.masks)

    def kept(self) -> PyTree:
        """Which weights are kept."""
        return jax.tree.map(lambda logit: logit > 0, self.masks)

    def part(self, part: Part = "soft") -> Network:
        """The network with soft masks, the subnetwork of kept weights, or the network without them."""
        if part == "soft":
            return times(self.network, self.soft())
        return times(self.network, jax.tree.map(lambda kept: kept == (part == "subnetwork"), self.kept()))

    def share(self) -> Float[Array, ""]:
        """The share of masked weights that are kept."""
        return mean(self.kept())

    def trace(self, code: Any, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self.part().trace(code, inputs, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        return self.part().tasks(codes, inputs)

    def advanced(self, done: Float[Array, ""] | float) -> Network:
        return eqx.tree_at(
            lambda network: network.temperature, self, jnp.asarray(self.highest**done, self.temperature.dtype)
        )

    def penalty(self) -> Float[Array, ""]:
        return self.weight * mean(self.soft())


def mean(masks: PyTree) -> Float[Array, ""]:
    """The mean over all masks."""
    leaves = jax.tree.leaves(masks)
    return jnp.sum(jnp.stack([jnp.sum(leaf) for leaf in leaves])) / sum(leaf.size for leaf in leaves)


def times(network: Tree, masks: PyTree) -> Tree:
    """A network (or any module) with each masked weight times its mask."""
    return jax.tree.map(
        lambda mask, leaf: leaf if mask is None else leaf * mask.astype(leaf.dtype),
        masks,
        network,
        is_leaf=lambda leaf: leaf is None,
    )


def logits_for(network: PyTree, start: float) -> PyTree:
    """The first logits: one per entry of every matrix, kernel and so on; biases and scales are not masked."""
    return jax.tree.map(
        lambda leaf: jnp.full(leaf.shape, start) if eqx.is_inexact_array(leaf) and leaf.ndim > 1 else None, network
    )


class Masked(Model):
    """The trained network of a parent run, with one mask per weight; only the masks are trained.

    Continuous sparsification (Savarese et al. 2020): a mask is the sigmoid of a logit times a temperature that grows
    exponentially in training, and the mean of all masks is added to the loss. A weight is kept where its logit ends above
    zero.
    """

    kind: Literal["masked"] = "masked"
    trained: ClassVar[tuple[str, ...]] = ("*masks.*",)
    model: field("models", Model) = MLP()  # type: ignore[valid-type]
    """The model of the parent."""
    start: float = 0.05
    """The first logit of every mask. Above zero: training begins with the whole network."""
    temperature: PositiveFloat = Field(default=200.0, ge=1)
    """The temperature at the end; it is 1 at the beginning."""
    weight: NonNegativeFloat = 0.05
    """The weight of the penalty, the mean of all masks, beside the loss."""

    def check(self, family: Any, encoding: Any, samples: int) -> None:
        self.model.check(family, encoding, samples)
        if self.model.autoregressive:
            fix = "mask a model that does not generate tokens one after another"
            raise BadInput(f"The model {self.model.kind!r} cannot be masked.", fix=fix)

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> MaskedNetwork:
        network = self.model.draw(code_size, input_size, output_size, key)
        return MaskedNetwork(network, logits_for(network, self.start), jnp.ones(()), self.temperature, self.weight)

    def inherit(self, network: Network, parents: Sequence[Network]) -> Network:
        assert isinstance(network, MaskedNetwork)
        return eqx.tree_at(lambda masked: masked.network, network, self.model.inherit(network.network, parents))
