"""Segregation and conjunctions: their parts on scenes whose answers are known, and both on small networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import adjusted_rand_score

from recombine.errors import BadInput
from recombine.models.base import Network, unedited
from recombine.probes.conjunctions import WHERE, Conjunctions
from recombine.probes.segregation import (
    Segregation,
    by_contact,
    by_coordinates,
    foreground_ari,
    reconstruction_clustering,
    touching,
)
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SHORT = {"kind": "fast", "tasks": 4, "samples": 1, "steps": 1}
SCENES = RunConfig.model_validate(
    {"family": "silhouettes", "model": {"kind": "mlp", "width": 8, "depth": 1}, "recipe": SHORT}
)
QUESTIONS = RunConfig.model_validate(
    {
        "family": {"kind": "objects", "pixels": 12},
        "model": {"kind": "slot-attention", "slots": 2, "width": 4, "channels": 4, "hidden": 8},
        "recipe": SHORT,
    }
)

labels = st.lists(st.integers(-2, 3), min_size=12, max_size=12)


@given(labels, st.lists(st.integers(0, 3), min_size=12, max_size=12), st.permutations(range(4)))
@settings(max_examples=60, deadline=None)
def test_the_index_is_that_of_the_foreground_whatever_the_names_of_parts(owner, found, names):
    owner, found = np.array([0, 1, *owner]), np.array([0, 1, *found])
    counted = [index for index, value in enumerate(owner) if value >= 0]
    expected = adjusted_rand_score([owner[index] for index in counted], [found[index] for index in counted])
    assert foreground_ari(owner, found) == pytest.approx(expected)
    assert foreground_ari(owner, np.array(names)[found]) == pytest.approx(expected)
    elsewhere = np.where(owner < 0, 7, found)
    assert foreground_ari(owner, elsewhere) == pytest.approx(expected)
    assert foreground_ari(owner, owner + 5) == pytest.approx(1)


def test_baselines_on_a_scene_by_hand():
    owner = np.full((8, 8), -1)
    owner[0:2, 0:2], owner[5:8, 5:8] = 0, 1
    assert foreground_ari(owner.ravel(), by_coordinates(owner >= 0, 2)) == 1
    assert foreground_ari(owner.ravel(), by_contact(owner >= 0)) == 1
    assert not touching(owner)
    owner[2:6, 1], owner[5, 1:5] = 0, 0  # The first object grows until it meets the second.
    assert touching(owner)
    assert foreground_ari(owner.ravel(), by_contact(owner >= 0)) == 0


class Halves(Network):
    """Knows two objects, the left and the right half: it restores the one that it sees more of."""

    def trace(self, code, inputs, edit=unedited):
        side = inputs.shape[1] // 2
        left = inputs[:, :side].sum(axis=1, keepdims=True) > inputs[:, side:].sum(axis=1, keepdims=True)
        return jnp.where(jnp.arange(2 * side) < side, left, ~left).astype(jnp.float32), {}


def test_reconstruction_clustering_finds_the_objects_that_its_autoencoder_knows():
    image, found = jnp.ones(16), []
    knows = Halves()

    def restore(images):
        return knows(jnp.zeros(1), images)

    for seed in range(12):
        parts = np.asarray(reconstruction_clustering(restore, image, 2, jax.random.key(seed)))
        found.append(len(set(parts[:8])) == len(set(parts[8:])) == 1 and parts[0] != parts[8])
    # Where both clusters start on the same side it cannot leave it: then nothing is divided.
    assert sum(found) >= 4


def test_segregation_of_an_untrained_network_is_that_of_the_untrained_column():
    setting = Setting(SCENES)
    measured = Segregation(scenes=12).measure(setting, setting.network())
    assert set(measured.summary) <= set(Segregation().summary_names)
    assert measured.summary["ari"] == measured.summary["ari_untrained"]
    assert abs(measured.summary["ari_untrained"]) < 0.1 < measured.summary["ari_components"]
    assert measured.summary["ari_kmeans"] > 0.5
    assert len(measured.columns["parts_owner"][0]) == 28**2


class Stubborn(Network):
    """Gives the same answer to everything."""

    bias: float

    def trace(self, code, inputs, edit=unedited):
        return jnp.stack([jnp.zeros(len(inputs)), jnp.full(len(inputs), self.bias)], axis=1), {}


@pytest.mark.parametrize("bias", [1.0, -1.0])
def test_a_network_that_always_says_the_same_confuses_half_of_the_pairs(bias):
    setting = Setting(QUESTIONS)
    summary = Conjunctions(draws=1).measure(setting, Stubborn(bias)).summary
    for where in WHERE:
        assert summary[f"illusory_{where}"] == (bias > 0)
        assert summary[f"missed_{where}"] == (bias < 0)
        assert summary[f"confused_{where}"] == 0.5
        assert summary[f"feature_{where}"] == 0.5


def test_conjunctions_counts_held_out_conjunctions_and_numbers_apart():
    setting = Setting(QUESTIONS)
    measured = Conjunctions(draws=1).measure(setting, setting.network())
    assert set(measured.summary) == set(Conjunctions().summary_names)
    names = np.array(measured.columns["where"])
    # Scenes of 2 and 3 objects, with 14 of 16 conjunctions; of 4 and 5 objects.
    assert {where: int((names == where).sum()) for where in WHERE} == dict(zip(WHERE, (28, 4, 28, 4), strict=True))
    assert measured.summary["confused_in"] == measured.summary["untrained_confused_in"]


@pytest.mark.parametrize(("probe", "config"), [(Segregation(), QUESTIONS), (Conjunctions(), SCENES)], ids=["a", "b"])
def test_other_families_are_refused(probe, config):
    with pytest.raises(BadInput):
        probe.measure(Setting(config), Stubborn(1.0))
