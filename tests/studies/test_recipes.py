"""recipes: the two recipes are compared where their training loss is the same, not where they end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.studies.recipes import COMPARED, Recipes, difference_at_matched_loss

STUDY = Recipes.profile("smoke")


def curves(paper_ahead: float):
    """The held-out score as a function of the loss alone, `paper` ahead by a constant; `fast` goes further and is evaluated
    more often."""

    def curve(labels):
        evaluations, last = (40, 0.02) if labels["arm"] == "fast" else (7, 0.05)
        losses = np.geomspace(0.5, last, evaluations)
        scores = -np.log(losses) + (paper_ahead if labels["arm"] == "paper" else 0.0)
        return pd.DataFrame({"step": range(evaluations), "loss": losses, "score_held_out": scores})

    return curve


@pytest.mark.parametrize("ahead", [0.0, 0.1])
def test_matched_loss_compares_at_the_loss_that_both_reached(ahead, made, effects):
    found = effects(STUDY, made(STUDY, lambda labels: {}, curves=curves(ahead)))
    for name in ("equivalent-at-matched-loss", "equivalent-at-matched-loss-with-few"):
        np.testing.assert_allclose(found[name], -ahead, atol=1e-9)


def test_a_replicate_without_one_of_the_recipes_has_no_number(made):
    def partial(labels):
        lacks = labels["arm"] == "paper" and labels["replicate"] == STUDY.first_seed
        return curves(0.0)(labels)[: 0 if lacks else None]

    data = STUDY.design.data(made(STUDY, lambda labels: {}, curves=partial))
    found = difference_at_matched_loss(data["fast"], data["paper"], "random").reindex(list(STUDY.seeds))
    assert np.isnan(found.iloc[0]) and np.isfinite(found.iloc[1:]).all()


def test_both_recipes_see_the_same_supports_and_seeds():
    runs = STUDY.design.runs
    by_recipe = {
        name: {(labels["support"], labels["replicate"]) for _, labels in runs if labels["arm"] == name}
        for name in ("fast", "paper")
    }
    assert by_recipe["fast"] == by_recipe["paper"]
    assert len(runs) == 2 * len(by_recipe["fast"])
    names = {support for support, _ in by_recipe["fast"]}
    assert all({kind, other} <= names for kind, other in COMPARED.values())


def test_every_claim_is_asked_of_both_recipes_with_the_same_margin():
    again = {
        recipe: {
            claim.name.removeprefix(f"{recipe}-"): (claim.test.direction, claim.test.margin)
            for claim in STUDY.design.claims
            if claim.name.startswith(f"{recipe}-")
        }
        for recipe in ("fast", "paper")
    }
    assert again["fast"] == again["paper"] and len(again["fast"]) == 2 + len(COMPARED)


def test_effects_of_one_recipe_are_those_of_its_runs(made, effects):
    def combinations(labels):
        score = {"halves": 0.3, "random-as-halves": 0.8}.get(labels["support"], 0.6) - (
            0.1 if labels["arm"] == "paper" and labels["support"] == "halves" else 0.0
        )
        sums = {"error": 1 - score, "spread": 1.0, "agreement": 0.0, "power": 1.0}
        return pd.DataFrame([{"combination": "0+1", "region": "held_out", **sums}])

    def score(labels):
        few, paper = labels["support"] == "random-few", labels["arm"] == "paper"
        return {"score_in": 0.9 - 0.2 * few * paper, "score_held_out": 0.8 - 0.5 * few + 0.1 * few * paper}

    found = effects(STUDY, made(STUDY, score, combinations=combinations))
    expected = {"disconnected-hurts": (0.5, 0.6), "missing-part-hurts": (0, 0), "fits": (0.9, 0.7)}
    for name, values in (expected | {"rises": (0.5, 0.4)}).items():
        for recipe, value in zip(("fast", "paper"), values, strict=True):
            np.testing.assert_allclose(found[f"{recipe}-{name}"], value, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("changes", [{"few": 40}, {"paper": {"kind": "fast"}}])
def test_settings_that_compare_nothing_are_refused(changes):
    with pytest.raises(ValueError, match="must"):
        Recipes.model_validate(Recipes.profiles["smoke"] | changes)
