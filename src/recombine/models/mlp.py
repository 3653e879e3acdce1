"""A multi-layer perceptron on the concatenation of the code and the input."""

from __future__ import annotations

import itertools
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array
from pydantic import Field, PositiveInt, model_validator

from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.layers import Linear


class MLPNetwork(Network):
    """ReLU layers, then an affine readout."""

    layers: tuple[Linear, ...]

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        first, *middle, last = self.layers
        # concat(code, x) @ W, with the code's part computed once per task instead of once per example.
        of_code = code @ first.weight[: code.shape[0]] + first.bias
        hidden = jax.nn.relu(inputs @ first.weight[code.shape[0] :] + of_code)
        hidden = edit("hidden 1", hidden)
        sites = {"hidden 1": hidden}
        for number, layer in enumerate(middle, start=2):
            hidden = edit(f"hidden {number}", jax.nn.relu(layer(hidden)))
            sites[f"hidden {number}"] = hidden
        return last(hidden), sites

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The examples of all tasks are the rows of one matrix: with a task axis the gradients of the weights are slower.
        first, *middle, last = self.layers
        of_code = codes @ first.weight[: codes.shape[1]] + first.bias
        rows = inputs.reshape(-1, inputs.shape[-1])
        hidden = rows @ first.weight[codes.shape[1] :] + jnp.repeat(of_code, inputs.shape[1], axis=0)
        hidden = jax.nn.relu(hidden)
        for layer in middle:
            hidden = jax.nn.relu(layer(hidden))
        return last(hidden).reshape(*inputs.shape[:2], -1)


class MLP(Model):
    """A ReLU network with `depth` hidden layers of `width` units, or with a list of `widths`."""

    kind: Literal["mlp"] = "mlp"
    width: PositiveInt = 256
    """Units of each hidden layer."""
    depth: PositiveInt = Field(default=4, le=1000)
    """Number of hidden layers."""
    widths: tuple[PositiveInt, ...] | None = Field(default=None, min_length=1)
    """Units of each hidden layer in turn; instead of width and depth."""

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

    def stack_size(self) -> int:
        # Measured on two cores (docs/performance.md): stacks gain nothing with Muon and little with Adam. An accelerator
        # should be hardly busy with products this small; that is not measured yet.
        return 1 if jax.default_backend() == "cpu" else 8

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> MLPNetwork:
        sizes = (code_size + input_size, *self.hidden, output_size)
        keys = jax.random.split(key, len(sizes) - 1)
        shapes = zip(itertools.pairwise(sizes), keys, strict=True)
        return MLPNetwork(tuple(Linear.draw(*shape, layer_key) for shape, layer_key in shapes))
