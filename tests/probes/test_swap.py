"""The swap test distinguishes what a network uses from what is merely decodable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from recombine.encodings.base import Embedder
from recombine.errors import BadInput
from recombine.models.base import Edit, EmbeddedNetwork, Network, Trace, unedited
from recombine.probes import swap as module
from recombine.probes.activations import probe_splits
from recombine.probes.base import Measured
from recombine.probes.neighbours import replaced_rows
from recombine.probes.swap import Swap, shift_maps
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.supports.regions import side
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=8, max_active=3)
SWAP = Swap(pairs=128)


class Linear(Network):
    """h = z B + x C, then the outputs h D: a constituent is a direction, whatever the input."""

    of_code: Array
    of_input: Array
    readout: Array

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        told = edit("told", jnp.tile(code, (len(inputs), 1)))
        hidden = edit("hidden", told @ self.of_code + inputs @ self.of_input)
        return hidden @ self.readout, {"told": told, "hidden": hidden}


class Unused(Network):
    """A copy of z that nothing reads, beside features that hardly correlate with z and make the outputs."""

    waves: Array
    readout: Array

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        used = jnp.cos(inputs.sum(1, keepdims=True) + code @ self.waves)
        first = edit("first", jnp.concatenate([jnp.tile(code, (len(inputs), 1)), used], axis=1))
        hidden = edit("hidden", first)
        return hidden[:, code.shape[0] :] @ self.readout, {"first": first, "hidden": hidden}


class Times(Embedder):
    """Reads a code as a multiple of it."""

    factor: Array

    def __call__(self, code: Array) -> Array:
        return self.factor * code


def normal(seed: int, *shape: int) -> Array:
    return jax.random.normal(jax.random.key(seed), shape)


LINEAR = Linear(normal(0, 8, 20), 0.3 * normal(1, 4, 20), normal(2, 20, 3))
UNUSED = Unused(40 * normal(3, 8, 40), normal(4, 40, 3))


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny(space=SPACE, support=Random(number=20), seeds=Seeds.replicate(1)))


@pytest.fixture(scope="module")
def linear(setting: Setting) -> Measured:
    return SWAP.measure(setting, LINEAR)


def at(measured: Measured, site: str) -> dict[str, Any]:
    return {name: values[measured.columns["site"].index(site)] for name, values in measured.columns.items()}


def test_a_used_constituent_can_be_swapped(linear: Measured):
    found = at(linear, "hidden")
    assert found["efficacy"] > 0.95
    assert found["ceiling"] == pytest.approx(1, abs=1e-5)
    assert found["ceiling_shift"] == pytest.approx(1, abs=1e-5), "no input changes what a constituent does"
    assert found["specificity"] > 0.97
    assert found["moved"] == pytest.approx(1, abs=0.05)


def test_random_and_control_directions_have_little_effect(linear: Measured):
    found = at(linear, "hidden")
    assert found["floor_random"] < 0.1
    assert found["floor_control"] < 0.5 < found["efficacy"]


def test_swapping_what_is_not_used_has_no_effect(setting: Setting):
    """The point of the test: decodable and yet without effect."""
    measured = at(SWAP.measure(setting, UNUSED), "hidden")
    assert measured["decodable"] > 0.99
    assert measured["moved"] == pytest.approx(1, abs=0.05), "a probe reads the swap"
    assert measured["specificity"] > 0.97
    assert abs(measured["efficacy"]) < 0.15
    assert measured["ceiling"] == pytest.approx(1, abs=1e-5)


def test_layers_that_read_a_linear_code_are_trivial(linear: Measured):
    assert linear.columns["trivial"] == [True, False]
    assert linear.columns["best"] == [False, True]
    assert linear.columns["site"] == ["told", "hidden"], "in the order of the computation"
    assert linear.summary["efficacy"] == linear.summary["efficacy_best"] == at(linear, "hidden")["efficacy"]


def test_the_best_layer_is_chosen_on_validation_pairs(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    """Other scores on the test pairs do not move the choice; other scores on the validation pairs do."""
    plain = module.efficacies

    def chosen(test: float, choice: float) -> str:
        def changed(run: dict[str, np.ndarray], site: str) -> dict[str, float]:
            value = {len(sizes["test"]): test, len(sizes["choice"]): choice}[len(run["gap"])]
            return plain(run, site) | {"efficacy": value if site == "hidden 2" else 0.5}

        monkeypatch.setattr(module, "efficacies", changed)
        columns = SWAP.measure(setting, network).columns
        return columns["site"][columns["best"].index(True)]

    network = setting.network()
    found = probe_splits(setting, network, SWAP.combinations, SWAP.draws)
    # Neither layer is trivial here.
    monkeypatch.setattr(type(found), "trivial", lambda self, site: False)
    sizes = {"test": SWAP._test_pairs(setting, found)}
    sizes["choice"] = SWAP._choice_pairs(setting, found, sizes["test"])
    assert len(sizes["test"]) != len(sizes["choice"])
    assert chosen(test=0.0, choice=1.0) == chosen(test=1.0, choice=1.0) == "hidden 2"
    assert chosen(test=1.0, choice=0.0) == "hidden 1"


@pytest.mark.parametrize("region", ["held_out", "trained"])
def test_pairs_are_of_their_region_and_fitted_on_none(setting: Setting, region: Any):
    measurement = Swap(region=region)
    found = probe_splits(setting, setting.network(), 512, 1)
    pairs = measurement._test_pairs(setting, found)
    ends = np.concatenate([pairs[:, :-2], replaced_rows(pairs[:, :-2], pairs[:, -2:])])
    assert SPACE.contains(ends).all()
    trained = setting.support.contains(ends)
    assert trained.all() if region == "trained" else not trained.any()
    assert not found.seen.contains(ends).any()
    if region == "held_out":
        assert set(side(ends, setting.config.seeds.support)) == {"test"}
    choice = measurement._choice_pairs(setting, found, pairs)
    others = np.concatenate([choice[:, :-2], replaced_rows(choice[:, :-2], choice[:, -2:])])
    assert not {tuple(row) for row in others.tolist()} & {tuple(row) for row in ends.tolist()}
    assert not setting.support.contains(others).any()


def test_the_edit_is_the_formula():
    """S W (W' S W)^-1, and all floors are as long by S."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 12)) @ rng.normal(size=(12, 12))
    weights, control = rng.normal(size=(2, 12, 4))
    maps = shift_maps(features, weights, control, floors=3, seed=0)
    covariance = np.cov(features, rowvar=False)
    covariance += module.SHRINKAGE * np.trace(covariance) / 12 * np.eye(12)
    wanted = covariance @ weights @ np.linalg.inv(weights.T @ covariance @ weights)
    np.testing.assert_allclose(maps[0], wanted, rtol=1e-8)
    np.testing.assert_allclose(weights.T @ maps[0], np.eye(4), atol=1e-8)
    change = rng.normal(size=4)
    shifts = maps @ change
    lengths = np.einsum("ed,de->e", shifts, np.linalg.solve(covariance, shifts.T))
    np.testing.assert_allclose(lengths, lengths[0])
    # The control's shifts lie in the span of its patterns.
    patterns = covariance @ control
    residual = maps[1] - patterns @ np.linalg.lstsq(patterns, maps[1], rcond=None)[0]
    np.testing.assert_allclose(residual, 0, atol=1e-8)


def test_dependent_targets_are_moved_as_far_as_they_can_be():
    """Values of one factor: their weights add up to zero, and so do the changes."""
    rng = np.random.default_rng(1)
    features, weights = rng.normal(size=(200, 6)), rng.normal(size=(6, 3))
    weights[:, 2] = -weights[:, 0] - weights[:, 1]
    maps = shift_maps(features, weights, weights, 1, 0)
    change = np.array([1.0, -1.0, 0.0])
    np.testing.assert_allclose(weights.T @ maps[0] @ change, change, atol=1e-8)
    assert np.isfinite(maps).all()


def test_efficacy_against_a_plain_computation(setting: Setting, linear: Measured):
    """For the linear network, in numpy: the edit's effect is known in closed form."""
    found = probe_splits(setting, LINEAR, 512, SWAP.draws)
    edit = SWAP._maps(setting, found, "hidden")[0][0]
    pairs = SWAP._test_pairs(setting, found)
    run = SWAP._run(setting, LINEAR, {"hidden": edit[None]}, pairs, "swap test")
    of_code, readout = np.asarray(LINEAR.of_code, float), np.asarray(LINEAR.readout, float)
    wanted = run["change"] @ of_code @ readout
    missed = run["change"] @ edit.T @ readout - wanted
    assert at(linear, "hidden")["efficacy"] == pytest.approx(1 - (missed**2).sum() / (wanted**2).sum(), abs=1e-4)


def test_networks_with_readers(setting: Setting):
    """The code is read anew for the other task; what the reader gives is a site of one row."""
    measured = SWAP.measure(setting, EmbeddedNetwork(Times(jnp.float32(2.0)), LINEAR))
    assert measured.columns["site"] == ["reading", "told", "hidden"]
    assert measured.columns["trivial"] == [True, True, False]
    assert at(measured, "reading")["ceiling"] == pytest.approx(1, abs=1e-5)
    assert at(measured, "reading")["efficacy"] > 0.95
    assert at(measured, "hidden")["efficacy"] > 0.95


def test_it_is_deterministic(setting: Setting, linear: Measured):
    assert SWAP.measure(Setting(setting.config), LINEAR) == linear


def test_accuracy_is_that_of_the_family(setting: Setting, linear: Measured):
    """By the teacher's answers: before, after, and at best, for one network."""
    rows = linear.columns
    assert len(set(rows["accuracy_before"])) == len(set(rows["accuracy_own"])) == 1
    # An edit that works makes the answers those that the network would have given itself.
    assert at(linear, "told")["accuracy"] == pytest.approx(rows["accuracy_own"][0], rel=0.05)


def test_too_few_combinations_are_refused(tiny: Callable[..., RunConfig]):
    small = Setting(tiny(space=SubsetSpace(modules=4, max_active=2), support=Random(number=6)))
    with pytest.raises(BadInput, match="held-out combinations"):
        SWAP.measure(small, small.network())
