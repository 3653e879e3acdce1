"""The dense network of an evolved picture: exact with evolved weights, of the same architecture with random ones."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.cppn import ACTIVATIONS, Search
from recombine.cppn.genome import FUNCTIONS
from recombine.errors import BadInput
from recombine.families.picture import SPACE, Picture
from recombine.models import CPPN, MLP
from recombine.models.cppn import CPPNNetwork, activate
from recombine.testing import check_component
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting, check_line

FAMILY = Picture(side=10, search=Search(population=12, generations=12, depth=5, width=9, hidden=2))


@pytest.fixture(scope="module")
def teacher():
    return FAMILY.draw(SPACE, jax.random.key(3))


def built(teacher, **settings) -> CPPNNetwork:
    return CPPN(**settings).build(teacher, SPACE.width, 4, 1, jax.random.key(0))


def test_activations_are_those_of_genomes():
    values = np.linspace(-4, 4, 15)
    made = activate(jnp.repeat(jnp.asarray(values)[:, None], len(ACTIVATIONS), axis=1), jnp.arange(len(ACTIVATIONS)))
    wanted = np.stack([FUNCTIONS[kind](values) for kind in ACTIVATIONS], axis=1)
    np.testing.assert_allclose(made, wanted, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_evolved_weights_draw_the_picture(seed):
    other = FAMILY.draw(SPACE, jax.random.key(seed))
    outputs = built(other, weights="evolved")(jnp.zeros(4), other.inputs)
    np.testing.assert_allclose(outputs, other.pictures[0], atol=1e-4)


def test_random_weights_have_the_same_architecture_and_nothing_outside_it(teacher):
    evolved, random = (built(teacher, weights=weights) for weights in ("evolved", "random"))
    shapes = [[leaf.shape for leaf in jax.tree.leaves(network)] for network in (evolved, random)]
    assert shapes[0] == shapes[1]
    exist, depth = np.asarray(teacher.units), int(teacher.depth)
    assert exist.sum() < len(exist) or depth < len(random.layers), "something is padded in this test"
    for number, weights in enumerate(random.layers):
        whole = np.asarray(weights)
        assert not whole[:, ~exist].any() and whole[:, exist].any() == (number < depth)
    _, sites = random.trace(jnp.zeros(4), teacher.inputs)
    values = list(sites.values())
    assert all(np.array_equal(values[depth - 1], beyond) for beyond in values[depth:])
    gradient = eqx.filter_grad(lambda network: jnp.mean(network(jnp.zeros(4), teacher.inputs) ** 2))(random)
    for number, weights in enumerate(gradient.layers):
        assert not np.asarray(weights)[:, ~exist].any() and (number < depth or not np.asarray(weights).any())


def test_edits_reach_the_output(teacher):
    network = built(teacher)
    plain, sites = network.trace(jnp.zeros(4), teacher.inputs)
    for name in sites:
        edited, _ = network.trace(jnp.zeros(4), teacher.inputs, lambda site, values, name=name: values * (site != name))
        assert not np.allclose(plain, edited)


def test_relu_and_sparsity(teacher):
    network = built(teacher, relu=True, sparsity=0.5)
    _, sites = network.trace(jnp.zeros(4), teacher.inputs)
    assert all(float(values.min()) >= 0 for values in sites.values())
    total = sum(float(jnp.abs(weights).sum()) for weights in (*network.layers, network.readout))
    assert float(network.penalty()) == pytest.approx(0.5 * total, rel=1e-5)
    assert built(teacher).penalty() is None


def test_a_child_has_the_weights_of_its_parent_and_its_own_penalty(teacher):
    parent = built(teacher, sparsity=0.1)
    child = CPPN().inherit(built(teacher), [parent])
    assert child.penalty() is None and np.array_equal(child.layers[0], parent.layers[0])
    config = RunConfig(family=FAMILY)
    check_line(config.replace(parents=(config,), trains=("readout",)))


def test_bad_input(teacher):
    check_component(CPPN(sparsity=0.1))
    with pytest.raises(ValidationError, match="draws pictures"):
        RunConfig(model=CPPN())
    with pytest.raises(ValidationError, match="activations they evolved with"):
        RunConfig(family=FAMILY, model=CPPN(weights="evolved", relu=True))
    with pytest.raises(BadInput, match="takes its layers"):
        CPPN().draw(4, 4, 1, jax.random.key(0))
    with pytest.raises(BadInput, match="built from a picture"):
        CPPN().build(Setting(RunConfig(model=MLP(width=4, depth=1))).teacher, 4, 4, 1, jax.random.key(0))
