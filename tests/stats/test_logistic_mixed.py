"""Mixed logistic regression: against scikit-learn, against numerical integration, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate, optimize, special
from sklearn.linear_model import LogisticRegression

from recombine.errors import BadInput
from recombine.stats.logistic_mixed import fit_logistic_mixed, independent

pytestmark = pytest.mark.filterwarnings("ignore:.*penalty.*:FutureWarning")
"""scikit-learn renames its arguments; both names are of versions that tests may meet."""


def simulated(rng, groups=60, each=4, weights=(0.8, -0.5), level=0.3, spread=1.0):
    """One column that varies within groups, one that varies between them."""
    group = np.repeat(np.arange(groups), each)
    within = rng.normal(size=groups * each)
    between = rng.normal(size=groups)[group]
    odds = level + weights[0] * within + weights[1] * between + spread * rng.normal(size=groups)[group]
    y = (rng.uniform(size=len(odds)) < special.expit(odds)).astype(float)
    return {"within": within, "between": between}, y, group


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_without_spread_it_is_ordinary_regression(seed, unit):
    rng = np.random.default_rng(seed)
    columns, y, group = simulated(rng, spread=0.0)
    columns["within"] = columns["within"] * unit + 3
    found = fit_logistic_mixed(columns, y, group, spread=0.0)
    table = np.column_stack(list(columns.values()))
    # Scaled, for the solver's sake.
    oracle = LogisticRegression(penalty=None, tol=1e-10, max_iter=10_000).fit(table / [unit, 1], y)
    np.testing.assert_allclose(found.weights * [unit, 1], oracle.coef_[0], atol=1e-5)
    assert found.intercept == pytest.approx(oracle.intercept_[0], abs=1e-4)
    # The errors are those of Fisher's information.
    design = np.column_stack([np.ones(len(y)), table / [unit, 1]])
    chance = oracle.predict_proba(table / [unit, 1])[:, 1]
    information = (design * (chance * (1 - chance))[:, None]).T @ design
    errors = np.sqrt(np.diag(np.linalg.inv(information)))[1:]
    given_errors = [found.error(name) * scale for name, scale in zip(columns, (unit, 1), strict=True)]
    np.testing.assert_allclose(given_errors, errors, rtol=1e-4)


@pytest.mark.parametrize("penalty", [0.5, 5.0])
def test_the_penalty_equals_that_of_scikit_learn(penalty):
    columns, y, group = simulated(np.random.default_rng(1), spread=0.0)
    found = fit_logistic_mixed(columns, y, group, spread=0.0, penalty=penalty)
    table = np.column_stack(list(columns.values()))
    scaled = (table - table.mean(0)) / table.std(0)
    oracle = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(scaled, y)
    np.testing.assert_allclose(found.weights * table.std(0), oracle.coef_[0], atol=1e-5)


def test_the_likelihood_is_that_of_numerical_integration():
    """Groups of different sizes; the maximum of the likelihood, each group's level integrated by quad."""
    rng = np.random.default_rng(2)
    columns, y, group = simulated(rng, groups=12, each=5, spread=1.5)
    keep = rng.uniform(size=len(y)) < 0.8
    x, y, group = columns["within"][keep], y[keep], group[keep]
    members = [(x[group == one], y[group == one]) for one in np.unique(group)]

    def loss(where):
        level, weight, spread = where

        def density(u, at, outcome):
            odds = level + weight * at + spread * u
            told = float(np.sum(outcome * odds - np.logaddexp(0, odds)))
            return math.exp(told - u * u / 2) / math.sqrt(2 * math.pi)

        return -sum(math.log(integrate.quad(density, -9, 9, args=one, epsabs=1e-12)[0]) for one in members)

    oracle = optimize.minimize(loss, [0.0, 0.5, 1.0], method="BFGS", options={"gtol": 1e-4})
    found = fit_logistic_mixed({"x": x}, y, group)
    assert found.weights[0] == pytest.approx(oracle.x[1], abs=1e-3)
    assert found.intercept == pytest.approx(oracle.x[0], abs=1e-3)
    assert found.spread == pytest.approx(abs(oracle.x[2]), abs=1e-3)
    # Second derivatives by differences of the integrated likelihood.
    step, at = 1e-2, oracle.x
    curvature = np.empty((3, 3))
    for a in range(3):
        for b in range(3):
            e, f = np.eye(3)[a] * step, np.eye(3)[b] * step
            corners = loss(at + e + f) - loss(at + e - f) - loss(at - e + f) + loss(at - e - f)
            curvature[a, b] = corners / (4 * step**2)
    assert found.error("x") == pytest.approx(math.sqrt(np.linalg.inv(curvature)[1, 1]), rel=0.01)


