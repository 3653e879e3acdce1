"""The hypernetwork, against numpy; and that its structure lets it compose from few combinations."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.families.hyperteacher import Hyperteacher
from recombine.models.base import Model
from recombine.models.hypernetwork import Hypernetwork, HypernetworkNetwork
from recombine.models.layers import Linear, layer_norm
from recombine.models.mlp import MLP
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.trainer import train

CODE, INPUTS, OUTPUTS, SAMPLES, HIDDEN = 5, 4, 3, 6, 7


def drawn(layer_norm: bool = False) -> HypernetworkNetwork:
    """Biases start at zero, where a mistake with them would not be seen."""
    model = Hypernetwork(hidden=HIDDEN, layer_norm=layer_norm)

    @jax.jit
    def draw(key: jax.Array) -> HypernetworkNetwork:
        network = model.draw(CODE, INPUTS, OUTPUTS, key)
        return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(key, leaf.shape), network)

    return draw(jax.random.key(0))


def example() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=CODE).astype(np.float32), rng.normal(size=(SAMPLES, INPUTS)).astype(np.float32)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_equals_numpy(layer_norm: bool):
    network, (code, inputs) = drawn(layer_norm), example()
    told = (code - code.mean()) / code.std() if layer_norm else code
    weights = []
    for layer, features, units in ((network.first, INPUTS, HIDDEN), (network.second, HIDDEN, OUTPUTS)):
        flat = np.asarray(layer.bias, float) + sum(
            number * np.asarray(row, float) for number, row in zip(told, layer.weight, strict=True)
        )
        assert flat.shape == ((features + 1) * units,)
        weights.append((flat[: features * units].reshape(features, units), flat[features * units :]))
    hidden = np.maximum(inputs @ weights[0][0] + weights[0][1], 0)
    outputs, sites = jax.jit(lambda *given: network.trace(*given))(code, inputs)
    np.testing.assert_allclose(outputs, hidden @ weights[1][0] + weights[1][1], rtol=1e-4, atol=1e-5)
    assert list(sites) == ["hidden 1"]
    np.testing.assert_allclose(sites["hidden 1"], hidden, rtol=1e-4, atol=1e-5)


def test_first_generated_weights_have_lecun_scale():
    model = Hypernetwork(hidden=64, layer_norm=True)
    make = jax.jit(lambda code: model.draw(8, 30, 20, jax.random.key(0)).generated(code))
    for code in np.random.default_rng(0).normal(size=(3, 8)):
        for layer, fan_in in zip(make(code), (30, 64), strict=True):
            assert layer.weight.shape[0] == fan_in
            assert np.var(layer.weight) == pytest.approx(1 / fan_in, rel=0.15)
            assert not np.any(layer.bias)


def test_the_layer_norm_forgets_scale_and_bears_any_code():
    """K-hot codes of any size, an empty one and one that is constant."""
    for code in ([1.0, 0, 0, 0], [1.0, 1, 0, 0], [0.5, 0, 0, 0], [0.0] * 4, [1.0] * 4, [1.0]):
        told = layer_norm(jnp.array(code))
        assert np.isfinite(told).all()
        assert np.mean(told) == pytest.approx(0, abs=1e-6)
        if np.ptp(code):
            assert np.mean(told**2) == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(layer_norm(jnp.array([0.5, 0, 0])), layer_norm(jnp.array([1.0, 0, 0])), rtol=1e-3)


def test_it_can_be_a_hyperteacher():
    """Without the norm the teacher's weights can be written into it: the baseline that may succeed."""
    space = SubsetSpace(modules=5, max_active=2)
    family = Hyperteacher(inputs=4, hidden=6, outputs=3)
    teacher = eqx.filter_jit(family.draw)(space, jax.random.key(0))
    (modules,) = teacher.shared
    blank = Hypernetwork(hidden=6).draw(5, 4, 3, jax.random.key(0))
    every = jnp.concatenate([modules.weights, modules.biases[:, None]], axis=1) / space.slots**0.5
    second = jnp.zeros_like(blank.second.weight), jnp.append(teacher.readout.ravel(), jnp.zeros(3))
    network = HypernetworkNetwork(
        Linear(every.reshape(5, -1), jnp.zeros_like(blank.first.bias)), Linear(*second), 6, False
    )

    @jax.jit
    def answers(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        by_row, by_task, by_batch = jax.random.split(key, 3)
        task = teacher.task(space.sample(by_row), by_task)
        batch = teacher.batch(task, by_batch, 8)
        return network(task.vector, batch.inputs), batch.targets

    for seed in range(4):
        np.testing.assert_allclose(*answers(jax.random.key(seed)), rtol=1e-4, atol=1e-5)


def test_weights_are_matrices_and_vectors():
    """Muon takes every array of two or more axes as one matrix."""
    network = jax.eval_shape(lambda: Hypernetwork().draw(CODE, INPUTS, OUTPUTS, jax.random.key(0)))
    assert {leaf.ndim for leaf in jax.tree.leaves(network)} == {1, 2}


def test_it_composes_where_an_mlp_of_its_size_does_not():
    """The same few combinations, steps and data; about as many weights. Margins, not numbers."""

    def held_out(model: Model) -> float:
        config = RunConfig(
            space=SubsetSpace(modules=12, max_active=3),
            support=Random(number=24, reserve=24),
            family=Hyperteacher(inputs=4, hidden=4, outputs=4),
            model=model,
            recipe=Paper(learning_rate=0.01, steps=400, tasks=32, samples=8),
            eval_every=400,
            validation_tasks=64,
        )
        point = train(config).curves[-1]
        assert point["score_in"] > 0.8
        return point["score_held_out"]

    generated, plain = held_out(Hypernetwork(hidden=16)), held_out(MLP(width=36, depth=2))
    assert generated > max(plain + 0.1, 0.85)


@pytest.mark.parametrize("fields", [{"hidden": 0}, {"width": 4}])
def test_senseless_fields_are_refused(fields: dict[str, Any]):
    with pytest.raises(ValidationError):
        Hypernetwork(**fields)
