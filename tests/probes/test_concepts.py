"""Concepts: factors are decoded where they are planted, by probes that never saw the combination."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from recombine.errors import BadInput
from recombine.objectives.flow_matching import FlowMatching
from recombine.probes.concepts import MEAN, MOMENTS, SHARE, Concepts, Traced, WatchTask, chosen_site, probe_sites
from recombine.probes.ridge import STRENGTHS, mean_r2
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples

LEVELS = (3, 4)
COLUMNS = {"a": slice(0, 3), "b": slice(3, 7)}
DRAWS = 4


def seen(number: int, seed: int, noise: float = 0.3) -> Traced:
    """One site tells a alone, one both; one is noise, but for what differs between combinations as a whole."""
    rng = np.random.default_rng(seed)
    every = np.array(list(itertools.product(range(3), range(3, 7))))
    rows = every[rng.integers(len(every), size=number)]
    vectors = np.eye(7)[rows].sum(1)
    tasks = np.repeat(vectors, DRAWS, axis=0)
    mixing = np.random.default_rng(99).normal(size=(7, 10))
    only_a = mixing * np.array([1, 1, 1, 0, 0, 0, 0])[:, None]
    own = np.repeat(rng.normal(size=(number, 10)), DRAWS, axis=0)

    def noisy(values: np.ndarray) -> np.ndarray:
        return values + noise * rng.normal(size=values.shape)

    return Traced(rows, {"vector": tasks, "tells a": noisy(tasks @ only_a), "tells both": noisy(tasks @ mixing),
                       "tells nothing": noisy(own)})  # fmt: skip


def test_factors_are_decoded_where_they_are_encoded():
    found = probe_sites(seen(60, 1), seen(20, 2), COLUMNS, seed=0)
    assert found["tells both"].r2["a"] > 0.8 and found["tells both"].r2["b"] > 0.8
    assert found["tells a"].r2["a"] > 0.8 and found["tells a"].r2["b"] < 0.1
    assert found["tells nothing"].r2["a"] < 0.1
    assert chosen_site(found) == "tells both"


def test_a_code_that_is_random_by_combination_is_not_decoded():
    """Where parts are told it can be known only by heart, for which the components are too few."""
    both = probe_sites(seen(60, 1), seen(20, 2), COLUMNS, seed=0)["tells both"]
    assert both.r2["a"] - both.control["a"] > 0.3
    wide = {}
    for which, number in (("test", 60), ("validation", 20)):
        some = seen(number, len(which), noise=0.01)
        own = np.repeat(np.random.default_rng(number).normal(size=(number, 400)), DRAWS, axis=0)
        wide[which] = Traced(some.rows, {"vector": some.values["vector"], "own": own})
    alone = probe_sites(wide["test"], wide["validation"], COLUMNS, seed=0)["own"]
    assert alone.control["a"] < 0.5


def test_errors_are_those_of_a_ridge_that_did_not_see_the_combination():
    """scikit-learn's, fitted on principal components of the other half (every other task), at the strength that is best on
    validation."""
    test, validation = seen(16, 5), seen(10, 6)
    read = probe_sites(test, validation, COLUMNS, seed=0)["tells both"]
    features, wanted = test.values["tells both"], test.values["vector"]
    number = np.repeat(np.arange(16), DRAWS)
    first = np.tile(np.arange(DRAWS) % 2 == 0, 16)
    for which in (0, 1):
        fit = (number % 2 == which) & first
        parts = PCA(8 // SHARE, svd_solver="full").fit(features[fit])
        probes = [make_pipeline(FunctionTransformer(parts.transform), Ridge(alpha=alpha)).fit(features[fit], wanted[fit])
                  for alpha in STRENGTHS]  # fmt: skip
        best = max(
            probes, key=lambda one: mean_r2(validation.values["vector"], one.predict(validation.values["tells both"]))
        )
        scored = number % 2 != which
        wrong = (wanted[scored] - best.predict(features[scored])) ** 2
        unknown = (wanted[scored] - wanted[number % 2 == which].mean(0)) ** 2
        for factor, where in COLUMNS.items():
            share, blind = (one[:, where].sum(1).reshape(-1, DRAWS).mean(1) for one in (wrong, unknown))
            own = np.arange(16) % 2 != which
            np.testing.assert_allclose(read.errors[factor][own], share / blind, rtol=1e-6)
            np.testing.assert_allclose(read.blind[factor][own], blind, rtol=1e-6)


def test_without_information_no_combination_is_decoded_better_than_another():
    """As a share of a common spread, frequent values would be read better by who always says the mean."""
    test, validation = seen(64, 5), seen(10, 6)
    noise = np.random.default_rng(0).normal(size=test.values["tells both"].shape) * 1e-6
    blind = Traced(test.rows, test.values | {"noise": noise})
    asked = Traced(validation.rows, validation.values | {"noise": noise[: len(validation.values["vector"])]})
    read = probe_sites(blind, asked, COLUMNS, seed=0)["noise"]
    for factor in COLUMNS:
        assert np.corrcoef(read.errors[factor], read.blind[factor])[0, 1] ** 2 < 0.1


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting(
        RunConfig.model_validate(
            {
                "family": "scenes",
                "space": {"kind": "product", "factors": {"shape": ["disc", "square"], "colour": ["red", "blue", "white"],
                                                         "place": ["top left", "top right", "middle"]}},
                "support": Random(number=6),
                "encoding": {"kind": "captions", "width": 8, "heads": 2},
                "model": {"kind": "unet", "width": 4, "condition": 8},
                "objective": {"kind": "flow-matching", "steps": 4},
            }
        )
    )  # fmt: skip


@pytest.mark.parametrize("objective", [FlowMatching(steps=4), FlowMatching(steps=3, solver="heun", guidance=1.0)])
def test_recorded_activations_are_those_of_the_generated_image(setting: Setting, objective: FlowMatching):
    network, teacher, encoder = setting.network(), setting.teacher, setting.encoder
    row = jnp.asarray(setting.regions.require("trained", 1)[0])

    @jax.jit
    def several(key):
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        images, sites = objective.watched(network, code, batch.inputs[:, :-1])
        batches = jax.tree.map(lambda leaf: leaf[None], batch)
        drawn = objective.evaluate(network, code[None], batches, key)[0]
        return (
            images,
            sites,
            drawn,
            network.trace(code, batch.inputs)[1],
            WatchTask(objective)(network, teacher, encoder, row, key),
        )

    images, sites, drawn, start, moments = several(jax.random.key(3))
    np.testing.assert_allclose(images, drawn, atol=1e-4)
    for site, values in sites.items():
        assert values.shape[:2] == (objective.steps, 1)
        np.testing.assert_allclose(values[0], start[site], rtol=1e-4, atol=1e-5)
    last = objective.steps - 1
    np.testing.assert_allclose(moments["middle @ 0.5"], sites["middle"][2, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moments["middle @ 1.0"], sites["middle"][last, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moments["reading"], sites["reading"][0, 0], rtol=1e-4, atol=1e-5)


def test_a_network_is_measured(setting: Setting):
    found = Concepts(draws=2).measure(setting, setting.network())
    columns = {name: np.array(values, dtype=object) for name, values in found.columns.items()}
    whole = columns["combination"] == ""
    assert set(columns["moment"][whole]) == {"", MEAN, *(name for name, _ in MOMENTS)}
    assert set(columns["factor"]) == {"shape", "colour", "place"}
    # The same network twice: what is read of the trained one is read of the untrained one.
    np.testing.assert_allclose(found.summary["concepts_r2"], found.summary["concepts_untrained_r2"])
    per_site = whole & (columns["network"] == "trained") & (columns["factor"] == "shape")
    assert per_site.sum() == 1 + 3 * (len(MOMENTS) + 1)
    assert sorted(columns["use"][per_site]) in (
        [*[""] * (per_site.sum() - 3), "chosen", "early", "text"],
        [*[""] * (per_site.sum() - 2), "chosen", "text"],
    )
    own = {
        use: (~whole & (columns["use"] == use) & (columns["network"] == "trained")).sum()
        for use in ("chosen", "early", "text")
    }
    assert len(set(own.values())) == 1


def test_other_networks_are_refused(tiny):
    with pytest.raises(BadInput, match="generate images"):
        Concepts().measure(Setting(tiny()), Setting(tiny()).network())
