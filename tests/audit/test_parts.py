"""Parts or combination, on simulated tables with known answers."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from recombine.audit.crossed.parts import parts_or_combination


def grid(*levels):
    return [tuple(int(v) for v in index) for index in np.ndindex(*levels)]


def chances(rng, kind, a=8, b=8):
    """Chances of success that add up in log odds, or are products of independent parts."""
    if kind == "logit":
        return 1 / (1 + np.exp(-0.5 - rng.normal(size=a)[:, None] - rng.normal(size=b)[None]))
    bad = np.where(rng.random(a) < 0.3, 0.3, 0.98), np.where(rng.random(b) < 0.3, 0.5, 1.0)
    return bad[0][:, None] * bad[1][None]


@pytest.mark.parametrize("kind", ["logit", "independent parts"])
def test_what_adds_up_under_one_link_is_no_interaction(make_cells, kind):
    """7 tables of 8 x 8 with 10 rows; of 60 with 99 draws, .05 (log odds) and none (products) were declared."""
    declared = 0
    for seed in range(7):
        rng = np.random.default_rng(seed)
        p = chances(rng, kind).ravel()
        found = parts_or_combination(
            make_cells(grid(8, 8), rng.binomial(10, p) / 10, rows=10, binary=True), 0, seed, draws=39
        )
        assert {fit.link for fit in found.fits} == {"logit", "log"}
        declared += bool(found.interaction)
        assert found.interaction or not (found.hardest_pairs or found.easiest_pairs)
    assert declared <= 2


def test_independent_parts_would_be_an_interaction_in_log_odds_alone(make_cells):
    p = np.array([0.98, 0.98, 0.98, 0.3, 0.3, 0.3])[:, None] * np.array([1, 1, 1, 0.5, 0.5, 0.5])[None]
    rng = np.random.default_rng(0)
    found = parts_or_combination(
        make_cells(grid(6, 6), rng.binomial(60, p.ravel()) / 60, rows=60, binary=True), 0, draws=99
    )
    logit, log = found.fits
    assert logit.p <= 0.02 and log.p > 0.05 and found.interaction is False
    assert found.verdict.startswith("Parts suffice: ") and "natural logarithm" in found.verdict
    assert {d.name for d in found.hardest_parts} == {f"f{f}={v}" for f in (0, 1) for v in (3, 4, 5)}


def planted(make_cells, seed, a=10, b=10, rows=10, number=8, change=-4.0):
    """A table whose parts add up in log odds, save for some pairs."""
    rng = np.random.default_rng(seed)
    effect = (1 + 0.8 * rng.normal(size=a)[:, None] + 0.8 * rng.normal(size=b)[None]).ravel()
    pairs = rng.choice(a * b, number, replace=False)
    effect[pairs] += change
    success = rng.binomial(rows, 1 / (1 + np.exp(-effect))) / rows
    cells = make_cells(grid(a, b), success, rows=rows, binary=True)
    return cells, {f"f0={pair // b} + f1={pair % b}" for pair in pairs.tolist()}


def test_planted_pairs_are_found_and_named(make_cells):
    """4 tables, 8 of 100 pairs lowered by 4 logits. Of 40 tables: all declared, .8 of pairs named, .06 of names false."""
    named, right, easy = 0, 0, 0
    for seed in range(4):
        cells, wanted = planted(make_cells, seed)
        found = parts_or_combination(cells, 0, seed, draws=39)
        assert found.interaction and "matter beyond their parts" in found.verdict
        for pair in found.hardest_pairs:
            assert pair.effect.low < pair.effect.estimate < 0 and pair.q <= 0.1
        named += len(found.hardest_pairs)
        right += sum(pair.name in wanted for pair in found.hardest_pairs)
        easy += len(found.easiest_pairs)
    assert right >= 0.6 * 4 * 8 and right >= 0.85 * named
    assert easy <= 2


def test_pairs_are_named_among_three_places(make_cells):
    rng = np.random.default_rng(1)
    rows = grid(5, 5, 4)
    effect = sum(rng.normal(size=5)[[row[slot] for row in rows]] * 0.7 for slot in range(3)) + 1
    fails = np.array([row[0] == 1 and row[1] == 2 for row in rows])
    success = rng.binomial(8, 1 / (1 + np.exp(-effect + 5 * fails))) / 8
    found = parts_or_combination(make_cells(rows, success, rows=8, binary=True), 0, draws=79)
    assert found.interaction and found.hardest_pairs[0].name == "f0=1 + f1=2"
    assert set(found.fits[0].part_variance) == {"f0", "f1", "f2"}


def test_pairs_of_sets(make_cells):
    from itertools import combinations

    rng = np.random.default_rng(2)
    rows = [tuple(f"m{v}" for v in row) for row in combinations(range(8), 3)]
    skill = dict(zip([f"m{v}" for v in range(8)], rng.normal(size=8), strict=True))
    effect = np.array([2 + sum(skill[v] for v in row) - 5 * ("m1" in row and "m4" in row) for row in rows])
    success = rng.binomial(10, 1 / (1 + np.exp(-effect))) / 10
    found = parts_or_combination(make_cells(rows, success, rows=10, binary=True, sets=True), 0, draws=79)
    assert found.interaction and found.hardest_pairs[0].name == "parts=m1 + parts=m4"


@pytest.mark.parametrize("own", [0.0, 0.8])
def test_real_scores(make_cells, own):
    """8 x 6 with 3 rows each: additive ones are rarely declared, others always."""
    declared = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        mean = rng.normal(size=8)[:, None] + rng.normal(size=6)[None] + own * rng.normal(size=(8, 6)) - 3
        rows = mean[:, :, None] + 0.5 * rng.normal(size=(8, 6, 3))
        cells = make_cells(grid(8, 6), rows.mean(2).ravel(), rows=3)
        cells.spread[:, 0] = (rows.var(2) * 3).ravel()
        found = parts_or_combination(cells, 0, seed, draws=39)
        assert [fit.link for fit in found.fits] == ["identity"]
        declared += bool(found.interaction)
    assert declared <= 2 if own == 0 else declared == 8


def test_shares_have_both_links_and_products_of_them_are_no_interaction(make_cells):
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.3, 1, 7)[:, None] * rng.uniform(0.3, 1, 7)[None]
    rows = mean[:, :, None] + 0.01 * rng.normal(size=(7, 7, 4))
    cells = make_cells(grid(7, 7), rows.mean(2).ravel(), rows=4)
    cells.spread[:, 0] = (rows.var(2) * 4).ravel()
    found = parts_or_combination(cells, 0, draws=79)
    assert [fit.link for fit in found.fits] == ["identity", "log"]
    assert found.fits[0].p <= 0.05 < found.fits[1].p and found.interaction is False


def test_scores_scale_with_their_unit(make_cells):
    rng = np.random.default_rng(3)
    mean = rng.normal(size=6)[:, None] + rng.normal(size=5)[None] + 0.7 * rng.normal(size=(6, 5))
    once, large = (
        make_cells(grid(6, 5), mean.ravel(), rows=3),
        make_cells(grid(6, 5), 1000 * mean.ravel() + 7, rows=3),
    )
    once.spread[:], large.spread[:] = 0.3, 0.3e6
    a, b = (parts_or_combination(cells, 0, draws=39) for cells in (once, large))
    assert a.fits[0].p == b.fits[0].p and a.interaction == b.interaction
    ours, theirs = a.fits[0].combination_variance, b.fits[0].combination_variance
    np.testing.assert_allclose(
        [theirs.low, theirs.estimate, theirs.high], np.array([ours.low, ours.estimate, ours.high]) * 1e6, rtol=1e-6
    )


def test_rows_that_do_not_scatter(make_cells):
    rng = np.random.default_rng(0)
    parts = rng.normal(size=5)[:, None] + rng.normal(size=5)[None]
    adding = parts_or_combination(make_cells(grid(5, 5), parts.ravel(), rows=3), 0, draws=39)
    assert adding.interaction is False and adding.verdict.startswith("Parts suffice")
    other = parts.copy()
    other[2, 3] -= 3
    found = parts_or_combination(make_cells(grid(5, 5), other.ravel(), rows=3), 0, draws=39)
    assert found.interaction and found.hardest_pairs[0].name == "f0=2 + f1=3"


def test_a_table_that_identifies_nothing_is_refused(make_cells):
    found = parts_or_combination(make_cells([(v, v) for v in range(9)], np.linspace(0, 1, 9), rows=4, binary=True), 0)
    assert found.interaction is None and not found.fits and not found.identification.identified
    assert "cannot be separated" in found.verdict and "Collect" in found.verdict
    for value in (0.0, 1.0):
        equal = parts_or_combination(make_cells(grid(4, 4), [value] * 16, rows=4, binary=True), 0)
        assert equal.interaction is None and "no difference to explain" in equal.verdict


def test_one_row_each_is_answered_with_a_warning(make_cells):
    rng = np.random.default_rng(0)
    found = parts_or_combination(make_cells(grid(9, 9), rng.integers(2, size=81), binary=True), 0, draws=39)
    assert found.interaction is not None and any("means little" in note for note in found.notes)
    json.dumps(asdict(found), allow_nan=False)


def test_many_values_are_reduced_with_a_note(make_cells):
    rng = np.random.default_rng(0)
    drawn = np.minimum(rng.zipf(1.3, size=(2500, 2)), 2500)
    rows = sorted({(int(a), int(b)) for a, b in drawn})
    found = parts_or_combination(
        make_cells(rows, rng.integers(3, size=len(rows)) / 2, rows=2, binary=True), 0, draws=19
    )
    assert "most frequent values" in found.notes[0]
    assert found.interaction is not None


def test_the_same_seed_the_same_answer(make_cells):
    cells, _ = planted(make_cells, 5, 6, 6)
    assert parts_or_combination(cells, 0, 3, draws=39) == parts_or_combination(cells, 0, 3, draws=39)


def test_progress_rises_to_the_whole(make_cells):
    cells = make_cells(grid(5, 5), np.random.default_rng(0).binomial(4, 0.6, 25) / 4, rows=4, binary=True)
    told: list[float] = []
    parts_or_combination(cells, 0, draws=19, progress=told.append)
    assert len(told) > 4 and told == sorted(told) and told[-1] == 1
