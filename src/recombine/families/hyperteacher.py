"""A network whose hidden layers are sums of the active modules' weights."""

from __future__ import annotations

import abc
import itertools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.families.base import Batch, Task, Teacher
from recombine.families.regression import RegressionFamily
from recombine.spaces.base import Space

Coefficients = Literal["discrete", "k-hot", "continuous"]

Readout = Float[Array, "hidden output"]

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

fan_in_normal = jax.nn.initializers.variance_scaling(
    3**0.5, "fan_in", "truncated_normal", in_axis=-2, out_axis=-1, batch_axis=()
)


class Modules(eqx.Module):
    """The weights and biases of several modules in one layer."""

    weights: Float[Array, "module feature hidden"]
    biases: Float[Array, "module hidden"]

    @staticmethod
    def draw(modules: int, features: int, hidden: int, bias: bool, key: Array) -> Modules:
        """Fresh modules; without `bias` their biases are zero."""
        by_weight, by_bias = jax.random.split(key)
        by_module = jax.random.split(by_weight, modules)
        weights = jax.vmap(lambda module_key: fan_in_normal(module_key, (features, hidden)))(by_module)
        biases = jax.random.uniform(by_bias, (modules, hidden), maxval=0.5)
        return Modules(weights, biases if bias else jnp.zeros_like(biases))

    def pick(self, row: Int[Array, " slots"]) -> Modules:
        """The modules of a combination. A pad picks an arbitrary module, with coefficient zero."""
        return Modules(self.weights.at[row].get(mode="clip"), self.biases.at[row].get(mode="clip"))


def draw_coefficients(law: Coefficients, slots: int, key: Array) -> Float[Array, " slots"]:
    """Coefficients of the active constituents. They are redrawn for every task."""
    if law == "discrete":
        index = jnp.floor(jax.random.uniform(key, (slots,)) * len(LEVELS)).astype(jnp.int32)
        return jnp.array(LEVELS)[index]
    if law == "continuous":
        return jax.random.uniform(key, (slots,), minval=LEVELS[0], maxval=LEVELS[-1])
    return jnp.ones(slots)


def draw_task(law: Coefficients, space: Space, row: Int[Array, " slots"], key: Array) -> Task:
    """A task of a combination, with fresh coefficients."""
    coefficients = jnp.where(row < space.width, draw_coefficients(law, space.slots, key), 0.0)
    return Task(row, coefficients, space.vector(row, coefficients))


def respond(
    layers: tuple[Modules, ...],
    readout: Readout,
    coefficients: Float[Array, " slots"],
    inputs: Float[Array, "sample _"],
) -> Float[Array, "sample output"]:
    """The teacher's output: in each layer the modules are summed by their coefficients; then comes the readout."""
    hidden = inputs
    for layer in layers:
        weight = jnp.einsum("s,sfh->fh", coefficients, layer.weights)
        hidden = jax.nn.relu(hidden @ weight + coefficients @ layer.biases)
    return hidden @ readout


class HyperteacherShape(RegressionFamily):
    """The configuration that the hyperteacher and its controls share."""

    inputs: PositiveInt = 16
    """Features of x, which is uniform in [-1, 1]."""
    hidden: PositiveInt = 16
    """Units of each hidden layer."""
    outputs: PositiveInt = 16
    """Features of y."""
    layers: PositiveInt = 1
    """Hidden layers. Each has separate modules."""
    coefficients: Coefficients = "discrete"
    """discrete: one of .5, .6, ..., 1; k-hot: 1; continuous: uniform in [.5, 1]."""
    bias: bool = True
    """Whether each module has a bias, uniform in [0, .5)."""

    @property
    def input_size(self) -> int:
        return self.inputs

    @property
    def output_size(self) -> int:
        return self.outputs

    @property
    def layer_shapes(self) -> tuple[tuple[int, int], ...]:
        """Features and units of each hidden layer."""
        sizes = [self.inputs] + [self.hidden] * self.layers
        return tuple(itertools.pairwise(sizes))

    def draw_modules(self, number: int, key: Array) -> tuple[tuple[Modules, ...], Readout]:
        """A number of modules for each layer, and a readout."""
        *by_layer, by_readout = jax.random.split(key, self.layers + 1)
        layers = tuple(
            Modules.draw(number, *shape, self.bias, layer_key)
            for shape, layer_key in zip(self.layer_shapes, by_layer, strict=True)
        )
        return layers, fan_in_normal(by_readout, (self.hidden, self.outputs))


class ShapedTeacher(Teacher):
    """The tasks and inputs that the hyperteacher and its controls share. They differ in the source of the modules."""

    space: Space = eqx.field(static=True)
    shape: HyperteacherShape = eqx.field(static=True)

    @abc.abstractmethod
    def modules(self, row: Int[Array, " slots"]) -> tuple[tuple[Modules, ...], Readout]:
        """The modules of a combination's slots in each layer, and the readout."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return draw_task(self.shape.coefficients, self.space, row, key)

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        inputs = jax.random.uniform(key, (samples, self.shape.inputs), minval=-1.0)
        layers, readout = self.modules(task.combination)
        # Divided by the root of the largest number of active modules, also when fewer are active.
        scaled = task.coefficients / self.space.slots**0.5
        return Batch(inputs, respond(layers, readout, scaled, inputs), jnp.ones(samples))


class HyperteacherTeacher(ShapedTeacher):
    """One set of modules for all combinations."""

    shared: tuple[Modules, ...]
    readout: Readout

    def modules(self, row: Int[Array, " slots"]) -> tuple[tuple[Modules, ...], Readout]:
        return tuple(layer.pick(row) for layer in self.shared), self.readout


class Hyperteacher(HyperteacherShape):
    """y = readout . relu(sum over active modules of coefficient x (weights x + bias))."""

    kind: Literal["hyperteacher"] = "hyperteacher"

    def draw(self, space: Space, key: Array) -> HyperteacherTeacher:
        shared, readout = self.draw_modules(space.width, key)
        return HyperteacherTeacher(space=space, shape=self, shared=shared, readout=readout)
