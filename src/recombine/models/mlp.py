"""A plain multi-layer perceptron on the code and the input, side by side."""

from __future__ import annotations

import itertools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field, PositiveInt, model_validator

from recombine.models.base import Edit, Model, Network, Trace, unedited

lecun_normal = jax.nn.initializers.lecun_normal()


class Layer(eqx.Module):
    """An affine map."""

    weight: Float[Array, "feature unit"]
    bias: Float[Array, " unit"]


class MLPNetwork(Network):
    """ReLU layers, then an affine readout."""

    layers: tuple[Layer, ...]

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        first, *middle, last = self.layers
        # concat(code, x) @ W, with the code's part computed once a task instead of once an example.
        told = code @ first.weight[: code.shape[0]] + first.bias
        hidden = jax.nn.relu(inputs @ first.weight[code.shape[0] :] + told)
        hidden = edit("hidden 1", hidden)
        sites = {"hidden 1": hidden}
        for number, layer in enumerate(middle, start=2):
            hidden = edit(f"hidden {number}", jax.nn.relu(hidden @ layer.weight + layer.bias))
            sites[f"hidden {number}"] = hidden
        return hidden @ last.weight + last.bias, sites

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        # The examples of all tasks as the rows of one matrix: with a task axis the gradients of the weights are slower.
        first, *middle, last = self.layers
        told = codes @ first.weight[: codes.shape[1]] + first.bias
        rows = inputs.reshape(-1, inputs.shape[-1])
        hidden = rows @ first.weight[codes.shape[1] :] + jnp.repeat(told, inputs.shape[1], axis=0)
        hidden = jax.nn.relu(hidden)
        for layer in middle:
            hidden = jax.nn.relu(hidden @ layer.weight + layer.bias)
        return (hidden @ last.weight + last.bias).reshape(*inputs.shape[:2], -1)


class MLP(Model):
    """`depth` hidden layers of `width` units, or a list of `widths`."""

    kind: Literal["mlp"] = "mlp"
    width: PositiveInt = 256
    """Units of each hidden layer."""
    depth: PositiveInt = 4
    """Number of hidden layers."""
    widths: tuple[PositiveInt, ...] | None = Field(default=None, min_length=1)
    """Units of each hidden layer, one by one; instead of width and depth."""

    @model_validator(mode="after")
    def _one_of(self) -> MLP:
        defaults = (type(self).model_fields["width"].default, type(self).model_fields["depth"].default)
        if self.widths is not None and (self.width, self.depth) != defaults:
            raise ValueError("give either widths or width and depth, not both")
        return self

    @property
    def hidden(self) -> tuple[int, ...]:
        """The units of each hidden layer."""
        return self.widths or (self.width,) * self.depth

    def lanes(self) -> int:
        # Measured on two cores (docs/performance.md): stacks gain nothing with Muon and little with Adam. An accelerator
        # should be hardly busy with products this small; that is not measured yet.
        return 1 if jax.default_backend() == "cpu" else 8

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> MLPNetwork:
        sizes = (code_size + input_size, *self.hidden, output_size)
        keys = jax.random.split(key, len(sizes) - 1)
        layers = tuple(
            Layer(lecun_normal(one, (features, units)), jnp.zeros(units))
            for one, (features, units) in zip(keys, itertools.pairwise(sizes), strict=True)
        )
        return MLPNetwork(layers)
