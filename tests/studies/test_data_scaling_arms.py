"""data-scaling's further arms: the grid worlds, and how the number needed grows with the space."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from recombine.overrides import apply
from recombine.stats.verdicts import settle
from recombine.studies import data_scaling_arms as arms
from recombine.studies.base import Tables
from recombine.studies.data_scaling import DataScaling

WORLDS = ("preferences", "goals")


@pytest.fixture(scope="module")
def laptop() -> DataScaling:
    return apply(DataScaling.profile("laptop"), ["first_seed=0"])


def tables(study, exponent=0.5, noise=0.0, factor=3.0, fits=0.95):
    """Spaces that need factor x size ** exponent combinations for the threshold; grid worlds whose accuracy rises by .3."""
    draw = np.random.default_rng(0)
    rows = []
    for config, labels in study.runs():
        values: dict[str, float] = {}
        if labels["arm"] == "spaces":
            wanted = factor * labels["size"] ** exponent * math.exp(noise * draw.standard_normal())
            values["r2_held_out"] = study.threshold + 0.1 * math.log(labels["number"] / wanted)
            values["r2_in"] = fits
        if labels["arm"] in WORLDS:
            numbers = {"preferences": study.preference_numbers, "goals": study.goal_numbers}
            best = labels["number"] == max(numbers[labels["arm"]])
            rises = best and labels["family"] == labels["arm"]
            values |= {"accuracy_in": 0.8, "accuracy_held_out": 0.2 + 0.3 * rises}
        rows.append({"run": config.run_id, "status": "complete"} | labels | values)
    empty = pd.DataFrame({"run": []})
    curves = pd.DataFrame(columns=["run", "replicate", "space", "number", "step", "loss", "score_held_out"])
    return Tables(pd.DataFrame(rows), empty, empty, curves)


def test_the_arms_are_in_the_laptop_profile_and_not_in_the_demo(laptop):
    labels = [labels for _, labels in laptop.runs()]
    assert {one["arm"] for one in labels} == {"main", *WORLDS, "spaces"}
    for world in WORLDS:
        assert len({one["replicate"] for one in labels if one["arm"] == world}) == 8
    assert len({config.run_id for config, _ in laptop.runs()}) == len(labels)
    assert {one["arm"] for _, one in DataScaling.profile("demo").runs()} == {"main"}


@pytest.mark.parametrize("world", WORLDS)
def test_the_control_of_the_grid_world_differs_in_nothing_else(laptop, world):
    runs = [(config, labels) for config, labels in laptop.runs() if labels["arm"] == world]
    main, control = (
        next(config for config, labels in runs if labels["family"] == family)
        for family in (world, f"lookup-{world}")
    )
    without = {"family", "support"}
    assert {k: v for k, v in main.dump().items() if k not in without} == {
        k: v for k, v in control.dump().items() if k not in without
    }
    assert main.family.model_dump(exclude={"kind"}) == control.family.model_dump(exclude={"kind"})


def test_the_slope_is_found_with_censored_numbers(laptop):
    frames = tables(laptop, exponent=0.5, noise=0.05)
    found = arms.needed(frames, laptop.threshold)
    assert len(found) == 12 * len(laptop.growth)
    effects = {one.claim.name: one for one in laptop.effects(frames)}
    slopes = effects["sub-exponential"].values
    assert np.mean(slopes) == pytest.approx(0.5, abs=0.1)
    assert effects["sub-exponential"].judge().verdict == "supported"


def test_networks_that_do_not_fit_decide_nothing_about_data(laptop):
    """A network that cannot reach the threshold on its own training tasks lacks something else than data."""
    for fits, verdict in ((0.95, "supported"), (0.8, "inconclusive")):
        effects = laptop.effects(tables(laptop, noise=0.05, fits=fits))
        found = {one.claim.name: one for one in settle([one.judge() for one in effects])}
        assert found["sub-exponential"].verdict == verdict


def test_proportional_growth_is_not_called_slower(laptop):
    effects = {
        one.claim.name: one for one in laptop.effects(tables(laptop, exponent=1.0, noise=0.05, factor=0.3))
    }
    assert effects["sub-exponential"].judge().verdict != "supported"


@pytest.mark.parametrize("world", WORLDS)
def test_the_rise_in_a_grid_world_is_that_of_held_out_accuracy(laptop, world):
    effects = {one.claim.name: one.values for one in laptop.effects(tables(laptop))}
    assert effects[f"fits-on-{world}"] == pytest.approx(0.8)
    assert effects[f"rises-on-{world}"] == pytest.approx(0.3)
    assert effects[f"control-fails-on-{world}"] == pytest.approx(0.0)
    assert len(effects[f"rises-on-{world}"]) == 8
