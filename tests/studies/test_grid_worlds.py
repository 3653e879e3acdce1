"""grid-worlds: preferences and goals, each with a control that differs in the family alone."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.studies.grid_worlds import WORLDS, GridWorlds


@pytest.fixture(scope="module")
def laptop() -> GridWorlds:
    return GridWorlds.profile("laptop")


def test_each_world_and_its_control_has_sixteen_replicates_of_fewest_and_most(laptop):
    for world in WORLDS:
        for name in (world, f"lookup_{world}"):
            arm = laptop.design.arms[name]
            assert len(arm.seeds) == 16 and len(arm.axes["number"]) == 2
    assert set(GridWorlds.profile("smoke").design.arms) == {"preferences", "lookup_preferences"}


@pytest.mark.parametrize("world", WORLDS)
def test_the_control_differs_from_its_world_in_the_family_alone(laptop, world):
    main, control = (laptop.design.arms[name].configs[0][0] for name in (world, f"lookup_{world}"))
    assert {k: v for k, v in main.dump().items() if k != "family"} == {
        k: v for k, v in control.dump().items() if k != "family"
    }
    assert main.family.model_dump(exclude={"kind"}) == control.family.model_dump(exclude={"kind"})
    assert control.family.kind == f"lookup-{world}"


@pytest.mark.parametrize("world", WORLDS)
def test_the_rise_is_that_of_held_out_accuracy(laptop, made, effects, words, world):
    def score(labels):
        best = labels["number"] == max(laptop.design.arms[world].axes["number"])
        rises = best and labels["arm"] == world
        return {"accuracy_in": 0.95, "accuracy_held_out": 0.2 + 0.3 * rises + 0.001 * labels["replicate"]}

    tables = made(laptop, score)
    np.testing.assert_allclose(effects(laptop, tables)[f"rises-on-{world}"], 0.3)
    verdicts = words(laptop, tables)
    assert verdicts[f"fits-on-{world}"] == verdicts[f"rises-on-{world}"] == "supported"
    assert verdicts[f"control-fails-on-{world}"] == "supported"
