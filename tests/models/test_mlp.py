"""The multi-layer perceptron, against numpy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.models.mlp import MLP, MLPNetwork

CODE, INPUTS, OUTPUTS, SAMPLES = 5, 4, 3, 6


def forward(network: MLPNetwork, code: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Every layer's values on concat(code, x), sample by sample in double precision; the last is the output."""
    values = [np.concatenate([np.tile(code, (len(inputs), 1)), inputs], axis=1).astype(float)]
    for number, layer in enumerate(network.layers):
        after = values[-1] @ np.asarray(layer.weight, float) + np.asarray(layer.bias, float)
        values.append(after if number == len(network.layers) - 1 else np.maximum(after, 0))
    return values[1:]


def with_biases(network: MLPNetwork) -> MLPNetwork:
    """Biases start at zero, where a mistake with them would not be seen."""
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(9), leaf.shape), network)


def drawn(model: MLP, seed: int = 0) -> MLPNetwork:
    return model.draw(CODE, INPUTS, OUTPUTS, jax.random.key(seed))


def example(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=CODE).astype(np.float32), rng.normal(size=(SAMPLES, INPUTS)).astype(np.float32)


@pytest.mark.parametrize(
    "model", [MLP(width=7, depth=1), MLP(width=7, depth=3), MLP(widths=(8, 2, 6))], ids=["1", "3", "widths"]
)
def test_equals_numpy_at_every_site(model: MLP):
    network = with_biases(drawn(model))
    code, inputs = example()
    *hidden, output = forward(network, code, inputs)
    found, trace = network.trace(jnp.asarray(code), jnp.asarray(inputs))
    np.testing.assert_allclose(found, output, rtol=1e-5, atol=1e-6)
    assert list(trace) == [f"hidden {number}" for number in range(1, len(model.hidden) + 1)]
    for values, wanted, units in zip(trace.values(), hidden, model.hidden, strict=True):
        assert values.shape == (SAMPLES, units)
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(network(jnp.asarray(code), jnp.asarray(inputs)), found)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 2**16), st.integers(0, 2**16))
def test_splitting_the_first_layer_equals_concatenation(weights: int, data: int):
    network = with_biases(drawn(MLP(width=7, depth=2), weights))
    code, inputs = example(data)
    first, *rest = network.layers
    joined = np.concatenate([np.tile(code, (SAMPLES, 1)), inputs], axis=1)
    hidden = jax.nn.relu(joined @ first.weight + first.bias)
    for layer in rest[:-1]:
        hidden = jax.nn.relu(hidden @ layer.weight + layer.bias)
    wanted = hidden @ rest[-1].weight + rest[-1].bias
    np.testing.assert_allclose(network(jnp.asarray(code), jnp.asarray(inputs)), wanted, rtol=1e-4, atol=1e-5)


def test_first_weights_are_lecun_normal():
    network = MLP(widths=(300, 200)).draw(40, 60, 100, jax.random.key(0))
    for layer, fan_in in zip(network.layers, (100, 300, 200), strict=True):
        weight = np.asarray(layer.weight)
        assert weight.shape[0] == fan_in
        assert weight.var() == pytest.approx(1 / fan_in, rel=0.04)
        assert abs(weight.mean()) < 4 * np.sqrt(1 / fan_in / weight.size)
        assert not np.any(layer.bias)


def test_layers_and_keys_are_independent():
    network = MLP(width=9, depth=3).draw(4, 5, 9, jax.random.key(0))
    other = MLP(width=9, depth=3).draw(4, 5, 9, jax.random.key(1))
    weights = [np.asarray(layer.weight) for layer in (*network.layers, *other.layers)]
    for index, one in enumerate(weights):
        assert all(not np.intersect1d(one, two).size for two in weights[index + 1 :])
    again = MLP(width=9, depth=3).draw(4, 5, 9, jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, network, again)


def test_a_trace_that_nobody_asks_for_costs_nothing():
    """The compiled program of `network(code, x)` is that of a network which has no trace."""
    network = drawn(MLP(width=32, depth=3))
    code, inputs = (jnp.asarray(part) for part in example())

    def plain(network: MLPNetwork, code: jax.Array, inputs: jax.Array) -> jax.Array:
        first, *middle, last = network.layers
        told = code @ first.weight[: code.shape[0]] + first.bias
        hidden = jax.nn.relu(inputs @ first.weight[code.shape[0] :] + told)
        for layer in middle:
            hidden = jax.nn.relu(hidden @ layer.weight + layer.bias)
        return hidden @ last.weight + last.bias

    def cost(function: Any) -> tuple[dict[str, float], int]:
        compiled = jax.jit(function).lower(network, code, inputs).compile()
        return compiled.cost_analysis(), compiled.memory_analysis().output_size_in_bytes

    mine = cost(lambda network, code, inputs: network(code, inputs))
    assert mine == cost(plain)
    asked = cost(lambda network, code, inputs: network.trace(code, inputs))
    assert asked[1] >= mine[1] + 3 * SAMPLES * 32 * 4, "this test would see a trace"


def test_the_code_enters_once_a_task():
    """The product of code and weights does not grow with the number of examples."""
    network = MLP(width=8, depth=1).draw(512, 2, 1, jax.random.key(0))

    def flops(samples: int) -> float:
        shapes = jnp.zeros(512), jnp.zeros((samples, 2))
        return jax.jit(lambda *given: network(*given)).lower(*shapes).compile().cost_analysis()["flops"]

    assert flops(64) < 2 * flops(1)


def test_widths_and_width_exclude_each_other():
    with pytest.raises(ValidationError, match="either widths or width"):
        MLP(widths=(4, 4), width=8)
    with pytest.raises(ValidationError, match="either widths or width"):
        MLP(widths=(4, 4), depth=3)
    assert MLP(width=8, depth=3).hidden == (8, 8, 8)
    assert MLP(widths=(8, 4)).hidden == (8, 4)


@pytest.mark.parametrize("bad", [{"widths": ()}, {"widths": (4, 0)}, {"width": 0}, {"depth": 0}, {"wide": 3}])
def test_senseless_sizes_are_refused(bad: dict[str, Any]):
    with pytest.raises(ValidationError):
        MLP(**bad)


@pytest.mark.parametrize("model", [MLP(), MLP(width=8, depth=2), MLP(widths=(8, 4)), MLP(widths=(256,) * 4)])
def test_reloads_from_its_own_dump(model: MLP):
    assert MLP.model_validate(model.model_dump(mode="json")) == model
    assert MLP.model_validate_json(model.model_dump_json()) == model
