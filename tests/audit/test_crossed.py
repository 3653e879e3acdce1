"""Crossed random effects, against closed forms and dense likelihoods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from recombine.audit.crossed.bootstrap import combination_test, tables_for
from recombine.audit.crossed.design import design_of, frequent
from recombine.audit.crossed.links import Scatter
from recombine.audit.crossed.model import Crossed, Scores

GAUSS = Scatter("identity", False)


def grid(*levels):
    return [tuple(int(v) for v in index) for index in np.ndindex(*levels)]


def balanced(rng, a, b, rows, part=1.0, own=0.6, noise=0.5):
    """Means of cells of a balanced two-way table, and the mean square of rows within them."""
    means = part * rng.normal(size=a)[:, None] + part * rng.normal(size=b)[None] + own * rng.normal(size=(a, b))
    scatter = noise * rng.normal(size=(a, b, rows))
    return means + scatter.mean(2), float(scatter.var(2, ddof=1).mean())


def anova(means, noise, rows):
    """The variances of rows, columns and cells of a balanced table, by expected mean squares."""
    a, b = means.shape
    row, column = means.mean(1, keepdims=True), means.mean(0, keepdims=True)
    between = rows * ((means - row - column + means.mean()) ** 2).sum() / ((a - 1) * (b - 1))
    of_rows = rows * b * float(row.var(ddof=1))
    of_columns = rows * a * float(column.var(ddof=1))
    return (of_rows - between) / (rows * b), (of_columns - between) / (rows * a), (between - noise) / rows


@pytest.mark.parametrize("a, b, rows", [(8, 6, 3), (5, 12, 2), (20, 15, 4)])
def test_balanced_tables_have_the_anova_answer(make_cells, a, b, rows):
    rng = np.random.default_rng(a)
    drawn = [balanced(rng, a, b, rows) for _ in range(5)]
    design = design_of(make_cells(grid(a, b), drawn[0][0].ravel(), rows=rows), 0)
    means = np.stack([one[0].ravel() for one in drawn])
    found = Crossed(design, GAUSS).fit(Scores(means, np.full(a * b, float(rows)), np.array([one[1] for one in drawn])))
    for index, (mean, noise) in enumerate(drawn):
        of_rows, of_columns, own = anova(mean, noise, rows)
        assert min(of_rows, of_columns, own) > 0
        np.testing.assert_allclose(found.part_variance[index], [of_rows, of_columns], rtol=0.01)
        np.testing.assert_allclose(found.combination_variance[index], own, rtol=0.01)


def dense_reml(matrix, place, mean, count, noise):
    """Restricted maximum likelihood by brute force: log variances of each place and of the combination."""
    ones = np.ones((len(mean), 1))

    def loss(where):
        *parts, own = np.exp(where)
        v = np.diag(own + noise / count) + sum(
            part * matrix[:, place == p] @ matrix[:, place == p].T for p, part in enumerate(parts)
        )
        inverse = np.linalg.inv(v)
        information = ones.T @ inverse @ ones
        rest = mean - float((ones.T @ inverse @ mean)[0] / information[0, 0])
        return 0.5 * (np.linalg.slogdet(v)[1] + np.log(information[0, 0]) + rest @ inverse @ rest)

    best = optimize.minimize(
        loss,
        np.log([0.5] * (place.max() + 1) + [0.3]),
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-9, "maxiter": 4000},
    )
    return np.exp(best.x)


@pytest.mark.parametrize("kind", ["unbalanced", "three places", "sets"])
def test_any_design_has_the_restricted_likelihood_answer(make_cells, kind):
    rng = np.random.default_rng(3)
    if kind == "sets":
        rows = sorted(
            {
                tuple(sorted(f"{v}" for v in rng.choice(9, size=int(rng.integers(1, 4)), replace=False)))
                for _ in range(70)
            }
        )
    else:
        rows = [row for row in grid(*((9, 7) if kind == "unbalanced" else (4, 5, 3))) if rng.random() < 0.8]
    count = rng.integers(1, 5, size=len(rows))
    design = design_of(make_cells(rows, np.zeros(len(rows)), sets=kind == "sets", rows=1), 0)
    matrix = design.matrix.toarray()
    mean = matrix @ rng.normal(size=matrix.shape[1]) + rng.normal(size=len(rows)) * np.sqrt(0.5 + 0.25 / count)
    found = Crossed(design, GAUSS).fit(Scores(mean[None], count.astype(float), np.array([0.25])))
    expected = dense_reml(matrix, design.slot, mean, count, 0.25)
    np.testing.assert_allclose([*found.part_variance[0], found.combination_variance[0]], expected, rtol=0.02)


def test_leverage_effects_and_spreads_are_those_of_the_whole_system(make_cells):
    rng = np.random.default_rng(4)
    rows = [row for row in grid(6, 4, 3) if rng.random() < 0.7]
    design = design_of(make_cells(rows, np.zeros(len(rows))), 0)
    mean, count = rng.normal(size=len(rows)), np.full(len(rows), 2.0)
    found = Crossed(design, GAUSS).fit(Scores(mean[None], count, np.ones(1)), 0.3)
    x = np.column_stack([np.ones(len(rows)), design.matrix.toarray()])
    penalty = np.append(0, 1 / found.part_variance[0][design.slot])
    inverse = np.linalg.inv(x.T @ x / (0.3 + 1 / 2) + np.diag(penalty))
    np.testing.assert_allclose(found.leverage[0], np.einsum("ij,jk,ik->i", x, inverse, x), rtol=1e-8)
    np.testing.assert_allclose(found.part_spread[0], np.diag(inverse)[1:], rtol=1e-8)
    effects = inverse @ x.T @ mean / (0.3 + 1 / 2)
    np.testing.assert_allclose(found.parts[0], effects[1:], atol=1e-8)
    np.testing.assert_allclose(found.combination[0], 0.3 * (mean - x @ effects) / 0.8, atol=1e-8)


@pytest.mark.parametrize("link, binary", [("logit", True), ("log", True), ("log", False), ("identity", False)])
def test_links_invert_and_slope(link, binary):
    scatter = Scatter(link, binary)
    eta = np.linspace(-4, 0.1, 23)
    mean, slope, _ = scatter.slope_and_variance(eta, np.ones(1))
    np.testing.assert_allclose(scatter.effect(mean), eta, atol=1e-3)
    np.testing.assert_allclose(slope, (scatter.mean(eta + 1e-6) - scatter.mean(eta - 1e-6)) / 2e-6, rtol=1e-4)
    if link == "log" and binary:
        np.testing.assert_allclose(np.log(mean[eta < -0.4]), eta[eta < -0.4], atol=2e-3)


def test_a_table_has_the_same_answer_with_any_other_tables(make_cells):
    rng = np.random.default_rng(5)
    design = design_of(make_cells(grid(6, 6), np.zeros(36)), 0)
    model = Crossed(design, Scatter("logit", True))
    means, count = rng.binomial(6, rng.random((7, 36))) / 6, np.full(36, 6.0)
    together = model.fit(Scores(means, count, np.ones(7)))
    model.together = 3
    for found in (
        model.fit(Scores(means, count, np.ones(7))),
        model.fit(Scores(means[::-1], count, np.ones(7))).some(np.arange(7)[::-1]),
    ):
        np.testing.assert_allclose(found.combination_variance, together.combination_variance, rtol=1e-9)
        np.testing.assert_allclose(found.parts, together.parts, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("link", ["logit", "log"])
def test_all_wrong_and_all_right_do_not_break(make_cells, link, value):
    design = design_of(make_cells(grid(4, 4), np.zeros(16)), 0)
    found = Crossed(design, Scatter(link, True)).fit(Scores(np.full((1, 16), value), np.full(16, 5.0), np.ones(1)))
    assert np.isfinite(found.additive).all() and found.combination_variance[0] < 1e-3


def test_normal_tables_are_tested_at_their_rate_and_bounded(make_cells):
    """10 tables of 7 x 7 with 3 rows; docs/methods-audit.md has the rates of more."""
    rejected, covered = {0.0: 0, 0.8: 0}, {0.0: 0, 0.8: 0}
    design = design_of(make_cells(grid(7, 7), np.zeros(49)), 0)
    model = Crossed(design, GAUSS)
    for own in rejected:
        for seed in range(10):
            means, noise = balanced(np.random.default_rng(seed), 7, 7, 3, own=own)
            scores = Scores(means.reshape(1, -1), np.full(49, 3.0), np.array([noise]))
            found = combination_test(model, scores, 98, seed, draws=79)
            rejected[own] += found.p <= 0.05
            covered[own] += found.variance.low <= own**2 <= found.variance.high
    assert rejected[0.0] <= 3 and rejected[0.8] == 10
    assert covered[0.0] >= 8 and covered[0.8] >= 7


def test_large_tables_get_fewer_draws_and_the_most_frequent_values(make_cells):
    rng = np.random.default_rng(0)
    small = design_of(make_cells(grid(20, 20), np.zeros(400)), 0)
    assert tables_for(Crossed(small, GAUSS))[0] == 199
    rows = sorted({(int(a), int(b)) for a, b in rng.zipf(1.4, size=(6000, 2)) if max(a, b) < 3000})
    design = frequent(design_of(make_cells(rows, np.zeros(len(rows))), 0), 150)
    kept = [len(design.of(place)) for place in range(2)]
    assert min(kept) <= 150 and len(design.cells) > 300
    assert 39 <= tables_for(Crossed(design, GAUSS))[0] <= 199
