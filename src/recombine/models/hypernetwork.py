"""The structured baseline: the code generates the weights of a small network by a linear map."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.models.base import Code, Edit, Inputs, Model, Network, Traced, unedited
from recombine.models.layers import Linear, layer_norm


def draw_generator(code_size: int, features: int, units: int, key: Array) -> Linear:
    """A linear map from a code to the weights and biases of a layer, (features + 1) x units numbers.

    Weights have LeCun's variance where a code has mean square one. From a sparse code they are smaller at first: larger
    ones were tried and generalised less well.
    """
    weights = jax.random.normal(key, (code_size, features, units)) / (code_size * features) ** 0.5
    with_biases = jnp.concatenate([weights, jnp.zeros((code_size, 1, units))], axis=1)
    return Linear(with_biases.reshape(code_size, -1), jnp.zeros((features + 1) * units))


class HypernetworkNetwork(Network):
    """An MLP with one hidden layer whose weights are affine in the code."""

    first: Linear
    second: Linear
    hidden: int = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True)

    def generated(self, code: Code) -> tuple[Linear, Linear]:
        """The two layers that are generated from a code."""
        code = layer_norm(code) if self.layer_norm else code

        def layer(generator: Linear, units: int) -> Linear:
            parameters = generator(code).reshape(-1, units)
            return Linear(parameters[:-1], parameters[-1])

        outputs = self.second.bias.shape[0] // (self.hidden + 1)
        return layer(self.first, self.hidden), layer(self.second, outputs)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        first, second = self.generated(code)
        hidden = edit("hidden 1", jax.nn.relu(first(inputs)))
        return second(hidden), {"hidden 1": hidden}


class Hypernetwork(Model):
    """A linear map from the code generates the weights of an MLP with one hidden layer."""

    kind: Literal["hypernetwork"] = "hypernetwork"
    hidden: PositiveInt = 64
    """Hidden units of the generated network."""
    layer_norm: bool = False
    """Whether the code is layer-normed first, as in the literature. This removes its scale: a module with coefficient .5
    looks like one with 1, so the network cannot represent a hyperteacher exactly. Useful for codes that are not task
    vectors."""

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> HypernetworkNetwork:
        by_first, by_second = jax.random.split(key)
        return HypernetworkNetwork(
            first=draw_generator(code_size, input_size, self.hidden, by_first),
            second=draw_generator(code_size, self.hidden, output_size, by_second),
            hidden=self.hidden,
            layer_norm=self.layer_norm,
        )
