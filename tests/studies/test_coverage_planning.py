"""A plan and its rivals: equal budgets, one reserve, and doublings that are counted right."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from recombine.studies.base import Tables
from recombine.studies.coverage_planning import CLAIMS, CoveragePlanning

STUDY = CoveragePlanning.profile("smoke")
NONE = pd.DataFrame()


def tables(score) -> Tables:
    """What the study would read if every run scored `score(arm, support, budget)`."""
    rows = [
        labels
        | {name: score(labels["arm"], labels["support"], labels["budget"]) for name in
           ("score_held_out", "score_in", "score_all_pairs_met", "correlation_held_out")}
        for _, labels in STUDY.runs()
    ]  # fmt: skip
    return Tables(pd.DataFrame(rows), NONE, NONE, NONE)


def effects(score) -> dict[str, np.ndarray]:
    return {effect.claim.name: effect.values for effect in STUDY.effects(tables(score))}


def test_supports_of_a_cell_cost_the_same_and_share_their_reserve():
    cells = defaultdict(list)
    for config, labels in STUDY.runs():
        support = config.support.draw(config.space, config.seeds.support)
        cells[labels["arm"], labels["budget"], labels["replicate"]].append((labels["support"], support))
    for (arm, budget, _), supports in cells.items():
        first = supports[0][1]
        for name, support in supports:
            np.testing.assert_array_equal(support.reserved, first.reserved)
            assert not support.contains(support.reserved).any()
            if arm != "changes":
                assert support.size == budget, name


def test_changes_are_not_exceeded():
    for config, labels in STUDY.runs():
        if labels["arm"] == "changes":
            rows = config.support.draw(config.space, config.seeds.support).rows
            spent = config.space.slots + (rows[1:] != rows[:-1]).sum()
            assert spent <= labels["budget"], labels


@pytest.mark.parametrize(("better", "doublings"), [(1.0, 0.0), (12 / 8, np.log2(12 / 8))])
def test_a_plan_that_needs_a_share_of_the_combinations_saves_its_doublings(better: float, doublings: float):
    """The score is a straight line over log numbers; a plan is as good as `better` times as many random ones."""

    def score(arm: str, support: str, budget: int) -> float:
        return float(np.log2(budget * (better if support == "planned" else 1.0)))

    found = effects(score)["planned-needs-fewer"]
    np.testing.assert_allclose(found, doublings, atol=1e-9)


def test_claims_compare_what_they_say():
    heights = {"planned": 0.8, "random": 0.5, "usage": 0.6, "pair-poor": 0.3, "d-optimal": 0.79, "e-optimal": 0.7,
               "planned-triples": 0.81, "stair": 0.6, "L": 0.55, "walk": 0.65, "diagonal": 0.2}  # fmt: skip
    found = {
        name: values.mean() for name, values in effects(lambda arm, support, budget: heights[support]).items()
    }
    expected = {
        "planned-beats-random": 0.3,
        "more-than-balance": 0.2,
        "pairs-and-not-balance": 0.5,
        "like-d-optimal": 0.01,
        "better-than-e-optimal": 0.1,
        "triples-are-not-needed": 0.01,
        "stair-beats-random-by-changes": 0.1,
        "stair-beats-l-by-changes": 0.05,
        "walk-beats-stair-by-changes": 0.05,
        "preferences-planned-beats-random": 0.3,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name
    assert set(found) == {claim.name for claim in CLAIMS}


def test_a_failed_run_leaves_no_number_in_its_replicate():
    whole = tables(lambda arm, support, budget: float(budget))
    runs = whole.runs.copy()
    lost = (
        (runs["arm"] == "modules") & (runs["support"] == "planned") & (runs["replicate"] == STUDY.first_seed)
    )
    runs.loc[lost, "score_held_out"] = np.nan
    found = {e.claim.name: e.values for e in STUDY.effects(dataclasses.replace(whole, runs=runs))}
    assert np.isnan(found["planned-needs-fewer"][0]) and np.isfinite(found["planned-needs-fewer"][1:]).all()


@pytest.mark.parametrize("changes", [{"numbers": (8, 12)}, {"product_numbers": (18, 9)}])
def test_sizes_that_compare_nothing_are_refused(changes: dict[str, object]):
    with pytest.raises(ValueError, match="smallest first"):
        CoveragePlanning.model_validate(CoveragePlanning.profiles["smoke"] | changes)
