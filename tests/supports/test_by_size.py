"""Lists whose length grows with the space."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.by_size import BySize
from recombine.supports.random import Random


@pytest.mark.parametrize(
    ("rule", "factor", "number"),
    [
        ("constant", 100, 100),
        ("linear", 8, 128),
        ("linear-in-product", 2.5, 120),
        ("quadratic", 1, 256),
        ("quadratic", 0.1, 26),
    ],
)
def test_lengths(paper: SubsetSpace, rule: str, factor: float, number: int):
    kind = BySize(rule=rule, factor=factor)  # type: ignore[arg-type]
    assert kind.length(paper) == number
    np.testing.assert_array_equal(kind.draw(paper, 4).rows, Random(number=number).draw(paper, 4).rows)


def test_products_count_values_and_factors(toys: ProductSpace):
    assert BySize().length(toys) == 18
    assert BySize(rule="linear-in-product", factor=0.5).length(toys) == 14


def test_the_reserve_is_that_of_random(paper: SubsetSpace):
    support = BySize(factor=3, reserve=90).draw(paper, 1)
    np.testing.assert_array_equal(support.reserved, Random(number=48, reserve=90).draw(paper, 1).reserved)


def test_impossible_supports_are_refused(paper: SubsetSpace):
    with pytest.raises(BadInput, match="combinations is left to train on"):
        BySize(factor=0.01).check(paper)
    with pytest.raises(BadInput, match="train on at most 694"):
        BySize(factor=50).check(paper)
    with pytest.raises(ValidationError, match="greater than 0"):
        BySize(factor=0)
