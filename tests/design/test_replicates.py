"""Statistics over replicates: rows of tables, rank correlations, sizes needed for a threshold and how they grow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.design.replicates import (
    growth_exponents,
    needed_sizes,
    one_per_run,
    rank_correlation,
    rank_correlations,
    rows_with,
)
from recombine.errors import BadInput


def curves(missing: bool = False) -> pd.DataFrame:
    """Scores that reach 0.5 at x ** 2 examples, in three replicates."""
    rows = [
        (replicate, x, size, np.nan if missing and replicate == 1 and x == 2 else 0.5 + 0.1 * np.log(size / x**2))
        for replicate in range(3)
        for x in (2, 4, 8)
        for size in (x, x**2, x**3)
    ]
    return pd.DataFrame(rows, columns=["replicate", "x", "size", "score"])


def needed(frame: pd.DataFrame) -> pd.DataFrame:
    return needed_sizes(frame, ["replicate", "x"], size="size", score="score", threshold=0.5, points=3)


def test_sizes_are_those_at_which_the_threshold_is_reached() -> None:
    found = needed(curves())
    np.testing.assert_allclose(found["needed"], found["x"] ** 2)
    assert set(found["censored"]) == {"no"}
    assert set(needed(curves().assign(score=0.1))["censored"]) == {"right"}


def test_incomplete_curves_are_left_out() -> None:
    found = needed(curves(missing=True))
    assert len(found) == 8 and not ((found["replicate"] == 1) & (found["x"] == 2)).any()
    values = growth_exponents(found, "x", range(3), rows=3)
    assert np.isnan(values[1]) and np.allclose(values[[0, 2]], 2.0)


def layers() -> Tables:
    """Two runs with two layers each."""
    rows = [(run, site, value) for run in ("a", "b") for site, value in (("first", 1.0), ("second", 2.0))]
    labels = pd.DataFrame({"run": ["a", "b"], "arm": "main", "replicate": [0, 1]})
    return Tables.from_frames(labels, {"probe": pd.DataFrame(rows, columns=["run", "site", "value"])})


def test_rows_are_chosen_by_the_values_of_their_columns() -> None:
    assert rows_with(layers(), "probe", site="first", replicate=1)["run"].tolist() == ["b"]
    assert rows_with(layers(), "probe", form="unknown").empty, "the table has no such column"
    assert rows_with(layers(), "other", site="first").empty, "there is no such table"
    assert one_per_run(layers(), "probe", site="second")["value"].tolist() == [2.0, 2.0]
    with pytest.raises(BadInput, match="Several rows of a run"):
        one_per_run(layers(), "probe", replicate=0)


def test_rank_correlations_are_within_groups_and_partial() -> None:
    draw = np.random.default_rng(0)
    group = np.repeat(range(2), 60)
    fit, noise = draw.standard_normal((2, 120))
    frame = pd.DataFrame({"replicate": np.tile(range(12), 10), "group": group, "fit": fit, "x": 5.0 * group + fit})
    frame = frame.assign(y=5.0 * group + fit + noise, z=5.0 * group + noise)
    inside = [part["x"].corr(part["y"], method="spearman") for _, part in frame.groupby("group")]
    assert rank_correlation(frame, "x", "y", ["group"]) == pytest.approx(np.mean(inside), abs=0.02)
    assert abs(rank_correlation(frame, "x", "z", ["group"])) < 0.25, "only the group makes them go together"
    assert abs(rank_correlation(frame.assign(x=fit + draw.standard_normal(120)), "x", "y", ["group"], ["fit"])) < 0.25
    assert np.isnan(rank_correlation(frame.head(2), "x", "y", ["group"])), "too few"
    assert np.isnan(rank_correlation(frame.assign(x=1.0), "x", "y", ["group"])), "nothing varies"
    values = rank_correlations(frame, "x", "y", ["group"], range(12), rows=10)
    assert values.mean() == pytest.approx(rank_correlation(frame, "x", "y", ["group"]), abs=0.03)
    missing = frame.assign(y=frame["y"].where(frame.index != 3))
    assert np.flatnonzero(np.isnan(rank_correlations(missing, "x", "y", ["group"], range(12), rows=10))).tolist() == [3]
