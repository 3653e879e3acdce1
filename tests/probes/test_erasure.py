"""LEACE removes all linear information, and erasure distinguishes what a network uses from what is merely decodable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jaxtyping import Array
from sklearn.linear_model import LinearRegression

from recombine.models.base import Edit, Network, Trace, unedited
from recombine.probes.activations import EditedNetwork, probe_splits
from recombine.probes.base import Measured
from recombine.probes.erasure import Erasure, at_site, leace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=8, max_active=3)
ERASURE = Erasure(tasks=128)


def data(seed: int, size: int = 9, targets: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Features with unequal variances, some of which follow the targets."""
    rng = np.random.default_rng(seed)
    wanted = rng.normal(size=(400, targets))
    noise = rng.normal(size=(400, size)) @ rng.normal(size=(size, size))
    return wanted @ rng.normal(size=(targets, size)) + noise + rng.normal(size=size), wanted


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_no_linear_information_is_left(seed: int):
    features, targets = data(seed)
    (eraser,) = leace(features, targets)
    erased = eraser(features)
    centred = targets - targets.mean(0)
    assert np.abs(centred.T @ erased).max() < 1e-8 * np.abs(centred.T @ features).max()
    assert LinearRegression().fit(erased, targets).score(erased, targets) == pytest.approx(0, abs=1e-8)
    np.testing.assert_allclose(erased.mean(0), features.mean(0))
    np.testing.assert_allclose(eraser(erased), erased, atol=1e-8)
    assert eraser.down.shape[1] == 3


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_no_smaller_change_has_the_same_effect(seed: int):
    """Against the orthogonal projection that also takes the cross-covariance out, and against moving on from LEACE.

    Measured in any inner product: here the plain one and that of the inverse covariance.
    """
    features, targets = data(seed)
    (eraser,) = leace(features, targets)
    centred, wanted = features - features.mean(0), targets - targets.mean(0)
    base, _ = np.linalg.qr(centred.T @ wanted)
    naive = features - centred @ base @ base.T
    assert np.abs(wanted.T @ naive).max() < 1e-8 * np.abs(wanted.T @ features).max()
    inverse = np.linalg.inv(np.cov(features, rowvar=False))
    for metric in (np.eye(features.shape[1]), inverse):

        def cost(changed: np.ndarray, metric: np.ndarray = metric) -> float:
            change = changed - features
            return float(np.einsum("nd,de,ne->", change, metric, change))

        assert cost(eraser(features)) <= cost(naive) * (1 + 1e-9)
        # Any other affine map that also erases: add to P a part that vanishes on the cross-covariance.
        rng = np.random.default_rng(seed)
        null = np.eye(features.shape[1]) - base @ base.T
        other = eraser(features) + 0.1 * centred @ null @ rng.normal(size=null.shape)
        assert np.abs(wanted.T @ other).max() < 1e-8 * np.abs(wanted.T @ features).max()
        assert cost(eraser(features)) <= cost(other) * (1 + 1e-9)


def test_dead_units_and_dependent_targets():
    features, targets = data(0)
    features = np.concatenate([features, np.zeros((400, 2)), features[:, :1]], axis=1)
    targets = np.concatenate([targets, targets.sum(1, keepdims=True)], axis=1)
    (eraser,) = leace(features, targets)
    erased = eraser(features)
    assert eraser.down.shape[1] == 3, "a target that follows from the others adds nothing"
    assert np.isfinite(erased).all()
    assert LinearRegression().fit(erased, targets).score(erased, targets) == pytest.approx(0, abs=1e-7)


def test_random_subspaces_have_the_same_rank_and_miss_the_targets():
    features, targets = data(1, size=40)
    true, *floors = leace(features, targets, floors=3, seed=5)
    for floor in floors:
        projection = floor.down @ floor.up
        np.testing.assert_allclose(projection @ projection, projection, atol=1e-8)
        assert np.trace(projection) == pytest.approx(np.trace(true.down @ true.up)) == pytest.approx(3)
        erased = floor(features)
        assert LinearRegression().fit(erased, targets).score(erased, targets) > 0.3


