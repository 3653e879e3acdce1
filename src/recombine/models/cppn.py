"""A dense network with the layers of an evolved one: with its weights, or with random weights and its architecture."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import NonNegativeFloat

from recombine.cppn.genome import ACTIVATIONS
from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family, Teacher
from recombine.families.picture import Picture, PictureTeacher
from recombine.models.base import Code, Edit, Inputs, Model, Network, Traced, unedited

IDENTITY, SIN, COS, TANH, SIGMOID, GAUSSIAN = map(
    ACTIVATIONS.index, ("identity", "sin", "cos", "tanh", "sigmoid", "gaussian")
)


def activate(values: Float[Array, "sample unit"], kinds: Int[Array, " unit"]) -> Float[Array, "sample unit"]:
    """Apply each unit's own activation. Three functions serve all: cos is a shifted sin, and sigmoid a slower tanh."""
    wave = jnp.sin(values + jnp.where(kinds == COS, jnp.pi / 2, 0.0))
    squashed = jnp.tanh(values * jnp.where(kinds == SIGMOID, 0.5, 1.0))
    bump = 2 * jnp.exp(-(values**2)) - 1
    periodic, bounded = (kinds == SIN) | (kinds == COS), (kinds == TANH) | (kinds == SIGMOID)
    return jnp.where(periodic, wave, jnp.where(bounded, squashed, jnp.where(kinds == GAUSSIAN, bump, values)))


class CPPNNetwork(Network):
    """Layers of one width without biases, as one input is always 1. The code is not read. Sites: `hidden 1` and so on."""

    layers: tuple[Float[Array, "_ unit"], ...]
    readout: Float[Array, "unit output"]
    activations: Int[Array, " unit"]
    units: Bool[Array, " unit"]
    """Which units of a layer exist."""
    depth: Int[Array, ""]
    """How many layers exist; those beyond pass on what they get."""
    relu: bool = eqx.field(static=True)
    sparsity: float = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        sites, hidden = {}, inputs
        for number, weights in enumerate(self.layers, start=1):
            totals = hidden @ weights
            new = self.units * (jax.nn.relu(totals) if self.relu else activate(totals, self.activations))
            hidden = new if number == 1 else jnp.where(number <= self.depth, new, hidden)
            hidden = sites[f"hidden {number}"] = edit(f"hidden {number}", hidden)
        return hidden @ self.readout, sites

    def penalty(self) -> Float[Array, ""] | None:
        if not self.sparsity:
            return None
        return self.sparsity * sum(
            (jnp.sum(jnp.abs(weights)) for weights in (*self.layers, self.readout)), jnp.zeros(())
        )


class CPPN(Model):
    """The dense network of an evolved picture: its own weights, or random ones in the same layers with the same activations."""

    kind: Literal["cppn"] = "cppn"
    weights: Literal["evolved", "random"] = "random"
    """Whose weights: those that the search found, or LeCun-normal ones."""
    relu: bool = False
    """Whether every unit is a ReLU, in place of the activations of the evolved network."""
    sparsity: NonNegativeFloat = 0.0
    """The weight of the sum of all absolute weights beside the loss."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if not isinstance(family, Picture):
            raise BadInput(f"The model 'cppn' draws pictures; the family is {family.kind!r}.", fix="family=picture")
        if self.relu and self.weights == "evolved":
            raise BadInput("Evolved weights go with the activations they evolved with.", fix="model.relu=false")

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        raise BadInput("The model 'cppn' takes its layers from a picture.", fix="use it in a run with family=picture")

    def build(self, teacher: Teacher, code_size: int, input_size: int, output_size: int, key: Array) -> CPPNNetwork:
        if not isinstance(teacher, PictureTeacher):
            raise BadInput(f"The model 'cppn' is built from a picture, not from {teacher!r}.", fix="family=picture")
        layers, readout = (teacher.first, *teacher.middle), teacher.readout
        if self.weights == "random":
            keys = jax.random.split(key, len(layers) + 1)
            number = jnp.sum(teacher.units)
            both = teacher.units[:, None] & teacher.units
            masks = (jnp.broadcast_to(teacher.units, teacher.first.shape), *[both] * len(teacher.middle))
            fan_in = (teacher.first.shape[0], *[number] * len(teacher.middle))
            layers = tuple(
                jnp.where(mask & (layer < teacher.depth), jax.random.normal(each, mask.shape) / jnp.sqrt(size), 0.0)
                for layer, (mask, size, each) in enumerate(zip(masks, fan_in, keys[1:], strict=True))
            )
            drawn = jax.random.normal(keys[0], readout.shape) / jnp.sqrt(number)
            readout = jnp.where(teacher.units[:, None], drawn, 0.0)
        return CPPNNetwork(layers, readout, teacher.activations, teacher.units, teacher.depth, self.relu, self.sparsity)

    def inherit(self, network: Network, parents: Sequence[Network]) -> Network:
        parent = super().inherit(network, parents)
        assert isinstance(parent, CPPNNetwork)
        # The weights are the parent's, the penalty is this run's.
        return dataclasses.replace(parent, relu=self.relu, sparsity=self.sparsity)
