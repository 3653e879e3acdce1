"""The structured baseline: the code generates the weights of a small network by a linear map."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.models.base import Edit, Model, Network, Trace, unedited
from recombine.models.mlp import Layer

EPSILON = 1e-6


def normed(code: Float[Array, " code"]) -> Float[Array, " code"]:
    """The code with mean zero and mean square one."""
    centred = code - jnp.mean(code)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2) + EPSILON)


def draw_generator(code_size: int, features: int, units: int, key: Array) -> Layer:
    """A map from codes to a layer's weights and biases, side by side: to (features + 1) x units numbers.

    Where the numbers of a code have mean square one, the weights have LeCun's variance. From a sparse code they are
    smaller at first, which does no harm: larger ones were tried and generalised less well.
    """
    weights = jax.random.normal(key, (code_size, features, units)) / (code_size * features) ** 0.5
    every = jnp.concatenate([weights, jnp.zeros((code_size, 1, units))], axis=1)
    return Layer(every.reshape(code_size, -1), jnp.zeros((features + 1) * units))


class HypernetworkNetwork(Network):
    """A perceptron of one hidden layer whose weights are affine in the code."""

    first: Layer
    second: Layer
    hidden: int = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True)

    def generated(self, code: Float[Array, " code"]) -> tuple[Layer, Layer]:
        """The two layers that a code stands for."""
        told = normed(code) if self.layer_norm else code

        def layer(generator: Layer, units: int) -> Layer:
            every = (told @ generator.weight + generator.bias).reshape(-1, units)
            return Layer(every[:-1], every[-1])

        outputs = self.second.bias.shape[0] // (self.hidden + 1)
        return layer(self.first, self.hidden), layer(self.second, outputs)

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        first, second = self.generated(code)
        hidden = edit("hidden 1", jax.nn.relu(inputs @ first.weight + first.bias))
        return hidden @ second.weight + second.bias, {"hidden 1": hidden}


class Hypernetwork(Model):
    """A linear generator of a perceptron with one hidden layer of `hidden` units."""

    kind: Literal["hypernetwork"] = "hypernetwork"
    hidden: PositiveInt = 64
    """Hidden units of the generated network."""
    layer_norm: bool = False
    """Whether the code is normed first, as in the literature. That forgets its scale: a module with coefficient .5 looks
    like one with 1. Useful for codes that are not task vectors; a hyperteacher cannot be written down behind it."""

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> HypernetworkNetwork:
        by_first, by_second = jax.random.split(key)
        return HypernetworkNetwork(
            first=draw_generator(code_size, input_size, self.hidden, by_first),
            second=draw_generator(code_size, self.hidden, output_size, by_second),
            hidden=self.hidden,
            layer_norm=self.layer_norm,
        )
