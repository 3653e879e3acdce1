"""Experts: all scales at one are the parent, changes are those of NumPy, and only adapters are trained."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.models import MLP, Decoder, Expert, ExpertNetwork
from recombine.models.base import Network, leaf_name
from recombine.models.expert import trained_parameters
from recombine.objectives.base import trained_leaves
from recombine.overrides import validate
from recombine.testing import check_model
from recombine.training import RunConfig

WIDTH, WORDS, LONGEST = 8, 9, 4
BASE = Decoder(width=WIDTH, layers=2, heads=2, mlp_ratio=2)
SIZES = 5, LONGEST, LONGEST * WORDS
KINDS = {"singular": Expert(model=BASE), "low-rank": Expert(model=BASE, adapter="low-rank", rank=3)}
CODES = jnp.asarray(np.random.default_rng(0).integers(3, WORDS, (6, 5)), jnp.float32)
SHOWN = jnp.asarray(np.random.default_rng(1).integers(3, WORDS, (6, 1, LONGEST)), jnp.float32)

outputs = eqx.filter_jit(lambda network: (network.tasks(CODES, SHOWN), network.generate(CODES)))


@pytest.fixture(scope="module")
def parent() -> Network:
    return BASE.draw(*SIZES, jax.random.key(3))


def moved(network: ExpertNetwork, seed: int) -> ExpertNetwork:
    """The same experts after some training: their trained leaves are shifted at random."""
    chosen = trained_leaves(network, Expert.trained)
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf, own: leaf + 0.3 * rng.standard_normal(leaf.shape).astype(np.float32) if own else leaf,
        network,
        chosen,
    )


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_a_new_expert_is_its_parent_bit_for_bit(model: Expert, parent: Network) -> None:
    network = model.inherit(model.draw(*SIZES, jax.random.key(0)), [parent])
    for mine, theirs in zip(outputs(network), outputs(parent), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_only_adapters_are_trained_and_their_number_is_known(model: Expert, parent: Network) -> None:
    network = model.inherit(model.draw(*SIZES, jax.random.key(0)), [parent])
    assert isinstance(network, ExpertNetwork)
    chosen = jax.tree_util.tree_leaves_with_path(trained_leaves(network, model.trained))
    trained = {leaf_name(path) for path, own in chosen if own}
    shapes = 2 * [(WIDTH, WIDTH)] * 4 + 2 * [(WIDTH, 2 * WIDTH), (2 * WIDTH, WIDTH)]
    wanted = sum(min(shape) if model.adapter == "singular-values" else model.rank * sum(shape) for shape in shapes)
    leaves = {leaf_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(network)}
    assert sum(leaves[name].size for name in trained) == wanted == trained_parameters(network)
    assert all(name.startswith("experts.") for name in trained)


def test_scales_change_a_matrix_as_in_numpy(parent: Network) -> None:
    model = KINDS["singular"]
    network = moved(model.inherit(model.draw(*SIZES, jax.random.key(0)), [parent]), seed=1)  # type: ignore[arg-type]
    matrix = np.asarray(parent.blocks[1].mlp.up.weight)  # type: ignore[attr-defined]
    left, values, right = np.linalg.svd(matrix.astype(float), full_matrices=False)
    scales = np.asarray(network.experts[0].blocks[1].mlp.up.weight.scales)
    assert np.abs(scales - 1).max() > 0.1
    found = network.merged().blocks[1].mlp.up.weight  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, left @ np.diag(values * scales) @ right, atol=1e-5)
    np.testing.assert_array_equal(network.merged().blocks[1].norm, parent.blocks[1].norm)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_a_mixture_has_its_experts_and_their_base(model: Expert, parent: Network) -> None:
    fresh = [model.inherit(model.draw(*SIZES, jax.random.key(n)), [parent]) for n in range(2)]
    experts = [moved(network, seed=n) for n, network in enumerate(fresh)]  # type: ignore[arg-type]
    both = model.replace(experts=2)
    mixture = both.inherit(both.draw(*SIZES, jax.random.key(5)), experts)
    assert isinstance(mixture, ExpertNetwork)
    cases = {(0.0, 0.0): parent, (1.0, 0.0): experts[0], (0.0, 1.0): experts[1]}
    for weights, wanted in cases.items():
        for mine, theirs in zip(outputs(mixture.weighted(jnp.array(weights))), outputs(wanted), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
    # An expert on an expert has the first one in its base.
    later = model.inherit(model.draw(*SIZES, jax.random.key(7)), [experts[0]])
    np.testing.assert_allclose(outputs(later)[0], outputs(experts[0])[0], atol=1e-5)
    with pytest.raises(BadInput, match="needs as many experts as parents"):
        both.inherit(mixture, [experts[0], parent])


def test_conformance() -> None:
    check_model(Expert(model=Decoder(width=8, layers=1, heads=2, mlp_ratio=1)))


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="does not"):
        validate(RunConfig, {"family": "string-tasks", "model": {"kind": "expert", "model": MLP()}})
