"""The rule "everything but one part"."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.missing_part import MissingPart, WithoutPart


def without(space: Space, part: int) -> np.ndarray:
    rows = space.enumerate()
    return rows[~(rows == part).any(axis=1)]


def test_exact_size_in_the_papers_space(paper: SubsetSpace):
    # After the space's own size was asked for: a copied cache would answer 696.
    assert paper.size == 696
    assert MissingPart(part=7).draw(paper, 0).size == 696 - 121


@pytest.mark.parametrize("part", [0, 7, 15])
def test_contains(paper: SubsetSpace, part: int):
    support = MissingPart(part=part).draw(paper, 0)
    rows = paper.enumerate()
    assert support.contains(rows).tolist() == [part not in row for row in rows.tolist()]
    assert support.contains(rows).sum() == support.size
    assert not support.contains(np.array([[3, 2, 16], [1, 1, 16], [1, 2, 17]])).any()


@pytest.mark.parametrize("part", range(9))
def test_contains_in_a_product(toys: ProductSpace, part: int):
    support = MissingPart(part=part).draw(toys, 0)
    rows = toys.enumerate()
    assert support.contains(rows).tolist() == [part not in row for row in rows.tolist()]
    assert support.contains(rows).sum() == support.size


@pytest.mark.parametrize("part", [0, 2, 4])
def test_draws_are_uniform_over_the_allowed(part: int, drawn: Callable, fit: Callable):
    space = SubsetSpace(modules=5, max_active=3)
    draws = drawn(MissingPart(part=part).draw(space, 0).sampler(), 6000)
    assert draws.dtype == np.int32
    assert fit(draws, without(space, part)) > 1e-3


@pytest.mark.parametrize("part", [1, 3, 8])
def test_draws_are_uniform_over_the_allowed_in_a_product(toys: ProductSpace, part: int, drawn: Callable, fit: Callable):
    draws = drawn(MissingPart(part=part).draw(toys, 0).sampler(), 6000)
    assert fit(draws, without(toys, part)) > 1e-3


def test_draws_with_at_least_two_parts(drawn: Callable, fit: Callable):
    space = SubsetSpace(modules=5, max_active=3, min_active=2)
    assert fit(drawn(MissingPart(part=1).draw(space, 0).sampler(), 4000), without(space, 1)) > 1e-3


def test_the_part_is_an_array_of_the_program(paper: SubsetSpace):
    # Supports without different modules share one compiled program.
    first, second = (MissingPart(part=part).draw(paper, 0).sampler() for part in (0, 9))
    assert first.smaller == second.smaller
    assert first.labels.shape == second.labels.shape == (16,)


def missing(support: WithoutPart) -> int:
    (part,) = {*range(support.space.width)} - {*support.subspaces[0][1].tolist()}
    return part


def test_the_seed_picks_the_part(paper: SubsetSpace):
    parts = [missing(MissingPart().draw(paper, seed)) for seed in range(300)]
    assert parts == [missing(MissingPart().draw(paper, seed)) for seed in range(300)]
    assert set(parts) == set(range(16))
    assert {missing(MissingPart(part=3).draw(paper, seed)) for seed in range(5)} == {3}


def test_a_rule_has_no_length(paper: SubsetSpace):
    assert MissingPart().length(paper) is None


def test_huge_spaces_cost_nothing(huge: SubsetSpace, drawn: Callable):
    support = MissingPart(part=500).draw(huge, 0)
    assert support.size == SubsetSpace(modules=999, max_active=20).size
    draws = drawn(support.sampler(), 500)
    assert support.contains(draws).all()
    assert (draws == 999).any()


def test_impossible_rules_are_refused(paper: SubsetSpace):
    with pytest.raises(BadInput, match=r"part=16, but the space has 16 constituents.*\n.*choose 0\.\.15"):
        MissingPart(part=16).check(paper)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        MissingPart(part=-1)
    for kind in (MissingPart(), MissingPart(part=2)):
        with pytest.raises(BadInput, match="no combination of 3 constituents is left"):
            kind.check(SubsetSpace(modules=3, max_active=3))
    single = ProductSpace(factors={"colour": 2, "ground": 1, "shape": 2})  # type: ignore[arg-type]
    for kind in (MissingPart(), MissingPart(part=2)):
        with pytest.raises(BadInput, match=r"Without ground=.* no combination of"):
            kind.check(single)
    MissingPart(part=0).check(single)
    with pytest.raises(
        BadInput, match="Only 1 combination contains constituent 0, but validation and test need one each"
    ):
        MissingPart().check(SubsetSpace(modules=2, max_active=1))
