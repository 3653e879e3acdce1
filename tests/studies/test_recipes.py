"""Two recipes are compared where their training loss is the same, not where they end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.studies.recipes import CLAIMS, COMPARED, Recipes

STUDY = Recipes.profile("smoke")


def curves(paper_ahead: float, support: str = "random") -> pd.DataFrame:
    """Held-out score as a function of the loss alone, `paper` ahead by so much; `fast` goes further and looks more often."""
    rows = []
    for seed in STUDY.seeds:
        for recipe, looks, last in (("fast", 40, 0.02), ("paper", 7, 0.05)):
            losses = np.geomspace(0.5, last, looks)
            for step, loss in enumerate(losses):
                score = -np.log(loss) + (paper_ahead if recipe == "paper" else 0.0)
                rows.append((recipe, support, seed, step, loss, score))
    return pd.DataFrame(rows, columns=["recipe", "support", "replicate", "step", "loss", "score_held_out"])


@pytest.mark.parametrize("ahead", [0.0, 0.1])
def test_matched_loss_compares_at_the_loss_that_both_reached(ahead: float):
    found = STUDY._at_matched_loss(curves(ahead), "random")
    np.testing.assert_allclose(found, -ahead, atol=1e-9)


def test_a_replicate_without_one_of_the_recipes_has_no_number():
    table = curves(0.0)
    table = table[(table["recipe"] == "fast") | (table["replicate"] != STUDY.first_seed)]
    found = STUDY._at_matched_loss(table, "random")
    assert np.isnan(found[0]) and np.isfinite(found[1:]).all()


def test_both_recipes_see_the_same_supports_and_seeds():
    runs = STUDY.runs()
    by_recipe = {
        name: {(labels["support"], labels["replicate"]) for _, labels in runs if labels["recipe"] == name}
        for name in ("fast", "paper")
    }
    assert by_recipe["fast"] == by_recipe["paper"]
    assert len(runs) == 2 * len(by_recipe["fast"])
    names = {support for support, _ in by_recipe["fast"]}
    assert all({kind, other} <= names for kind, other in COMPARED.values())


def test_every_claim_is_asked_of_both_recipes_with_the_same_margin():
    again = {
        recipe: {
            claim.name.removeprefix(f"{recipe}-"): (claim.direction, claim.margin)
            for claim in CLAIMS
            if claim.name.startswith(f"{recipe}-")
        }
        for recipe in ("fast", "paper")
    }
    assert again["fast"] == again["paper"] and len(again["fast"]) == 2 + len(COMPARED)


@pytest.mark.parametrize("changes", [{"few": 40}, {"paper": {"kind": "fast"}}])
def test_settings_that_compare_nothing_are_refused(changes: dict[str, object]):
    with pytest.raises(ValueError, match="must"):
        Recipes.model_validate(Recipes.profiles["smoke"] | changes)
