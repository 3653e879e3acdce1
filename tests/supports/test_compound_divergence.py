"""The split by divergence keeps its limit, comes near its target, and its slopes are those of the divergence."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.spaces.scan import ScanSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports import compound_divergence
from recombine.supports.compound_divergence import (
    CompoundDivergence,
    _by_atom,
    _by_compound,
    _slope,
    divergence as apart,
)
from recombine.supports.scan_split import ScanSplit
from recombine.supports.scan_split.certificate import scan_certificate
from recombine.testing import check_support

SCAN = ScanSpace()


@pytest.mark.parametrize("target", [0.0, 0.2, 0.4])
def test_targets_are_met(target: float):
    support = CompoundDivergence(target=target).draw(SCAN, 1)
    found = scan_certificate(support)
    assert found["compound_divergence"] == pytest.approx(target, abs=0.01)
    assert found["atom_divergence"] <= 0.02
    assert (support.size, len(support.reserved)) == (8365, 2090)
    assert found["share_part_unseen"] == 0


@pytest.mark.slow
def test_the_maximum_is_further_apart_than_the_published_splits():
    found = scan_certificate(CompoundDivergence().draw(SCAN, 2))
    jump = scan_certificate(ScanSplit(split="add-jump").draw(SCAN, 2))
    assert found["compound_divergence"] > jump["compound_divergence"]
    assert found["atom_divergence"] <= 0.02 < jump["atom_divergence"]
    assert found["compounds_unseen"] > 0.3


def test_slopes_against_differences():
    rng = np.random.default_rng(0)
    used = [rng.integers(1, 30, (3, 2, 102)).astype(float) for _ in range(2)]
    for one in used:
        one[0, 1] = 0
    for counts, cells, distance, alpha in (
        (apart.compound_counts, _by_compound, apart.compound_divergence, apart.COMPOUND_ALPHA),
        (apart.atom_counts, _by_atom, apart.atom_divergence, apart.ATOM_ALPHA),
    ):
        slopes = [cells(one) for one in _slope([counts(one) for one in used], alpha)]
        for side in (0, 1):
            for cell in [(0, 0, 5), (1, 0, 17), (1, 1, 60), (2, 0, 101), (2, 1, 33)]:
                step = np.zeros_like(used[side])
                step[cell] = 1e-3
                high, low = (
                    distance(*[one + sign * step if n == side else one for n, one in enumerate(used)])
                    for sign in (1, -1)
                )
                assert slopes[side][cell] == pytest.approx((high - low) / 2e-3, rel=1e-3, abs=1e-10)


def test_seeds_repeat_and_differ():
    kind = CompoundDivergence(target=0.1, train=400, test=100)
    one, again, other = (kind.draw(SCAN, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.rows, again.rows)
    assert not np.array_equal(one.rows, other.rows)
    assert one.size == 400 and len(one.reserved) == 100


def test_it_is_a_component():
    check_support(CompoundDivergence(target=0.3, train=800, test=200), SCAN)


def test_impossible_splits_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compound_divergence, "STEPS", 20)
    with pytest.raises(BadInput, match="more than the 20910 commands"):
        CompoundDivergence(train=20_000, test=2_000).check(SCAN)
    with pytest.raises(BadInput, match="not defined for a space of kind"):
        CompoundDivergence().draw(SubsetSpace(modules=5, max_active=2), 0)
    with pytest.raises(BadInput, match="atom divergence of at most 1e-09"):
        CompoundDivergence(train=900, test=2, atom_limit=1e-9).draw(SCAN, 0)
    with pytest.raises(ValidationError):
        CompoundDivergence(target=1.5)


def test_all_commands_can_be_used():
    support = CompoundDivergence(target=0.05, train=18_910, test=2_000).draw(SCAN, 0)
    assert support.size + len(support.reserved) == SCAN.size
