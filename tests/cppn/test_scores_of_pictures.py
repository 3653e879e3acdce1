"""Scores of networks that draw pictures: known answers, and what they must not depend on."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import recombine as rc
from recombine.cppn import distinct_maps, odd_share, parity_purity, places
from recombine.cppn.scores import few_weights
from recombine.errors import BadInput

SIDE = 8
PLACES = places(SIDE)
Y, X = PLACES[:, 0], PLACES[:, 1]


def test_even_odd_and_mixed_maps():
    maps = np.stack([X**2, X, Y, X * Y, np.ones_like(X)], axis=1)
    np.testing.assert_allclose(parity_purity(maps), 1.0)
    assert [odd_share(maps[:, [number]]) for number in range(5)] == pytest.approx([0, 1, 0, 1, 0])
    assert odd_share(Y[:, None], "y") == pytest.approx(1)
    mixed = (X + X**2 * (X @ X / (X**2 @ X**2)) ** 0.5)[:, None]
    assert odd_share(mixed) == pytest.approx(0.5) and parity_purity(mixed)[0] == pytest.approx(0.5)


def test_noise_has_no_parity():
    noise = np.random.default_rng(0).standard_normal((64 * 64, 1))
    assert odd_share(noise) == pytest.approx(0.5, abs=0.05)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), scale=st.floats(0.1, 10))
def test_scores_do_not_depend_on_signs_and_scales(seed, scale):
    rng = np.random.default_rng(seed)
    maps = rng.standard_normal((SIDE**2, 6))
    maps[:, 3] = maps[:, 1]
    changed = maps * scale * rng.choice([-1, 1], 6)
    np.testing.assert_allclose(parity_purity(maps), parity_purity(changed), atol=1e-9)
    assert distinct_maps(maps).tolist() == distinct_maps(changed).tolist() == [0, 1, 2, 4, 5]
    assert distinct_maps(changed + rng.standard_normal(6)).tolist() == [0, 1, 2, 4, 5], "an offset is no new map"


def test_constant_maps_are_not_counted():
    assert distinct_maps(np.ones((SIDE**2, 3))).tolist() == []


def test_a_network_that_sees_only_even_inputs_stays_symmetric():
    network = eqx.nn.MLP(2, 1, 8, 2, activation=jax.nn.tanh, key=jax.random.key(0))
    even = np.stack([Y, np.abs(X)], axis=1).astype(np.float32)
    assert rc.sweep_asymmetry(network, even, draws=16) == pytest.approx(0, abs=1e-9)
    assert rc.sweep_asymmetry(network, np.stack([Y, X], axis=1).astype(np.float32), draws=16) > 0.05
    assert rc.sweep_asymmetry(network, even, draws=16, mirror="y") > 0.05


def test_a_linear_function_of_x_changes_by_odd_pictures_alone():
    def draw(weights, inputs):
        return inputs @ weights["w"]

    score = rc.sweep_asymmetry(draw, X[:, None], {"w": np.ones((1, 1))}, axis=0, draws=4)
    assert score == pytest.approx(1)


def test_where_nothing_changes_there_is_no_score():
    score = rc.sweep_asymmetry(lambda weights, inputs: 0 * inputs, PLACES, [np.ones((4, 2))], draws=4)
    assert math.isnan(score)


def test_equinox_and_pytorch_modules_of_the_same_weights_have_one_score():
    torch = pytest.importorskip("torch")
    network = eqx.nn.MLP(4, 1, 6, 1, activation=jax.nn.tanh, key=jax.random.key(1))
    first, last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)
    for layer, other in ((first, network.layers[0]), (last, network.layers[1])):
        layer.weight.data = torch.tensor(np.array(other.weight))
        layer.bias.data = torch.tensor(np.array(other.bias))
    module = torch.nn.Sequential(first, torch.nn.Tanh(), last)
    inputs = PLACES.astype(np.float32)
    scores = [rc.sweep_asymmetry(each, inputs, draws=20, seed=2) for each in (network, module)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert all(parameter.requires_grad for parameter in module.parameters()), "the module is left as it was"


def test_few_weights_reach_what_they_span():
    rng = np.random.default_rng(0)
    tangents = np.linalg.qr(rng.standard_normal((20, 6)))[0].T * rng.uniform(0.1, 5, (6, 1))
    change = 3 * tangents[4] / np.linalg.norm(tangents[4]) + tangents[1] / np.linalg.norm(tangents[1])
    assert few_weights(tangents, change, 1) == pytest.approx(0.1)
    assert few_weights(tangents, change, 2) == pytest.approx(0, abs=1e-12)
    assert few_weights(-2 * tangents[::-1], change, 1) == pytest.approx(0.1), "neither sign, size nor order matters"
    assert few_weights(np.zeros((5, 20)), change, 3) == 1


def test_bad_input():
    with pytest.raises(BadInput, match="Equinox or PyTorch"):
        rc.sweep_asymmetry(lambda inputs: inputs, PLACES)
    with pytest.raises(BadInput, match="no weight matrix"):
        rc.sweep_asymmetry(lambda weights, inputs: inputs, PLACES, [np.ones(3)])
    with pytest.raises(BadInput, match="square"):
        odd_share(np.ones((5, 1)))