class Half(Network):
    """The first units of its layer hold z, the others waves of z. `needs` says which of them the outputs are made from."""

    waves: Array
    readout: Array
    needs: bool

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        told = edit("told", jnp.tile(code, (len(inputs), 1)))
        waves = jnp.cos(told @ self.waves + inputs.sum(1, keepdims=True))
        hidden = edit("hidden", jnp.concatenate([told, waves], axis=1))
        size = code.shape[0]
        return (hidden[:, :size] if self.needs else hidden[:, size:]) @ self.readout, {"told": told, "hidden": hidden}


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny(space=SPACE, support=Random(number=20), seeds=Seeds.replicate(1)))


def at(measured: Measured, site: str) -> dict[str, Any]:
    return {name: values[measured.columns["site"].index(site)] for name, values in measured.columns.items()}


def half(needs: bool) -> Half:
    waves, readout = jax.random.split(jax.random.key(0))
    return Half(40 * jax.random.normal(waves, (8, 40)), jax.random.normal(readout, (8 if needs else 40, 3)), needs)


def test_erasing_what_is_used_does_damage(setting: Setting):
    """A network that reads z alone is left with the mean of its layer."""
    found = at(ERASURE.measure(setting, half(needs=True)), "hidden")
    assert found["decodable_before"] > 0.99
    assert found["decodable_after"] < 0.05
    assert found["rank"] == 8
    assert found["after"] == pytest.approx(found["mean"], abs=0.3 * abs(found["before"] - found["mean"]))


def test_erasing_what_is_not_used_does_no_damage(setting: Setting):
    """Just as decodable, and the answers hardly change."""
    found = at(ERASURE.measure(setting, half(needs=False)), "hidden")
    assert found["decodable_before"] > 0.99
    assert found["decodable_after"] < 0.05
    change = abs(found["after"] - found["before"])
    assert change < 0.1 * abs(found["mean"] - found["before"])


def test_scores_against_the_network_itself(setting: Setting):
    """`before` is the family's headline; erasing all that varies is the same as the mean."""
    network = setting.network()
    measured = ERASURE.measure(setting, network)
    assert measured.columns["site"] == ["hidden 1", "hidden 2"]
    assert len(set(measured.columns["before"])) == 1
    found = probe_splits(setting, network, 512, 8)
    values = found.fit["hidden 2"].astype(np.float64)
    (all_of_it,) = leace(values, values)
    np.testing.assert_allclose(
        all_of_it(values), np.broadcast_to(values.mean(0), values.shape), atol=2e-4 * np.abs(values).max()
    )
    assert measured.summary["after"] == measured.columns["after"][-1]


def test_trained_combinations_can_be_scored(setting: Setting):
    network = setting.network()
    held_out, trained = (
        Erasure(region=region, tasks=64).measure(setting, network) for region in ("held_out", "trained")
    )
    assert held_out.summary["before"] != trained.summary["before"]
    assert held_out.summary["decodable_after"] == trained.summary["decodable_after"]


def test_an_edited_network_uses_the_edit(setting: Setting):
    network = setting.network()
    code, inputs = jnp.ones(8), jnp.ones((5, 4))
    edited = EditedNetwork(network, at_site("hidden 2", jnp.zeros_like))
    outputs, sites = edited.trace(code, inputs)
    np.testing.assert_array_equal(outputs, jnp.broadcast_to(network.layers[-1].bias, (5, 3)))  # type: ignore[attr-defined]
    assert not np.asarray(sites["hidden 2"]).any()
    again = edited.trace(code, inputs, lambda site, values: values + 1)
    np.testing.assert_array_equal(again[1]["hidden 2"], 1)


def test_it_is_deterministic(setting: Setting):
    one, other = (ERASURE.measure(Setting(setting.config), half(needs=False)) for _ in range(2))
    np.testing.assert_equal(one.summary, other.summary)
    np.testing.assert_equal(one.columns, other.columns)
