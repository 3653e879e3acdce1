"""The race of predictors over replicates: scores on unseen runs, complete replicates only, permuted outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.stats.prediction import calibration_error, log_loss
from recombine.stats.replicate_race import permute_within_runs, race_by_replicate

PREDICTORS = {"known": ("x",), "noise": ("z",), "both": ("x", "z")}
RUNS = 3
PER_RUN = 50


def made(replicates: range, seed: int = 0) -> pd.DataFrame:
    """Combinations that fail mostly where x is large."""
    rng = np.random.default_rng(seed)
    count = len(replicates) * RUNS * PER_RUN
    x, z = rng.normal(size=(2, count))
    return pd.DataFrame(
        {
            "replicate": np.repeat(list(replicates), RUNS * PER_RUN),
            "run": [f"r{seed} {number // PER_RUN}" for number in range(count)],
            "fails": (rng.random(count) < 1 / (1 + np.exp(-2 * x))).astype(float),
            "x": x,
            "z": z,
        }
    )


FIT, SCORED = made(range(10, 13), 1), made(range(4), 2)


def test_gains_are_differences_of_log_loss_on_unseen_runs():
    result = race_by_replicate(FIT, SCORED, PREDICTORS, runs=RUNS)
    base = (FIT["fails"].sum() + 0.5) / (len(FIT) + 1)
    assert result.base_rate == pytest.approx(base)
    for replicate, part in SCORED.groupby("replicate"):
        chance = result.chances[result.chances["replicate"] == replicate]
        np.testing.assert_array_equal(chance["fails"], part["fails"])
        # All runs have equally many combinations here, so means of runs are means of combinations.
        base_loss = log_loss(np.full(len(part), base), part["fails"])
        assert result.base_loss[replicate] == pytest.approx(base_loss)
        assert result.share[replicate] == pytest.approx(part["fails"].mean())
        for name in PREDICTORS:
            gain = base_loss - log_loss(chance[name], chance["fails"])
            assert result.gain[name][replicate] == pytest.approx(gain)
            error = calibration_error(chance[name], chance["fails"])
            assert result.calibration[name][replicate] == pytest.approx(error)
    assert result.gain["known"].min() > 0.1 > 0.02 > result.gain["noise"].abs().max()


def test_predictors_learn_nothing_from_the_runs_they_are_scored_on():
    flipped = SCORED.assign(fails=1 - SCORED["fails"])
    before, after = (race_by_replicate(FIT, scored, PREDICTORS, runs=RUNS).chances for scored in (SCORED, flipped))
    for name in PREDICTORS:
        np.testing.assert_allclose(before[name], after[name])


def test_an_incomplete_replicate_is_left_out():
    result = race_by_replicate(FIT, SCORED[SCORED["run"] != "r2 4"], PREDICTORS, runs=RUNS)
    assert list(result.gain.index) == list(result.share.index) == list(result.calibration.index) == [0, 2, 3]
    assert set(result.chances["replicate"]) == {0, 2, 3}
    fewer = race_by_replicate(FIT[FIT["run"] != "r1 0"], SCORED, PREDICTORS, runs=RUNS)
    kept = FIT[FIT["replicate"] > 10]
    assert fewer.base_rate == pytest.approx((kept["fails"].sum() + 0.5) / (len(kept) + 1))


def test_permuted_outcomes_keep_the_share_of_each_run():
    permuted = permute_within_runs(SCORED)
    shares = SCORED.assign(permuted=permuted).groupby("run")[["fails", "permuted"]].mean()
    np.testing.assert_allclose(shares["fails"], shares["permuted"])
    assert (permuted != SCORED["fails"]).any()
    np.testing.assert_array_equal(permuted, permute_within_runs(SCORED))
    result = race_by_replicate(FIT, SCORED, PREDICTORS, runs=RUNS, permuted=True)
    assert result.gain["known"].abs().max() < 0.05


@pytest.mark.parametrize(
    ("fit", "scored"), [(FIT.head(0), SCORED), (FIT, SCORED.head(0)), (FIT.assign(fails=1.0), SCORED.assign(fails=1.0))]
)
def test_nothing_to_fit_to_score_or_to_tell_apart_gives_no_numbers(fit: pd.DataFrame, scored: pd.DataFrame):
    result = race_by_replicate(fit, scored, PREDICTORS, runs=RUNS)
    for frame in (result.base_loss, result.share, result.gain, result.calibration, result.chances):
        assert len(frame) == 0
    assert list(result.gain.columns) == list(PREDICTORS) and np.isnan(result.base_rate)
