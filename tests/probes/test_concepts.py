"""Concepts: factors are read where they are planted, by probes that never saw the combination; images are those scored."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from recombine.errors import BadInput
from recombine.objectives.flow_matching import FlowMatching
from recombine.probes.concepts import MEAN, MOMENTS, Concepts, Seen, WatchTask, chosen_site, read_sites
from recombine.probes.decodability import STRENGTHS
from recombine.probes.ridge import mean_r2
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples

LEVELS = (3, 4)
COLUMNS = {"a": slice(0, 3), "b": slice(3, 7)}
DRAWS = 4


def seen(number: int, seed: int, noise: float = 0.3) -> Seen:
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

    return Seen(rows, {"vector": tasks, "tells a": noisy(tasks @ only_a), "tells both": noisy(tasks @ mixing),
                       "tells nothing": noisy(own)})  # fmt: skip


def test_factors_are_read_where_they_are():
    found = read_sites(seen(60, 1), seen(20, 2), COLUMNS, seed=0)
    assert found["tells both"].r2["a"] > 0.8 and found["tells both"].r2["b"] > 0.8
    assert found["tells a"].r2["a"] > 0.8 and found["tells a"].r2["b"] < 0.1
    assert found["tells nothing"].r2["a"] < 0.1
    assert chosen_site(found) == "tells both"


def test_a_code_that_is_random_by_combination_is_no_part():
    """It can be known only where combinations are known as wholes: by many features of their own."""
    both = read_sites(seen(60, 1), seen(20, 2), COLUMNS, seed=0)["tells both"]
    assert both.r2["a"] - both.control["a"] > 0.3
    test, validation = seen(16, 3, noise=0.01), seen(12, 4, noise=0.01)
    rng = np.random.default_rng(8)
    wide = {
        which: np.concatenate(
            [some.values["tells both"], np.repeat(rng.normal(size=(len(some.rows), 400)), DRAWS, axis=0)],
            axis=1,
        )
        for which, some in (("test", test), ("validation", validation))
    }
    known = read_sites(
        Seen(test.rows, test.values | {"wide": wide["test"]}),
        Seen(validation.rows, validation.values | {"wide": wide["validation"]}),
        COLUMNS,
        seed=0,
    )["wide"]
    assert known.control["a"] > known.r2["a"] + 0.3


def test_errors_are_those_of_a_ridge_that_did_not_see_the_combination():
    """scikit-learn's, fitted on the other half (every other task), at the strength that is best on validation."""
    test, validation = seen(16, 5), seen(10, 6)
    read = read_sites(test, validation, COLUMNS, seed=0)["tells both"]
    features, wanted = test.values["tells both"], test.values["vector"]
    number = np.repeat(np.arange(16), DRAWS)
    first = np.tile(np.arange(DRAWS) % 2 == 0, 16)
    for which in (0, 1):
        fit = (number % 2 == which) & first
        probes = [Ridge(alpha=alpha).fit(features[fit], wanted[fit]) for alpha in STRENGTHS]
        best = max(
            probes,
            key=lambda one: mean_r2(
                validation.values["vector"], one.predict(validation.values["tells both"])
            ),
        )
        scored = number % 2 != which
        wrong = (wanted[scored] - best.predict(features[scored])) ** 2
        spread = wanted[scored].var(0)
        for factor, where in COLUMNS.items():
            share = wrong[:, where].sum(1).reshape(-1, DRAWS).mean(1) / spread[where].sum()
            np.testing.assert_allclose(read.errors[factor][np.arange(16) % 2 != which], share, rtol=1e-6)


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


@pytest.mark.parametrize("solver", ["euler", "heun"])
def test_what_is_watched_is_what_is_drawn(setting: Setting, solver):
    objective = FlowMatching(steps=4, solver=solver)
    network, teacher, encoder = setting.network(), setting.teacher, setting.encoder
    row = jnp.asarray(setting.regions.require("trained", 1)[0])

    @jax.jit
    def both(key):
        _, code, batch = draw_examples(teacher, encoder, row, key, 2)
        images, sites = objective.watched(network, code, batch.inputs[:, :-1])
        batches = jax.tree.map(lambda leaf: leaf[None], batch)
        start = network.trace(code, batch.inputs)[1]
        return images, sites, objective.evaluate(network, code[None], batches, key)[0], start

    images, sites, drawn, start = both(jax.random.key(3))
    np.testing.assert_allclose(images, drawn, atol=1e-4)
    for site, values in sites.items():
        assert values.shape[:2] == (4, 2)
        np.testing.assert_allclose(values[0], start[site], rtol=1e-4, atol=1e-5)


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
    assert (columns["chosen"][per_site]).sum() == 1


def test_the_moments_are_steps_of_the_way(setting: Setting):
    objective = FlowMatching(steps=4)
    row = jnp.asarray(setting.regions.require("trained", 1)[0])
    key = jax.random.key(5)
    found = WatchTask(objective)(setting.network(), setting.teacher, setting.encoder, row, key)
    _, code, batch = draw_examples(setting.teacher, setting.encoder, row, key, samples=1)
    _, sites = objective.watched(setting.network(), code, batch.inputs[:, :-1])
    np.testing.assert_allclose(found["middle @ 0.5"], sites["middle"][2, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["middle @ 1.0"], sites["middle"][3, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["reading"], sites["reading"][0, 0], rtol=1e-4, atol=1e-5)


def test_other_networks_are_refused(tiny):
    with pytest.raises(BadInput, match="draw images"):
        Concepts().measure(Setting(tiny()), Setting(tiny()).network())
