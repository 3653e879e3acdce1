"""predict-failure: its runs, and its effects on tables in which it is known what makes a combination fail."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.design.study import PROFILES
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.predict_failure import NAMES, PREDICTORS, PredictFailure, cases
from recombine.studies.scale_by_coverage import ScaleByCoverage

PER_RUN = 60
Labels = dict[str, Any]
World = Callable[..., Tables]
Effects = Callable[..., dict[str, Any]]


def by_pairs(columns: pd.DataFrame) -> Any:
    """Mostly by the pairs that never met."""
    return 1 / (1 + np.exp(3 - 2.5 * columns["pairs_unmet"]))


@pytest.fixture(scope="module")
def study() -> PredictFailure:
    return apply(PredictFailure.profile("laptop"), ["replicates=6", "fit_replicates=3", "first_seed=0"])


@pytest.fixture(scope="module")
def world(study: PredictFailure, made: World) -> World:
    """Tables in which a combination fails by `chance(columns)` and the probe's `error` is `inside(fails, noise)`."""

    def build(
        chance: Callable[[pd.DataFrame], Any] = by_pairs,
        inside: Callable[..., Any] = lambda fails, noise: noise,
        drop: Callable[[Labels], bool] = lambda labels: False,
        score: Callable[[Labels, pd.DataFrame], Any] = lambda labels, table: 0.9 - 0.8 * table["fails"],
    ) -> Tables:
        def readout(labels: Labels) -> pd.DataFrame:
            rng = np.random.default_rng(zlib.crc32(repr(labels).encode()))
            unmet = rng.integers(0, 4, PER_RUN)
            columns = {
                "combination": [f"c{number}" for number in range(PER_RUN)],
                "parts": 3,
                "unseen": 0,
                "rarest_part": rng.integers(1, 20, PER_RUN),
                "pairs_met": 1 - unmet / 3,
                "pairs_unmet": unmet,
                "rarest_pair": np.where(unmet > 0, 0, rng.integers(1, 9, PER_RUN)),
                "distance": rng.integers(1, 3, PER_RUN),
                "size": float(labels["number"]),
                "pairs_covered": min(1.0, labels["number"] / 320),
                "triples_covered": labels["number"] / 1000,
                "smallest_eigenvalue": 0.01,
            }
            table = pd.DataFrame(columns)
            fails = (rng.random(PER_RUN) < (1.0 if labels["arm"] == "lookup" else chance(table))).astype(float)
            table = table.assign(fails=fails, error=np.exp(inside(fails, rng.standard_normal(PER_RUN))))
            return table.head(0) if drop(labels) else table

        def combinations(labels: Labels) -> pd.DataFrame:
            table = readout(labels)
            return table[["combination"]].assign(region="held_out", score=score(labels, table))

        def summary(labels: Labels) -> dict[str, float]:
            return {"r2_in": np.nan if drop(labels) else 0.95}

        return made(
            study, summary, combinations=combinations, readout=lambda labels: readout(labels).drop(columns="fails")
        )

    return build


@pytest.fixture(scope="module")
def tables(world: World) -> Tables:
    return world(inside=lambda fails, noise: 2 * fails + noise)


# The runs


@pytest.mark.parametrize("profile", PROFILES)
def test_runs_are_unique_and_fitting_replicates_are_others_than_deciding_ones(profile: str):
    study = PredictFailure.profile(profile)
    runs = study.design.runs
    assert len({config.run_id for config, _ in runs}) == len(runs)
    labels = pd.DataFrame([labels for _, labels in runs])
    seeds = {arm: set(part["replicate"]) for arm, part in labels.groupby("arm")}
    assert seeds["decide"] == set(study.seeds) == seeds["lookup"]
    assert seeds["fit"].isdisjoint(seeds["decide"]) and min(seeds["fit"]) > max(seeds["decide"])
    cells = labels[labels["arm"] != "lookup"].groupby(["arm", "replicate"]).size()
    assert (cells == len(study.numbers) + len(study.gap_numbers)).all()
    assert not labels.duplicated().any()


def test_the_laptop_shares_its_deciding_runs_with_other_studies():
    study = PredictFailure.profile("laptop")
    assert study.replicates == 12 and study.fit_replicates == 6
    decide = [(config, labels) for config, labels in study.design.runs if labels["arm"] == "decide"]
    own = {config.support for config, labels in decide if labels["support"] == "gaps"}
    theirs = {config.support for config, _ in ScaleByCoverage.profile("laptop").runs()}
    assert own <= theirs
    for config, labels in study.design.runs:
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
def test_sizes_that_make_no_sense_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(BadInput, match=message):
        validate(PredictFailure, given)


# The cases


def test_a_case_is_a_held_out_combination_with_its_outcome(study: PredictFailure, tables: Tables):
    trained = tables.combinations.assign(region="trained", score=0.0)
    frames = {"combinations": pd.concat([tables.combinations, trained]), "readout": tables["readout"]}
    both = Tables.from_frames(tables.labels, frames)
    table = cases(both, 0.5)
    assert len(table) == len(study.design.runs) * PER_RUN
    assert ((table["score"] < 0.5) == (table["fails"] == 1)).all()
    np.testing.assert_allclose(np.sort(table["log_error"]), np.sort(np.log(tables["readout"]["error"])))
    assert (cases(both, 0.95)["fails"] == 1).all()


