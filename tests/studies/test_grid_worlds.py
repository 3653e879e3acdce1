"""grid-worlds: preferences and goals, each with a control that differs in the family alone."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.component import find, kinds
from recombine.errors import BadInput
from recombine.studies.grid_worlds import WORLDS, GridWorlds


@pytest.fixture(scope="module")
def laptop() -> GridWorlds:
    return GridWorlds.profile("laptop")


def test_each_world_and_its_control_has_fewest_and_most_in_all_replicates(laptop):
    for world, replicates in (("preferences", 12), ("goals", 8)):
        for name in (world, f"lookup_{world}"):
            arm = laptop.design.arms[name]
            assert len(arm.seeds) == replicates and len(arm.axes["number"]) == 2
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


def test_a_part_of_the_design_decides_a_claim_as_the_whole_does(laptop, made):
    def score(labels):
        rising = 0.2 + 0.01 * labels["number"] if labels["arm"] == "preferences" else 0.1
        return {"accuracy_in": 0.95, "accuracy_held_out": rising + 0.001 * labels["replicate"]}

    whole, part = laptop.design, laptop.design.for_claims("rises-on-preferences")
    assert list(part.arms) == ["preferences"] and set(part.run_ids) < set(whole.run_ids)
    assert [claim.name for claim in part.claims] == ["fits-on-preferences", "rises-on-preferences"]
    tables = made(laptop, score)
    expected = {effect.claim.name: effect.values for effect in whole.effects(tables)}
    for effect in part.effects(tables):
        np.testing.assert_array_equal(effect.values, expected[effect.claim.name])
    with pytest.raises(BadInput, match="no claim 'rises'"):
        whole.for_claims("rises")


def test_every_claim_of_every_study_says_which_arms_it_reads():
    for name in kinds("studies"):
        design = find("studies", name).profile("smoke").design
        for claim in design.claims:
            assert claim.effect.arms and claim.effect.arms <= set(design.arms), (name, claim.name)
