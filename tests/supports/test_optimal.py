"""Rivals of a plan: each is best by its own criterion, and none touches the reserve."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet
from recombine.spaces.subset import SubsetSpace
from recombine.supports.optimal import CRITERIA, RIDGE, Optimal
from recombine.supports.random import Random

MODULES = SubsetSpace(modules=8, max_active=3)


@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_the_reserve_is_that_of_random_and_is_left_alone(criterion: str):
    kind = Optimal(criterion=criterion, number=14, reserve=40)  # type: ignore[arg-type]
    support = kind.draw(MODULES, 3)
    np.testing.assert_array_equal(
        support.reserved, Random(number=14, reserve=40, require_connected=False).draw(MODULES, 3).reserved
    )
    assert support.size == 14 and not RowSet(support.reserved).contains(support.rows).any()
    assert (support.rows < MODULES.width).all(), "combinations of the largest size only"
    again = kind.draw(MODULES, 3)
    np.testing.assert_array_equal(support.rows, again.rows)


@pytest.mark.parametrize("criterion", ["d", "e"])
def test_each_step_is_the_best_by_brute_force(criterion: str):
    """Determinant and eigenvalue computed afresh for every candidate."""
    pool = np.array(list(itertools.combinations(range(6), 3)))
    rng = np.random.default_rng(0)
    chosen = pool[rng.choice(len(pool), 9, replace=False)]
    ones = np.zeros((9, 6))
    np.put_along_axis(ones, chosen, 1, axis=1)
    met = ones.T @ ones

    def value(row: np.ndarray) -> float:
        z = np.zeros(6)
        z[row] = 1
        after = met + np.outer(z, z)
        if criterion == "d":
            return float(np.linalg.slogdet(after + RIDGE * np.eye(6))[1])
        return float(np.linalg.eigvalsh(after)[0])

    values = np.array([value(row) for row in pool])
    scores = CRITERIA[criterion](met, pool)  # type: ignore[index]
    assert values[np.argmax(scores)] == pytest.approx(values.max())
    order = np.argsort(values)
    assert (np.diff(scores[order]) > -1e-9).all(), "the same order"


def test_usage_is_balanced_and_pair_poor_meets_fewer_pairs():
    space = SubsetSpace(modules=16, max_active=3)
    shares = {}
    for criterion in ("usage", "pair-poor", "d"):
        certificate = Optimal(criterion=criterion, number=40, reserve=300).draw(space, 5).certificate((2,))  # type: ignore[arg-type]
        shares[criterion] = certificate.coverage_of(2).share
        if criterion != "d":
            assert certificate.balanced
    assert shares["pair-poor"] < shares["usage"] - 0.1 < shares["d"] - 0.1


def test_large_spaces_are_not_listed():
    space = ProductSpace(factors={f"f{place}": 10 for place in range(8)})
    support = Optimal(criterion="usage", number=20).draw(space, 1)
    usage = np.array(support.certificate((1,)).usage) * 20
    drawn = np.array(Random(number=20, require_connected=False).draw(space, 1).certificate((1,)).usage) * 20
    assert support.size == 20 and usage.std() < 0.7 * drawn.std()


def test_more_than_there_are_is_refused():
    with pytest.raises(BadInput):
        Optimal(number=60, reserve=40).draw(MODULES, 0)
