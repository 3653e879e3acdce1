"""The table of factors: against closed forms, brute force and simulations."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.audit.effects.sizes import spread_size
from recombine.audit.effects.table import effects_finding
from recombine.audit.reading.read import read_cells


def read(rows, columns=("a", "b", "y"), **more):
    table = pd.DataFrame(rows, columns=list(columns))
    return table, read_cells(table, factors=list(columns[:-1]), scores=["y"], **more)


def by_name(cells):
    return {effect.name: effect for effect in effects_finding(cells, 0).effects}


def test_two_by_two_is_the_closed_form():
    rng = np.random.default_rng(0)
    rows = [
        (a, b, rng.normal(0.3 * (a == "r") - 0.5 * (a == "r" and b == "v"), 0.4))
        for a in "gr" for b in "uv" for _ in range(7)
    ]  # fmt: skip
    table, cells = read(rows)
    found = by_name(cells)
    groups = table.groupby(["a", "b"]).y
    mean, pooled = groups.mean(), float(groups.var().mean())
    contrast = mean["r", "v"] - mean["r", "u"] - mean["g", "v"] + mean["g", "u"]
    half = stats.t.ppf(0.975, 24) * np.sqrt(4 * pooled / 7)
    size = found["a x b"].size
    assert [size.estimate, size.low, size.high] == pytest.approx([contrast, contrast - half, contrast + half])
    main = mean["r"].mean() - mean["g"].mean()
    error = np.sqrt(pooled / 7)
    assert found["a"].size.estimate == pytest.approx(main) and found["a"].contrast == "r minus g"
    assert found["a"].p == pytest.approx(2 * stats.t.sf(abs(main) / error, 24))
    assert len(found["a x b"].worse) + len(found["a x b"].better) <= 2


def test_two_by_three_is_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    rows = [
        (a, b, rng.normal(0.3 * (a == "r") + 0.4 * (b == "w") * (a == "g"), 0.3))
        for a in "gr" for b in "uvw" for _ in range(5)
    ]  # fmt: skip
    table, cells = read(rows)
    found = by_name(cells)
    means = table.groupby(["a", "b"]).y.mean().unstack()
    left = (
        means.to_numpy()
        - means.mean(axis=1).to_numpy()[:, None]
        - means.mean(axis=0).to_numpy()
        + means.to_numpy().mean()
    )
    pooled = float(table.groupby(["a", "b"]).y.var().mean())
    for name, squares, freedom in (
        ("a x b", float((left**2).sum()), 2),
        ("b", 2 * float(((means.mean(axis=0) - means.to_numpy().mean()) ** 2).sum()), 2),
    ):
        ratio = 5 * squares / freedom / pooled
        assert found[name].p == pytest.approx(stats.f.sf(ratio, freedom, 24)), name
        expected = np.sqrt(max(0.0, squares - freedom * pooled / 5) / 6)
        size = found[name].size
        assert size.low <= size.estimate <= size.high
        assert size.estimate == pytest.approx(np.clip(expected, size.low, size.high))
        if size.low > 0:
            assert stats.ncf.cdf(ratio, freedom, 24, size.low**2 * 6 / (pooled / 5)) == pytest.approx(0.975, abs=1e-6)
        assert stats.ncf.cdf(ratio, freedom, 24, size.high**2 * 6 / (pooled / 5)) <= 0.025 + 1e-6


def test_unbalanced_tables_are_those_of_brute_force():
    rng = np.random.default_rng(2)
    rows = [row for row in itertools.product("abcd", "uvw", "xyz") if rng.random() < 0.9]
    values = [0.3 * (a == "b") + 0.5 * (a == "c" and b == "v") + 0.1 * rng.normal() for a, b, _ in rows]
    _, cells = read([(*row, y) for row, y in zip(rows, values, strict=True)], ("a", "b", "c", "y"))
    found = by_name(cells)

    def squares(*terms):
        columns = [np.ones(len(rows))]
        for term in terms:
            keys = [tuple(row["abc".index(name)] for name in term) for row in rows]
            columns += [np.array([key == level for key in keys], float) for level in sorted(set(keys))]
        fit = np.linalg.lstsq(np.stack(columns, 1), values, rcond=None)
        return float(((np.stack(columns, 1) @ fit[0] - values) ** 2).sum()), fit[2]

    additive, rank = squares("a", "b", "c")
    whole, whole_rank = squares("a", "b", "c", "ab")
    variance, freedom = whole / (len(rows) - whole_rank), len(rows) - whole_rank
    ratio = (additive - whole) / (whole_rank - rank) / variance
    assert found["a x b"].freedom == whole_rank - rank
    assert found["a x b"].p == pytest.approx(stats.f.sf(ratio, whole_rank - rank, freedom))
    without, less = squares("b", "c")
    assert found["a"].freedom == rank - less
    ratio = (without - additive) / (rank - less) / (additive / (len(rows) - rank))
    assert found["a"].p == pytest.approx(stats.f.sf(ratio, rank - less, len(rows) - rank))
    assert found["a x b"].better[0].name == "a=c + b=v"


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_intervals_of_a_spread_contain_it(spread):
    rng = np.random.default_rng(3)
    effects = rng.normal(size=6)
    effects = spread * (effects - effects.mean()) / effects.std()
    low = high = 0
    for _ in range(400):
        means = effects + rng.normal(0, 0.5, 6)
        squares = float(((means - means.mean()) ** 2).sum())
        variance = 0.25 * rng.chisquare(20) / 20
        size, _ = spread_size(squares, 5, (variance, 20.0), 6, "")
        low += size.low > spread
        high += size.high < spread
    assert low <= 20 and high <= 20, "2.5 % of 400 are 10, with a standard deviation of 3"


def test_single_rows_of_two_factors_leave_interactions_unknown():
    _, cells = read([(a, b, float(ord(a) * ord(b) % 7)) for a in "gr" for b in "uvw"])
    found = effects_finding(cells, 0)
    assert not [effect for effect in found.effects if effect.kind == "pair"] and "Unknown which factors" in found.note


def test_lower_is_better_turns_the_sign():
    rows = [(a, b, c, 0.5 * (a == "r") + 0.01 * i) for i, (a, b, c) in enumerate(itertools.product("gr", "uvw", "xyz"))]
    up, down = (by_name(read(rows, ("a", "b", "c", "y"), lower_is_better=low)[1]) for low in (False, True))
    assert up["a"].size.estimate == pytest.approx(-down["a"].size.estimate)
