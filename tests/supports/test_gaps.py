"""A random list with gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.gaps import Gaps
from recombine.supports.regions import STRATA, Regions
from recombine.testing import check_support

SPACE = SubsetSpace(modules=16, max_active=3)


def test_conforms():
    check_support(Gaps(number=100, reserve=100), SPACE)
    check_support(Gaps(number=40, pairs=3, reserve=20), ProductSpace(factors={"colour": 5, "shape": 5, "size": 4}))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), parts=st.integers(0, 2), pairs=st.integers(0, 12))
def test_the_gaps_are_there_and_nothing_else_is_missing(seed, parts, pairs):
    support = Gaps(number=150, parts=parts, pairs=pairs, reserve=50).draw(SPACE, seed)
    met = support.second_moment() > 0
    seen = np.diag(met)
    assert (~seen).sum() == parts
    among = met[np.ix_(seen, seen)]
    assert (~among).sum() >= 2 * pairs
    certificate = support.certificate()
    assert len(certificate.unseen) == parts and certificate.groups == 1 + parts


def test_the_gaps_do_not_depend_on_the_number():
    few, many = (Gaps(number=number, reserve=100).draw(SPACE, 3) for number in (60, 240))
    assert np.array_equal(few.reserved, many.reserved)
    assert many.contains(few.rows).all()


def test_every_stratum_can_be_tested():
    regions = Regions(Gaps(number=200, reserve=200).draw(SPACE, 0), 0)
    assert all(len(regions.rows(stratum, 1000, "test")) >= 10 for stratum in STRATA)


@pytest.mark.parametrize("wrong", [{"parts": 15}, {"pairs": 120}, {"number": 690, "reserve": 100}])
def test_impossible_gaps_are_refused(wrong):
    with pytest.raises(BadInput):
        Gaps(**{"number": 10, **wrong}).check(SPACE)


@pytest.mark.parametrize("seed", range(20))
def test_unmet_pairs_do_not_depend_on_the_attempt(seed):
    few, many = (Gaps(number=number, parts=0, pairs=30).draw(SPACE, seed) for number in (10, 200))
    met = (few.second_moment() > 0) | (many.second_moment() > 0)
    assert np.triu(met, k=1).sum() <= 120 - 30
