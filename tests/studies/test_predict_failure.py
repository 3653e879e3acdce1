"""predict-failure: its runs, and its effects on tables in which it is known what makes a combination fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.stats.prediction import calibration_error, log_loss
from recombine.studies.base import PROFILES, Tables
from recombine.studies.predict_failure import CLAIMS, PredictFailure
from recombine.studies.predict_failure_race import CONTROL, DECIDE, FIT, PREDICTORS, cases, exchanged, raced
from recombine.studies.scale_by_coverage import ScaleByCoverage

PER_RUN = 60


def made(study, chance, inside=None, drop=None, seed=0):
    """Tables in which a combination fails by `chance(columns)` and its `error` is `inside(fails, draw)`."""
    draw = np.random.default_rng(seed)
    runs, scores, known = [], [], []
    for config, labels in study.runs():
        if drop is not None and drop(labels):
            continue
        names = {"run": config.run_id} | labels
        runs.append(names | {"status": "complete", "r2_in": 0.95})
        unmet = draw.integers(0, 4, PER_RUN)
        columns = pd.DataFrame(
            {
                "combination": [f"c{number}" for number in range(PER_RUN)],
                "parts": 3,
                "unseen": 0,
                "rarest_part": draw.integers(1, 20, PER_RUN),
                "pairs_met": 1 - unmet / 3,
                "pairs_unmet": unmet,
                "rarest_pair": np.where(unmet > 0, 0, draw.integers(1, 9, PER_RUN)),
                "distance": draw.integers(1, 3, PER_RUN),
                "size": float(labels["number"]),
                "pairs_covered": min(1.0, labels["number"] / 320),
                "triples_covered": labels["number"] / 1000,
                "smallest_eigenvalue": 0.01,
            }
        )
        if labels["role"] == CONTROL:
            fails = np.ones(PER_RUN)
        else:
            fails = (draw.random(PER_RUN) < chance(columns)).astype(float)
        wobble = draw.standard_normal(PER_RUN)
        error = np.exp(wobble if inside is None else inside(fails, wobble))
        known.append(columns.assign(error=error, **names))
        scores.append(
            pd.DataFrame(
                {"combination": columns["combination"], "region": "held_out", "score": 0.9 - 0.8 * fails}
            ).assign(**names)
        )
    empty = pd.DataFrame({"run": []})
    if not runs:
        columns = ["run", "family", "role", "support", "number", "replicate"]
        return Tables(pd.DataFrame(columns=columns), empty, empty, empty, {"readout": empty})
    return Tables(pd.DataFrame(runs), pd.concat(scores), empty, empty, {"readout": pd.concat(known)})


def by_pairs(columns):
    """Mostly by the pairs that never met."""
    return 1 / (1 + np.exp(3 - 2.5 * columns["pairs_unmet"]))


@pytest.fixture(scope="module")
def study():
    return apply(PredictFailure.profile("laptop"), ["replicates=6", "fit_replicates=3", "first_seed=0"])


@pytest.fixture(scope="module")
def tables(study):
    return made(study, by_pairs, inside=lambda fails, wobble: 2 * fails + wobble)


def values(study, tables):
    return {effect.claim.name: effect.values for effect in study.effects(tables)}


def words(study, tables):
    return {effect.claim.name: effect.judge().verdict for effect in study.effects(tables)}


# The runs


@pytest.mark.parametrize("profile", PROFILES)
def test_runs_are_unique_and_fitting_replicates_are_others_than_deciding_ones(profile):
    study = PredictFailure.profile(profile)
    runs = study.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    labels = pd.DataFrame([labels for _, labels in runs])
    seeds = {role: set(part["replicate"]) for role, part in labels.groupby("role")}
    assert seeds[DECIDE] == set(study.seeds) == seeds[CONTROL]
    assert seeds[FIT].isdisjoint(seeds[DECIDE]) and min(seeds[FIT]) > max(seeds[DECIDE])
    cells = labels[labels["role"] != CONTROL].groupby(["role", "replicate"]).size()
    assert (cells == len(study.supports)).all()
    assert not labels.duplicated().any()


def test_the_laptop_shares_its_deciding_runs_with_other_studies():
    study = PredictFailure.profile("laptop")
    assert study.replicates == 12 and study.fit_replicates == 6
    own = {
        config.run_id
        for config, labels in study.runs()
        if labels["support"] == "gaps" and labels["role"] == DECIDE
    }
    theirs = {
        config.run_id
        for config, labels in ScaleByCoverage.profile("laptop").runs()
        if (labels["width"], labels["steps"], labels["family"]) == (128, 500, "hyperteacher")
    }
    assert own == theirs
    for config, labels in study.runs():
        if labels["support"] == "random":
            assert config.model.hidden == (128,) * 3 and config.recipe.steps == 500
            assert config.support.reserve == 376 and labels["number"] in (40, 80, 160, 320)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": (80, 40)}, "smallest first"),
        ({"gap_numbers": ()}, "different"),
        ({"threshold": 1.0}, "less than 1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(PredictFailure, given)


# The cases


def test_a_case_is_a_held_out_combination_with_its_outcome(study, tables):
    trained = tables.combinations.assign(region="trained", score=0.0)
    both = Tables(
        tables.runs, pd.concat([tables.combinations, trained]), tables.probes, tables.curves, tables.others
    )
    table = cases(both, 0.5)
    assert len(table) == len(study.runs()) * PER_RUN
    assert ((table["score"] < 0.5) == (table["fails"] == 1)).all()
    readout = tables.others["readout"]
    np.testing.assert_allclose(np.sort(table["log_error"]), np.sort(np.log(readout["error"])))
    assert (cases(both, 0.95)["fails"] == 1).all()


def test_a_run_with_a_score_that_is_no_number_has_no_cases(study, tables):
    broken = tables.combinations.copy()
    first = broken["run"].iloc[0]
    broken.iloc[0, broken.columns.get_loc("score")] = np.nan
    table = cases(Tables(tables.runs, broken, tables.probes, tables.curves, tables.others), 0.5)
    assert first not in set(table["run"]) and table["run"].nunique() == len(study.runs()) - 1


# The effects


def test_where_pairs_decide_and_the_layer_shows_it_every_claim_holds(study, tables):
    found = {effect.claim.name: effect.judge() for effect in study.effects(tables)}
    assert list(found) == [claim.name for claim in CLAIMS]
    assert [name for name, verdict in found.items() if verdict.claim.primary] == ["coverage-predicts"]
    unsure = {"calibrated"}  # Few combinations in these tables.
    assert {name for name, verdict in found.items() if verdict.verdict != verdict.claim.wanted} <= unsure


def test_where_nothing_is_known_nothing_is_gained(study):
    found = words(study, made(study, lambda columns: np.full(len(columns), 0.4)))
    names = [
        "coverage-predicts",
        "coverage-tells-combinations-apart",
        "decodability-predicts",
        "decodability-adds",
    ]
    assert "supported" not in {found[name] for name in names}


def test_a_layer_that_knows_more_adds_and_one_that_knows_less_does_not(study):
    certain = made(study, by_pairs, inside=lambda fails, wobble: 6 * fails + wobble)
    found = words(study, certain)
    assert found["decodability-adds"] == "supported" and found["coverage-adds"] != "supported"
    blind = made(study, by_pairs)
    found = words(study, blind)
    assert found["decodability-adds"] != "supported" and found["coverage-adds"] == "supported"


def test_gains_are_differences_of_log_loss_on_unseen_runs(study, tables):
    found = study.race(tables)
    table = cases(tables, 0.5)
    fit, judged = table[table["role"] == FIT], table[table["role"] == DECIDE]
    base = (fit["fails"].sum() + 0.5) / (len(fit) + 1)
    assert found.base_rate == pytest.approx(base)
    for place, seed in enumerate(study.seeds):
        part = judged[judged["replicate"] == seed]
        chance = found.chances.loc[found.chances["replicate"] == seed]
        # All runs have equally many combinations here, so means of runs are means of combinations.
        base_loss = log_loss(np.full(len(part), base), part["fails"])
        assert found.base_loss[place] == pytest.approx(base_loss)
        gain = base_loss - log_loss(chance["both"], chance["fails"])
        assert found.gain["both"][place] == pytest.approx(gain)
        assert found.calibration["both"][place] == pytest.approx(
            calibration_error(chance["both"], chance["fails"])
        )
        assert found.share[place] == pytest.approx(part["fails"].mean())


def test_predictors_learn_nothing_from_the_runs_they_are_judged_on(study, tables):
    flipped = tables.combinations.copy()
    judged = (flipped["role"] == DECIDE) & (flipped["replicate"] == 0)
    flipped.loc[judged, "score"] = 1 - flipped.loc[judged, "score"]
    other = Tables(tables.runs, flipped, tables.probes, tables.curves, tables.others)
    before, after = (study.race(one).chances for one in (tables, other))
    for name in PREDICTORS:
        np.testing.assert_allclose(before[name], after[name])


def test_exchanged_outcomes_keep_each_runs_share(tables):
    table = cases(tables, 0.5)
    made = exchanged(table)
    shares = table.assign(new=made).groupby("run")[["fails", "new"]].mean()
    np.testing.assert_allclose(shares["fails"], shares["new"])
    assert (made != table["fails"]).any()
    np.testing.assert_array_equal(made, exchanged(table))


def test_a_missing_run_gives_its_replicate_no_number(study):
    def gone(labels):
        return labels["role"] == DECIDE and labels["replicate"] == 3 and labels["number"] == 128

    found = values(study, made(study, by_pairs, drop=gone))
    for name in ("fits", "coverage-predicts", "decodability-adds", "calibrated", "control-permuted"):
        assert np.isnan(found[name]).tolist() == [False] * 3 + [True] + [False] * 2, name
    assert np.isfinite(found["control-always-fails"]).all()

    def without(labels):
        return labels["role"] == CONTROL and labels["replicate"] == 1 and labels["number"] == 320

    found = values(study, made(study, by_pairs, drop=without))
    assert np.isnan(found["control-always-fails"]).tolist() == [False, True] + [False] * 4


def test_without_runs_to_fit_on_nothing_is_decided(study):
    found = values(study, made(study, by_pairs, drop=lambda labels: labels["role"] == FIT))
    assert np.isnan(found["coverage-predicts"]).all() and np.isfinite(found["fits"]).all()
    alike = values(study, made(study, lambda columns: np.ones(len(columns))))
    assert np.isnan(alike["coverage-predicts"]).all(), "where all fail there is nothing to tell apart"
    nothing = made(study, by_pairs, drop=lambda labels: True)
    assert all(np.isnan(effect.values).all() for effect in study.effects(nothing))
    assert study.overview(nothing)["gain"].isna().sum() == len(PREDICTORS)
    assert all(figure.chart.to_dict() for figure in study.figures(nothing))


def test_a_control_that_succeeds_is_found(study, tables):
    scores = tables.combinations.copy()
    scores.loc[scores["role"] == CONTROL, "score"] = 0.9
    found = words(study, Tables(tables.runs, scores, tables.probes, tables.curves, tables.others))
    assert found["control-always-fails"] == "contradicted"


def test_raced_leaves_out_what_is_not_asked_for(study, tables):
    table = cases(tables, 0.5)
    found = raced(table[table["role"] != CONTROL], len(study.supports), [1, 4])
    assert set(found.chances["replicate"]) == {1, 4} and found.gain["pairs"].shape == (2,)


def test_the_overview_and_the_figures(study, tables):
    frame = study.overview(tables)
    assert list(frame["predictor"]) == ["base rate", *PREDICTORS] and (frame["n"] == 6).all()
    gain = frame.set_index("predictor")["gain"]
    assert gain["both"] > gain["coverage"] > gain["distance"]
    found = study.figures(tables)
    assert [figure.name for figure in found] == ["gains", "calibration", "failures_by_pairs"]
    assert all(figure.chart.to_dict() and figure.caption for figure in found)
