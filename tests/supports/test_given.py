"""Supports that the user gives as a list of combinations."""

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


SHOP = ProductSpace(factors={"colour": ["red", "blue"], "shape": ["cube", "ball", "cone"], "size": 2})  # type: ignore[arg-type]


def test_values_of_a_product_space_by_name():
    kind = Given(combinations=[("red", "cube", "0"), ("blue", "cone", "1")])  # type: ignore[arg-type]
    assert kind.draw(SHOP, 0).rows.tolist() == [[0, 2, 5], [1, 4, 6]]
    labelled = Given(combinations=(("size=1", "shape=cone", "colour=blue"),))
    assert labelled.rows(SHOP, 0).tolist() == [[1, 4, 6]]
    assert Given.model_validate(json.loads(kind.model_dump_json())) == kind


def test_numbers_stay_numbers_and_names_stay_names():
    digits = ProductSpace(factors={"x": ["1", "0"], "y": ["0", "1"]})  # type: ignore[arg-type]
    assert Given(combinations=((1, 2),)).rows(digits, 0).tolist() == [[1, 2]]
    assert Given(combinations=(("1", "0"),)).rows(digits, 0).tolist() == [[0, 2]]
    # The order of names says which factor is meant, so this is another combination and not a repeat.
    assert Given(combinations=(("1", "0"), ("0", "1"))).rows(digits, 0).tolist() == [[0, 2], [1, 3]]
    by_number = Given(combinations=((0, 1), (2,)), weights=(1, 2))
    assert by_number.meaning()["combinations"] == [[0, 1], [2]]


def test_names_in_a_subset_space_are_labels(paper: SubsetSpace):
    assert Given(combinations=(("3", "1"),)).rows(paper, 0).tolist() == [[1, 3, 16]]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("rde", "cube", "0"), r"factor 'colour' has no value 'rde'.\n.*did you mean 'red'"),
        (("cube", "red", "0"), r"'colour' has no value 'cube'.\n.*'cube' is a value of 'shape'.*colour, shape"),
        (("red", "cube", "2"), r"factor 'size' has no value '2'.\n.*known: 0, 1"),
        (("red", "cube"), r"has 2 values.*each of 3 factors.\n.*give colour, shape, size"),
        (("size=0", "size=1", "red"), "'size' has no value 'red'"),
        (("size=0", "size=1", "shape=cube"), "is not a combination"),
    ],
)
def test_names_that_are_not_values(names: tuple, message: str):
    with pytest.raises(BadInput, match=message):
        Given(combinations=(names,)).check(SHOP)


def test_one_combination_in_two_spellings():
    kind = Given(combinations=(("red", "cube", "0"), (0, 2, 5)))
    with pytest.raises(BadInput, match=r"colour=red .* is given twice"):
        kind.check(SHOP)


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
    kind = resolve("supports", json.loads('{"kind": "given", "combinations": [[0, 1], [2]], "weights": [1, 2.5]}'))
    assert kind == Given(combinations=((0, 1), (2,)), weights=(1, 2.5))
    assert hash(kind) == hash(Given.model_validate(kind.model_dump(mode="json")))


@pytest.mark.parametrize(
    ("combinations", "message"),
    [
        (((0, 16),), r"\(0, 16\) is not a combination.*\n.*numbered 0\.\.15"),
        (((0, 1, 2, 3),), "is not a combination"),
        (((0, 0),), "is not a combination"),
        (((),), "is not a combination"),
        (((0, 1), (1, 0)), "is given twice"),
        ((("3", 1),), "mixes numbers and names"),
        ((("3", "1"), ("3", "1")), "is given twice"),
    ],
)
def test_constituents_that_are_not_a_combination(paper: SubsetSpace, combinations: tuple, message: str):
    with pytest.raises(BadInput, match=message):
        Given(combinations=combinations).check(paper)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"combinations": ()}, "at least 1 item"),
        ({"combinations": ((0,),), "weights": (1, 2)}, "2 weights were given for 1 combinations"),
        ({"combinations": ((0,),), "weights": (0,)}, "greater than 0"),
        ({"combinations": ((0, 1.5),)}, "valid integer"),
        ({"combinations": ((-1,),)}, "greater than or equal to 0"),
    ],
)
def test_bad_lists(fields: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        Given(**fields)


def test_some_combinations_must_be_left_for_the_test():
    space = SubsetSpace(modules=2, max_active=2)
    with pytest.raises(BadInput, match="leaves 1, but validation and test need 2"):
        Given(combinations=((0,), (1,))).check(space)
