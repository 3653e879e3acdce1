"""Lists of the user's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.given import Given


def test_combinations_by_their_constituents(paper: SubsetSpace, toys: ProductSpace):
    kind = Given(combinations=((3, 1), (2,), (4, 5, 6)))
    assert kind.draw(paper, 0).rows.tolist() == [[1, 3, 16], [2, 16, 16], [4, 5, 6]]
    assert kind.length(paper) == 3
    assert Given(combinations=((0, 2, 5), (8, 1, 3))).draw(toys, 0).rows.tolist() == [[0, 2, 5], [1, 3, 8]]


def test_weights(paper: SubsetSpace):
    support = Given(combinations=((0, 1), (2,)), weights=(3, 1)).draw(paper, 0)
    np.testing.assert_allclose(support.shares, [0.75, 0.25])
    even = Given(combinations=((0, 1), (2,))).draw(paper, 0)
    np.testing.assert_allclose(even.shares, 0.5)
    # Lists with and without weights can be stacked.
    assert support.sampler(512).uniform == even.sampler(512).uniform


def test_the_reserve(paper: SubsetSpace):
    support = Given(combinations=tuple((part,) for part in range(16)), reserve=100).draw(paper, 0)
    assert support.reserved.shape == (100, 3)
    assert not support.contains(support.reserved).any()


def test_from_json(paper: SubsetSpace):
    kind = resolve(
        "supports", json.loads('{"kind": "given", "combinations": [[0, 1], [2]], "weights": [1, 2.5]}')
    )
    assert kind == Given(combinations=((0, 1), (2,)), weights=(1, 2.5))
    assert hash(kind) == hash(Given.model_validate(kind.model_dump(mode="json")))


@pytest.mark.parametrize(
    ("combinations", "message"),
    [
        (((0, 16),), r"\(0, 16\) is not a combination.*\n.*numbered 0\.\.15"),
        (((0, 1, 2, 3),), "is not a combination"),
        (((0, 0),), "is not a combination"),
        (((),), "is not a combination"),
    ],
)
def test_what_is_no_combination(paper: SubsetSpace, combinations: tuple, message: str):
    with pytest.raises(BadInput, match=message):
        Given(combinations=combinations).check(paper)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"combinations": ()}, "at least 1 item"),
        ({"combinations": ((0, 1), (1, 0))}, "given twice"),
        ({"combinations": ((0,),), "weights": (1, 2)}, "2 weights were given for 1 combinations"),
        ({"combinations": ((0,),), "weights": (0,)}, "greater than 0"),
        ({"combinations": ((-1,),)}, "greater than or equal to 0"),
    ],
)
def test_bad_lists(fields: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        Given(**fields)


def test_something_must_be_left():
    space = SubsetSpace(modules=2, max_active=2)
    with pytest.raises(BadInput, match="1 are left, but 2 must be"):
        Given(combinations=((0,), (1,))).check(space)
