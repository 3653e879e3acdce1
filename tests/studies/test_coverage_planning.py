"""coverage-planning: equal budgets, one reserve, and doublings that are counted right."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from recombine.studies.coverage_planning import CoveragePlanning

STUDY = CoveragePlanning.profile("smoke")
COLUMNS = ("score_held_out", "score_in", "score_all_pairs_met", "correlation_held_out")


@pytest.fixture(scope="module")
def scored(made):
    """Tables in which every run scores `score(labels)` on all columns."""
    return lambda score: made(STUDY, lambda labels: dict.fromkeys(COLUMNS, score(labels)))


def test_supports_of_a_cell_cost_the_same_and_share_their_reserve():
    cells = defaultdict(list)
    for config, labels in STUDY.design.runs:
        support = config.support.draw(config.space, config.seeds.support)
        budget = labels.get("number", labels.get("changes"))
        cells[labels["arm"], budget, labels["replicate"]].append((labels["support"], support))
    for (arm, budget, _), supports in cells.items():
        first = supports[0][1]
        for name, support in supports:
            np.testing.assert_array_equal(support.reserved, first.reserved)
            assert not support.contains(support.reserved).any()
            if arm != "changes":
                assert support.size == budget, name


def test_changes_are_not_exceeded():
    runs = STUDY.design.arms["changes"].runs
    assert {config.support.strategy for config, _ in runs} == {"random", "diagonal", "L", "stair", "walk"}
    for config, labels in runs:
        assert config.support.strategy == labels["support"]
        rows = config.support.draw(config.space, config.seeds.support).rows
        spent = config.space.slots + (rows[1:] != rows[:-1]).sum()
        assert spent <= labels["changes"], labels


@pytest.mark.parametrize(("better", "doublings"), [(1.0, 0.0), (12 / 8, np.log2(12 / 8))])
def test_a_plan_that_needs_a_share_of_the_combinations_saves_its_doublings(better, doublings, scored, effects):
    """The score is linear in the logarithm of the number; a plan is as good as `better` times as many random ones."""

    def score(labels):
        number = labels.get("number", 1)
        return float(np.log2(number * (better if labels["support"] == "planned" else 1.0)))

    found = effects(STUDY, scored(score))["planned-needs-fewer"]
    np.testing.assert_allclose(found, doublings, atol=1e-9)


def test_claims_compare_what_they_say(scored, effects):
    heights = {
        "planned": 0.8,
        "random": 0.5,
        "usage": 0.6,
        "pair-poor": 0.3,
        "d-optimal": 0.79,
        "e-optimal": 0.7,
        "planned-triples": 0.81,
        "stair": 0.6,
        "L": 0.55,
        "walk": 0.65,
        "diagonal": 0.2,
    }
    # Offsets that cancel within a cell: only supports of one arm and one budget are compared.
    offsets = {"modules": 0.0, "lookup": 0.01, "product": 0.02, "changes": 0.03, "preferences": 0.04}
    found = effects(
        STUDY,
        scored(lambda labels: heights[labels["support"]] + offsets[labels["arm"]] + labels.get("number", 0) / 100),
    )
    expected = {
        "fits": 0.3 + 0.08,
        "planned-needs-fewer": found["planned-needs-fewer"].mean(),
        "planned-beats-random": 0.3,
        "more-than-balance": 0.2,
        "pairs-and-not-balance": 0.5,
        "like-d-optimal": 0.01,
        "better-than-e-optimal": 0.1,
        "triples-are-not-needed": 0.01,
        "breadth-costs-depth": np.nan,
        "no-gain-with-many": 0.3,
        "product-planned-beats-random": 0.3,
        "stair-beats-random-by-changes": 0.1,
        "stair-beats-l-by-changes": 0.05,
        "walk-beats-stair-by-changes": 0.05,
        "preferences-planned-beats-random": 0.3,
        "control-gains-nothing": 0.3,
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        first = found[name][0] if found[name].ndim == 2 else found[name]  # R2 is the first of the scales.
        assert first.mean() == pytest.approx(value, nan_ok=True), name


def test_depth_is_compared_on_combinations_that_both_supports_cover(made, effects):
    """The plan is .2 worse where both cover; combinations that only one of them covers do not count."""

    def rows(labels):
        strata = {"planned": ("all_pairs_met", "all_pairs_met", "all_pairs_met", "some_pairs_unmet")}
        planned = labels["support"] == "planned"
        return pd.DataFrame(
            {
                "combination": ["ab", "cd", "ef", "gh"],
                "region": "held_out",
                "stratum": strata.get(labels["support"], ("all_pairs_met", "all_pairs_met", *["some_pairs_unmet"] * 2)),
                "error": [0.3, 0.3, 9.0, 9.0] if planned else [0.1, 0.1, 9.0, 9.0],
                "spread": 1.0,
                "ratio": 0.5,
            }
        )

    found = effects(STUDY, made(STUDY, lambda labels: dict.fromkeys(COLUMNS, 0.5), combinations=rows))
    np.testing.assert_allclose(found["breadth-costs-depth"][0], -0.2)


def test_a_failed_run_leaves_no_number_in_its_replicate(scored, effects):
    def score(labels):
        failed = (labels["arm"], labels["support"], labels["replicate"]) == ("modules", "planned", STUDY.first_seed)
        return np.nan if failed else float(labels.get("number", 0))

    found = effects(STUDY, scored(score))["planned-needs-fewer"]
    assert np.isnan(found[0]) and np.isfinite(found[1:]).all()


def test_without_runs_nothing_is_decided_and_figures_are_drawn(made, effects):
    none = made(STUDY, lambda labels: {})
    assert all(np.isnan(values).all() for values in effects(STUDY, none).values())
    names = [figure.name for figure in STUDY.design.figures(none)]
    assert names == ["score_by_number", "score_by_stratum", "score_by_changes"]


def test_replicates_of_preferences_are_their_own():
    study = CoveragePlanning.profile("laptop")
    assert len(study.design.arms["preferences"].seeds) == 8 and len(study.design.arms["modules"].seeds) == 36


@pytest.mark.parametrize("changes", [{"numbers": (8, 12)}, {"product_numbers": (18, 9)}])
def test_sizes_that_compare_nothing_are_refused(changes):
    with pytest.raises(ValueError, match="smallest first"):
        CoveragePlanning.model_validate(CoveragePlanning.profiles["smoke"] | changes)
