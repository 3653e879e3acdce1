"""Refit: against a known readout, and what it refuses."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from recombine.errors import BadInput
from recombine.families.sprites import Sprites
from recombine.models.convnet import Convnet
from recombine.probes.refit import Refit, refitted
from recombine.probes.ridge import STRENGTHS
from recombine.spaces.product import ProductSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SPACE = ProductSpace(factors={"shape": ["disc", "square"], "size": 3, "column": 4, "row": 4})  # type: ignore[arg-type]
DRAWS = 2


@functools.cache
def every_example() -> tuple[np.ndarray, np.ndarray]:
    """Targets and labels of one example of every combination."""
    teacher = Sprites().draw(SPACE, jax.random.key(0))
    make = jax.vmap(lambda row: teacher.batch(teacher.task(row, jax.random.key(0)), jax.random.key(0), 1))
    batch = jax.jit(make)(jnp.asarray(SPACE.enumerate()))
    assert batch.labels is not None
    return np.asarray(batch.targets[:, 0]), np.asarray(batch.labels[:, 0])


def examples(number: int, noise: float, seed: int) -> dict[str, np.ndarray]:
    """Sites that are a random linear map of the targets, with noise."""
    rng = np.random.default_rng(seed)
    chosen = np.repeat(rng.permutation(SPACE.size)[:number], DRAWS)
    targets, labels = (values[chosen] for values in every_example())
    site = targets @ np.random.default_rng(0).normal(size=(9, 12)) + 1
    site = site + noise * rng.normal(size=site.shape)
    return {"site": site, "targets": targets, "mask": np.ones(len(site)), "labels": labels}


def test_a_readout_finds_what_is_linear_in_the_deepest_layer():
    found = refitted(Sprites(), examples(40, 0.0, 1), examples(20, 0.0, 2), DRAWS)
    assert found["r2"] > 0.999 and found["success"] == 1
    blurred = refitted(Sprites(), examples(40, 50.0, 1), examples(20, 50.0, 2), DRAWS)
    assert blurred["r2"] < 0.1


def test_equals_a_cross_fitted_ridge_of_scikit_learn():
    test, validation = examples(30, 2.0, 3), examples(16, 2.0, 4)
    half = np.arange(len(test["site"])) // DRAWS % 2
    said = np.empty(test["targets"].shape)
    for which in (0, 1):
        fits = [Ridge(one).fit(test["site"][half != which], test["targets"][half != which]) for one in STRENGTHS]
        best = min(fits, key=lambda fit: ((fit.predict(validation["site"]) - validation["targets"]) ** 2).sum())
        said[half == which] = best.predict(test["site"][half == which])
    error = ((said - test["targets"]) ** 2).sum() / len(said)
    assert refitted(Sprites(), test, validation, DRAWS)["r2"] == pytest.approx(1 - error / 4, abs=1e-4)


def config(**changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "family": Sprites(),
        "space": SPACE,
        "support": Random(held_out=0.5),
        "model": Convnet(width=2, levels=2, hidden=8),
    }
    return RunConfig(**fields | changes)


def test_an_untrained_network_equals_its_own_control():
    setting = Setting(config())
    found = Refit(draws=2).measure(setting, setting.network()).summary
    assert {name for name in found if not name.endswith("_untrained")} >= {"refit_r2", "refit_success"}
    for name in [name for name in found if not name.endswith("_untrained")]:
        assert found[name] == found[f"{name}_untrained"]


def test_too_few_combinations_and_classes_are_refused():
    setting = Setting(config(support=Random(number=90)))
    with pytest.raises(BadInput, match="a readout needs 16"):
        Refit().measure(setting, setting.network())
    goals = Setting(RunConfig(family="goals"))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="refit needs numbers"):
        Refit().measure(goals, goals.network())