def test_a_run_with_a_score_that_is_no_number_has_no_cases(study: PredictFailure, tables: Tables):
    broken = tables.combinations.copy()
    first = broken["run"].iloc[0]
    broken.iloc[0, broken.columns.get_loc("score")] = np.nan
    table = cases(Tables.from_frames(tables.labels, {"combinations": broken, "readout": tables["readout"]}), 0.5)
    assert first not in set(table["run"]) and table["run"].nunique() == len(study.design.runs) - 1


# The effects


def test_where_pairs_decide_and_the_layer_shows_it_every_claim_holds(study: PredictFailure, tables: Tables):
    verdicts = {effect.claim.name: effect.judge() for effect in study.design.effects(tables)}
    assert [name for name, verdict in verdicts.items() if verdict.claim.primary] == ["coverage-predicts"]
    unsure = {"calibrated"}  # Few combinations in these tables.
    assert {name for name, verdict in verdicts.items() if verdict.verdict != verdict.claim.wanted} <= unsure


def test_where_nothing_is_known_nothing_is_gained(study: PredictFailure, world: World, words: Effects):
    verdicts = words(study, world(lambda columns: np.full(len(columns), 0.4)))
    names = ["coverage-predicts", "coverage-tells-combinations-apart", "decodability-predicts", "decodability-adds"]
    assert "supported" not in {verdicts[name] for name in names}


def test_a_layer_that_knows_more_adds_and_one_that_knows_less_does_not(
    study: PredictFailure, world: World, words: Effects
):
    certain = words(study, world(inside=lambda fails, noise: 6 * fails + noise))
    assert certain["decodability-adds"] == "supported" and certain["coverage-adds"] != "supported"
    blind = words(study, world())
    assert blind["decodability-adds"] != "supported" and blind["coverage-adds"] == "supported"


def test_effects_are_gains_of_the_race(study: PredictFailure, tables: Tables, effects: Effects):
    values, arms = effects(study, tables), study.design.data(tables)
    race = study.race(arms["decide"], arms["fit"])
    assert list(race.gain.index) == list(study.seeds)
    np.testing.assert_array_equal(values["coverage-predicts"], race.gain["coverage"])
    np.testing.assert_array_equal(values["decodability-predicts"], race.gain["decodability"])
    np.testing.assert_array_equal(values["decodability-adds"], race.gain["both"] - race.gain["coverage"])
    np.testing.assert_array_equal(values["coverage-adds"], race.gain["both"] - race.gain["decodability"])
    apart = race.gain["coverage"] - race.gain["certificate"]
    np.testing.assert_array_equal(values["coverage-tells-combinations-apart"], apart)
    np.testing.assert_array_equal(values["calibrated"], race.calibration["both"])
    np.testing.assert_array_equal(values["some-fail-and-some-do-not"], np.minimum(race.share, 1 - race.share))
    permuted = study.race(arms["decide"], arms["fit"], permuted=True).gain
    np.testing.assert_array_equal(values["control-permuted"], permuted["both"] - permuted["certificate"])


def test_a_missing_run_gives_its_replicate_no_number(study: PredictFailure, world: World, effects: Effects):
    def decides(labels: Labels) -> bool:
        return (labels["arm"], labels["replicate"], labels["number"]) == ("decide", 3, 128)

    values = effects(study, world(drop=decides))
    for name in ("fits", "coverage-predicts", "decodability-adds", "calibrated", "control-permuted"):
        assert np.isnan(values[name]).tolist() == [False] * 3 + [True] + [False] * 2, name
    assert np.isfinite(values["control-always-fails"]).all()

    def controls(labels: Labels) -> bool:
        return (labels["arm"], labels["replicate"], labels["number"]) == ("lookup", 1, 320)

    values = effects(study, world(drop=controls))
    assert np.isnan(values["control-always-fails"]).tolist() == [False, True] + [False] * 4


def test_without_runs_to_fit_on_nothing_is_decided(study: PredictFailure, world: World, effects: Effects):
    values = effects(study, world(drop=lambda labels: labels["arm"] == "fit"))
    assert np.isnan(values["coverage-predicts"]).all() and np.isfinite(values["fits"]).all()
    alike = effects(study, world(lambda columns: np.ones(len(columns))))
    assert np.isnan(alike["coverage-predicts"]).all(), "where all fail there is nothing to tell apart"
    nothing = world(drop=lambda labels: True)
    assert all(np.isnan(values).all() for values in effects(study, nothing).values())
    assert study.design.overview(nothing)["fails"].isna().all()
    assert all(figure.chart.to_dict() for figure in study.design.figures(nothing))


def test_a_control_that_succeeds_is_found(study: PredictFailure, world: World, words: Effects):
    succeeds = world(score=lambda labels, table: np.where(labels["arm"] == "lookup", 0.9, 0.9 - 0.8 * table["fails"]))
    assert words(study, succeeds)["control-always-fails"] == "contradicted"


def test_the_overview_and_the_figures(study: PredictFailure, tables: Tables):
    overview = study.design.overview(tables)
    assert (overview.loc[overview["arm"] == "lookup", "fails"] == 1).all()
    assert overview["fails"].between(0.2, 1).all()
    figures = study.design.figures(tables)
    assert [figure.name for figure in figures] == ["gains", "calibration", "failures_by_pairs"]
    assert all(figure.chart.to_dict() and figure.caption for figure in figures)
    assert list(NAMES) == list(PREDICTORS) and all(words in str(figures[0].chart.to_dict()) for words in NAMES.values())