def test_intervals_cover_and_estimates_are_right():
    """Simulated: the 95 % intervals of both columns hold the truth about 95 times in 100, and nothing is biased."""
    rounds, weights = 200, (0.8, -0.5)
    covered, found = np.zeros((rounds, 2)), np.zeros((rounds, 3))
    for number in range(rounds):
        columns, y, group = simulated(np.random.default_rng([7, number]), weights=weights)
        fit = fit_logistic_mixed(columns, y, group)
        found[number] = [*fit.weights, fit.spread]
        for place, name in enumerate(columns):
            one = fit.interval(name)
            covered[number, place] = one.low <= weights[place] <= one.high
    # Three standard errors of a share of 200: .95 +- .046.
    assert (np.abs(covered.mean(0) - 0.95) < 0.046).all(), covered.mean(0)
    error = found.std(0) / math.sqrt(rounds)
    # Maximum likelihood leans away from 0 a little in small samples.
    assert (np.abs(found.mean(0) - [*weights, 1.0]) < 3 * error + 0.05).all(), found.mean(0)


def test_ordinary_regression_would_be_too_sure():
    """What the levels are there for: without them intervals of what varies between groups are too narrow."""
    columns, y, group = simulated(np.random.default_rng(3), groups=80, each=8, spread=2.0)
    mixed, plain = (fit_logistic_mixed(columns, y, group, spread=spread) for spread in (None, 0.0))
    assert mixed.spread > 1
    assert mixed.error("between") / abs(mixed.weights[1]) > plain.error("between") / abs(plain.weights[1])
    assert mixed.error("between") > 1.5 * plain.error("between")


def test_no_spread_is_found_where_there_is_none():
    columns, y, group = simulated(np.random.default_rng(4), groups=200, spread=0.0)
    found = fit_logistic_mixed(columns, y, group)
    assert found.spread < 0.6
    plain = fit_logistic_mixed(columns, y, group, spread=0.0)
    np.testing.assert_allclose(found.weights, plain.weights, atol=0.1)


@given(st.permutations(range(24)))
@settings(derandomize=True, deadline=None, max_examples=10)
def test_the_order_of_rows_does_not_matter(order):
    columns, y, group = simulated(np.random.default_rng(5), groups=8, each=3)
    one = fit_logistic_mixed(columns, y, group, penalty=0.1)
    moved = {name: values[order] for name, values in columns.items()}
    two = fit_logistic_mixed(moved, y[order], np.array(list("abcdefgh"))[group[order]], penalty=0.1)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-5)


def test_differences_of_weights():
    columns, y, group = simulated(np.random.default_rng(6))
    one = fit_logistic_mixed(columns, y, group)
    # The same model, written so that the difference is a column of its own.
    total = {"sum": columns["within"] + columns["between"], "between": columns["between"]}
    two = fit_logistic_mixed(total, y, group)
    effect, error = one.difference("between", "within")
    assert effect == pytest.approx(two.weights[1], abs=1e-4)
    assert error == pytest.approx(two.error("between"), rel=1e-3)


def test_a_column_that_separates_the_outcomes_needs_a_penalty():
    rng = np.random.default_rng(8)
    x = rng.normal(size=60)
    y = (x > 0).astype(float)
    with pytest.raises(BadInput, match="'x' separates the outcomes"):
        fit_logistic_mixed({"x": x}, y, np.arange(60) // 2, spread=0.0)
    found = fit_logistic_mixed({"x": x}, y, np.arange(60) // 2, spread=0.0, penalty=0.1)
    assert 1 < found.weights[0] < 30 and math.isfinite(found.error("x"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y": np.ones(24)}, "All 24 outcomes are 1"),
        ({"y": np.linspace(0, 1, 24)}, "0 or 1"),
        ({"penalty": -1.0}, "0 or more"),
        ({"spread": -1.0}, "0 or more"),
        ({"group": [1, 2]}, "one label per point|has shape"),
        ({"columns": {"a": np.arange(24), "b": 3 - 2 * np.arange(24)}}, "'b' is constant, or a linear"),
        ({"columns": {"a": np.ones(24)}}, "'a' is constant, or a linear"),
        ({"columns": {"a": np.full(24, np.nan)}}, "not finite"),
    ],
)
def test_what_cannot_be_fitted_is_refused(changes, said):
    columns, y, group = simulated(np.random.default_rng(9), groups=8, each=3)
    given = {"columns": columns, "y": y, "group": group} | changes
    with pytest.raises(BadInput, match=said):
        fit_logistic_mixed(**given)


def test_independent_columns():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50)) + 1e4
    columns = {"a": a, "level": np.full(50, 3.0), "b": b, "sum": a - 3 * b + 1, "c": b + rng.normal(size=50)}
    assert independent(columns) == (["a", "b", "c"], ["level", "sum"])
    assert independent({}) == ([], [])
