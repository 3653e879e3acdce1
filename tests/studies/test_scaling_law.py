"""scaling-law: its grid, and its effects on tables that follow a known law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.design.study import PROFILES
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.stats.law_of_runs import (
    combinations_needed,
    errors,
    exponents,
    mean_law,
    needed_in_words,
    number_of_weights,
)
from recombine.stats.scaling_law import REACH
from recombine.studies.scaling_law import ScalingLaw
from recombine.training.prepare import Setting

FLOOR = 0.02


def law(number, parameters, floor=FLOOR):
    return floor + 30 * number**-1.2 + 20 * parameters**-0.6


@pytest.fixture(scope="module")
def with_law(made):
    """Tables of a study whose losses follow a law, with noise; the control has correlation and R2 at zero."""

    def make(study, loss=law, noise=0.005, control=None, drop=lambda labels: False, held_out=None):
        draw = np.random.default_rng(0)

        def score(labels):
            wobble = draw.standard_normal(2)
            if labels["arm"] == "lookup":
                scores = {
                    "r2_in": 0.8,
                    "r2_held_out": -0.2 + 0.01 * wobble[0],
                    "correlation_held_out": 0.01 * wobble[1],
                }
                scores |= control(labels) if control else {}
            else:
                value = loss(labels["number"], study.weights(labels["width"])) * np.exp(noise * wobble[0])
                scores = {"r2_in": 0.95, "r2_held_out": 1 - value}
                if held_out is not None and labels["arm"] == "larger":
                    scores["r2_held_out"] = held_out
            return {name: np.nan if drop(labels) else value for name, value in scores.items()}

        return made(study, score)

    return make


@pytest.fixture(scope="module")
def study():
    return apply(ScalingLaw.profile("laptop"), ["replicates=4", "first_seed=0"])


@pytest.fixture(scope="module")
def tables(study, with_law):
    return with_law(study)


def forecasts(study, tables):
    data = study.design.data(tables)
    return study.forecasts(data["fitted"], data["larger"])


def main_runs(study, tables):
    data = study.design.data(tables)
    return study.both(data["fitted"], data["larger"])


def values(study, tables):
    return {effect.claim.name: effect.values for effect in study.design.effects(tables)}


def verdicts(study, tables):
    return {effect.claim.name: effect.judge() for effect in study.design.effects(tables)}


# The grid


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_held_out_reaches_four_times_what_is_fitted(profile):
    study = ScalingLaw.profile(profile)
    sizes = {
        arm: pd.DataFrame(
            [
                (labels["number"], study.weights(labels["width"]), labels["replicate"])
                for _, labels in study.design.arms[arm].runs
            ],
            columns=["number", "parameters", "replicate"],
        )
        for arm in ("fitted", "larger")
    }
    for size in ("number", "parameters"):
        most = sizes["fitted"][size].max()
        assert sizes["larger"][size].max() >= REACH * most
        assert sizes["larger"][size].max() <= 1.2 * REACH * most, "not much beyond what may be asked"
    assert (sizes["fitted"].groupby("replicate").size() >= 6).all(), "a law has five unknowns"
    assert len(sizes["larger"]) >= (20 if profile != "smoke" else 5)
    assert study.replicates >= {"laptop": 12}.get(profile, 2)


def test_runs_are_unique_and_the_widest_are_the_shared_ones():
    design = ScalingLaw.profile("laptop").design
    assert len(design.run_ids) == len(design.runs)
    wide = [(config, labels) for config, labels in design.runs if labels["width"] == 128]
    assert {labels["number"] for _, labels in wide} == {40, 80, 160, 320}
    for config, _ in wide:
        assert (config.model.depth, config.recipe.steps, config.support.reserve) == (3, 500, 376)
    control = {(labels["width"], labels["number"]) for _, labels in design.arms["lookup"].runs}
    assert control == {(128, number) for number in (40, 80, 160, 320)}


def test_weights_are_counted_as_the_network_has_them(study):
    import equinox as eqx
    import jax

    config, labels = study.design.runs[0]
    leaves = jax.tree.leaves(eqx.filter(Setting(config).network(), eqx.is_inexact_array))
    width = labels["width"]
    assert number_of_weights(config) == sum(leaf.size for leaf in leaves) == study.weights(width)
    assert study.weights(width) == (32 * width + width) + 2 * (width * width + width) + (16 * width + 16)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": (40, 40, 80)}, "different sizes"),
        ({"widths": (32, 58)}, "at least 3"),
        ({"larger_numbers": (120, 160)}, "4 times"),
        ({"larger_widths": (100,)}, "4 times"),
        ({"wide_numbers": (41,)}, "some of the numbers"),
        ({"wide_numbers": ()}, "some of the numbers"),
        ({"wide_numbers": (80,)}, "four numbers"),
        ({"targets": (1.0,)}, "less than 1"),
    ],
)
def test_grids_that_cannot_be_judged_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(ScalingLaw, given)


# The effects


def test_where_the_law_holds_every_claim_is_supported(study, tables):
    found = verdicts(study, tables)
    assert list(found) == [claim.name for claim in study.design.claims]
    assert [name for name, verdict in found.items() if verdict.claim.primary] == ["beats-last-value"]
    # Four replicates do not decide a share or a score that is equal in all of them; and here the terms do add up.
    unsure = {"intervals-are-honest", "terms-do-not-add-up", "fits", "control-is-learned"}
    assert found["terms-do-not-add-up"].verdict == "equivalent"
    assert {name for name, verdict in found.items() if verdict.verdict != verdict.claim.wanted} <= unsure
    assert all(verdict.replicates == 4 for verdict in found.values())
    assert (values(study, tables)["intervals-are-honest"] >= -0.6).all()


def test_forecasts_and_errors_are_those_of_the_law_and_of_the_rules(study, with_law):
    tables = with_law(study, noise=0.0)
    table = forecasts(study, tables)
    assert len(table) == 4 * (3 * 2 + 4)
    assert table["law_error"].max() < 0.02, "without noise the law is found"
    row = table[(table["number"] == 320) & (table["larger"] == "both")].iloc[0]
    assert row["loss"] == pytest.approx(law(320, study.weights(128)))
    assert row["last"] == pytest.approx(law(80, study.weights(58))), "the nearest run that was fitted"
    assert row["last_error"] == pytest.approx(np.log(row["last"] / row["loss"]))
    counts = table[table["replicate"] == 0]["larger"].value_counts().to_dict()
    assert counts == {"number": 6, "both": 2, "parameters": 2}
    assert table["law_error"].max() == pytest.approx(np.abs(np.log(table["law"] / table["loss"])).max())
    expected = (table["last_error"] - table["law_error"]).groupby(table["replicate"]).mean()
    np.testing.assert_allclose(values(study, tables)["beats-last-value"], expected)


def test_held_out_runs_do_not_move_a_forecast(study, tables, with_law):
    before, after = forecasts(study, tables), forecasts(study, with_law(study, held_out=0.123))
    for name in ("law", "low", "high", "last", "line"):
        np.testing.assert_array_equal(before[name], after[name])
    np.testing.assert_allclose(after["loss"], 0.877)


def test_where_nothing_changes_the_law_does_not_beat_the_last_value(study, with_law):
    flat = with_law(study, loss=lambda number, parameters: 0.5)
    found = verdicts(study, flat)
    assert found["beats-last-value"].verdict in ("equivalent", "inconclusive", "contradicted")
    assert found["more-combinations-help"].verdict != "supported"


def test_a_product_instead_of_a_sum_is_found(study, with_law):
    product = with_law(study, loss=lambda number, parameters: 2000 * number**-0.8 * parameters**-0.6, noise=0.001)
    assert verdicts(study, product)["terms-do-not-add-up"].verdict == "supported"
    assert verdicts(study, product)["beats-a-line"].verdict == "contradicted", "a line is that very law"


def test_an_exponent_may_be_negative(study, with_law):
    worse = with_law(study, loss=lambda number, parameters: 0.01 * number**0.5 * parameters**0.1, noise=0.0)
    np.testing.assert_allclose(values(study, worse)["more-combinations-help"], -0.5, atol=1e-6)


def test_a_control_that_promises_something_is_found(study, with_law):
    def rises(labels):
        return {"r2_held_out": 1 - 20 * labels["number"] ** -0.9, "correlation_held_out": 0.4}

    six = apply(study, ["replicates=6"])  # The scores are equal in all replicates: fewer decide nothing.
    found = verdicts(six, with_law(six, control=rises))
    assert found["control-promises-nothing"].verdict == "contradicted"
    assert found["control-stays-at-zero"].verdict == "contradicted"


def test_a_missing_run_gives_its_replicate_no_number(study, with_law):
    def gone(labels):
        return labels["replicate"] == 2 and labels["arm"] == "fitted" and labels["number"] == 40

    found = values(study, with_law(study, drop=gone))
    needing = {"beats-last-value", "beats-a-line", "intervals-are-honest", "more-combinations-help"}
    for name in needing:
        assert np.isnan(found[name]).tolist() == [False, False, True, False], name
    assert np.isfinite(found["control-promises-nothing"]).all()

    def failed(labels):
        return labels["replicate"] == 1 and labels["arm"] == "lookup" and labels["number"] == 80

    found = values(study, with_law(study, drop=failed))
    assert np.isnan(found["control-promises-nothing"]).tolist() == [False, True, False, False]
    assert np.isfinite(found["control-stays-at-zero"]).all() and np.isfinite(found["beats-last-value"]).all()


def test_no_runs_no_effects_but_an_overview_and_figures(study, made):
    none = made(study, lambda labels: {})
    assert all(np.isnan(effect.values).all() for effect in study.design.effects(none))
    assert study.design.overview(none)["forecast"].isna().all()
    figures = study.design.figures(none)
    assert all(figure.chart.to_dict() for figure in figures) and "no answer" in figures[0].caption


def test_errors_are_distances_of_logarithms():
    table = pd.DataFrame({"loss": [0.2], "law": [0.1], "last": [0.4], "line": [0.2], "low": [0.1], "high": [0.2]})
    found = errors(table).iloc[0]
    assert (found["law_error"], found["last_error"]) == pytest.approx((np.log(2), np.log(2)))
    assert found["line_error"] == 0 and found["inside"] == 1


def test_the_exponent_is_that_of_the_power(study, with_law):
    powers = with_law(study, loss=lambda number, parameters: 5 * number**-0.7 * parameters**-0.3, noise=0.0)
    np.testing.assert_allclose(exponents(main_runs(study, powers), range(4), 9), 0.7, atol=1e-9)


# The answers


def test_how_many_combinations_are_needed(study, with_law):
    runs = main_runs(study, with_law(study, noise=0.0))
    weights = study.weights(128)
    target = 1 - law(200, weights)
    found = combinations_needed(runs, target)
    assert found.number == pytest.approx(200, rel=0.02) and found.status == "reachable"
    assert found.low <= found.number <= found.high
    assert combinations_needed(runs, 1 - law(100, 20_000), parameters=20_000).number == pytest.approx(100, rel=0.02)


def test_what_cannot_be_answered_is_refused_in_words(study, with_law):
    runs = main_runs(study, with_law(study, noise=0.0))
    with pytest.raises(BadInput, match="needs about"):
        combinations_needed(runs, 1 - law(3000, study.weights(128)))
    with pytest.raises(BadInput, match="below 1"):
        combinations_needed(runs, 1.0)
    assert combinations_needed(runs, 1 - FLOOR / 2).status == "below the floor"
    fitted = mean_law(runs)
    weights, size = fitted.largest[1], 696
    assert needed_in_words(fitted, 1 - law(3000, weights), weights, size).startswith("no answer")
    assert "no number of combinations" in needed_in_words(fitted, 1 - FLOOR / 2, weights, size)
    assert "40 or fewer" in needed_in_words(fitted, 1 - law(30, weights), weights, size)
    assert needed_in_words(fitted, 1 - law(200, weights), weights, size).startswith("about 2")
    assert "more than the 696" in needed_in_words(fitted, 1 - law(900, weights), weights, size)


def test_the_overview_has_the_cells_and_the_forecasts(study, tables):
    frame = study.design.overview(tables)
    assert len(frame) == sum(len(arm.cells) for arm in study.design.arms.values())
    assert (frame["n"] == 4).all() and frame["r2_held_out"].notna().all()
    assert (frame["forecast"].notna() == (frame["arm"] == "larger")).all()


def test_the_figures_draw(study, tables):
    found = study.design.figures(tables)
    assert [figure.name for figure in found] == ["scaling_law", "forecast_errors"]
    assert all(figure.chart.to_dict() and figure.caption for figure in found)
    assert "R² 0.9:" in found[0].caption
