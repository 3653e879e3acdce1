"""Instances as a space: each stands for itself."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.spaces.instances import InstanceSpace
from recombine.supports.random import Random
from recombine.supports.regions import Regions
from recombine.testing import check_space, check_support

SMALL = InstanceSpace(number=40)


@pytest.mark.parametrize("space", [SMALL, InstanceSpace(number=3)])
def test_conformance(space: InstanceSpace) -> None:
    check_space(space)


def test_an_instance_is_a_number_and_has_a_name() -> None:
    assert SMALL.size == SMALL.width == len(SMALL.enumerate()) == 40
    assert SMALL.name(np.array([0])) == "instance 1"
    assert SMALL.contains(np.array([[0], [39], [40], [-1]])).tolist() == [True, True, False, False]
    assert SMALL.interactions(2) == 0
    with pytest.raises(IndexError, match="instance 40 of 40"):
        SMALL.label(40)
    with pytest.raises(ValidationError):
        InstanceSpace(number=2)


def test_no_instance_is_trained_and_tested() -> None:
    kind = Random(held_out=0.25, require_connected=False)
    check_support(kind, SMALL)
    support = kind.draw(SMALL, 0)
    regions = Regions(support, seed=1)
    parts = [set(support.rows[:, 0])]
    parts += [set(regions.rows("held_out", 40, side)[:, 0]) for side in ("validation", "test")]
    assert len(parts[0]) == 30 and sum(map(len, parts)) == len(set.union(*parts)) == 40
