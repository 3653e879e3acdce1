"""The rule "everything but a block": exact against listing, nested over splits, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.missing_block import MissingBlock
from recombine.testing import check_support


def space_of(**factors: int) -> ProductSpace:
    return ProductSpace(factors=factors)  # type: ignore[arg-type]


SPACE = space_of(shape=3, size=4, column=5)


def block_of(values: dict[str, int], ranges: dict[str, int]) -> MissingBlock:
    return MissingBlock(values=values, ranges=ranges)  # type: ignore[arg-type]


SPLITS = {
    "element": block_of({"shape": 1}, {"size": 2, "column": 3}),
    "range": block_of({"shape": 1}, {"column": 3}),
    "extrapolation": block_of({}, {"column": 3}),
    "values": block_of({"size": 2}, {}),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SPLITS)
def test_the_contract(name: str, seed: int):
    check_support(SPLITS[name], SPACE, seed)


@pytest.mark.parametrize("name", SPLITS)
def test_draws_are_uniform_over_what_is_left(name: str, drawn: Callable, fit: Callable):
    support = SPLITS[name].draw(SPACE, 5)
    rows = SPACE.enumerate()
    assert fit(drawn(support.sampler(), 6000), rows[support.contains(rows)]) > 1e-3


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.data())
def test_moment_coverage_and_promises_are_those_of_the_list(data: Any):
    levels = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    space = space_of(**{f"f{index}": level for index, level in enumerate(levels)})
    named = data.draw(st.lists(st.sampled_from(range(len(levels))), min_size=1, unique=True))
    counts = {f"f{index}": data.draw(st.integers(1, levels[index] - 1)) for index in named}
    cut = data.draw(st.integers(0, len(named)))
    kind = block_of(dict(list(counts.items())[:cut]), dict(list(counts.items())[cut:]))
    if kind.obstacle(space) is not None:
        assert np.prod([counts.get(f"f{index}", level) for index, level in enumerate(levels)]) < 2
        return
    support = kind.draw(space, data.draw(st.integers(0, 2**64 - 1)))
    rows = space.enumerate()
    kept = rows[support.contains(rows)]
    assert len(kept) == support.size
    dense = np.zeros((len(kept), space.width))
    dense[np.arange(len(kept))[:, None], kept] = 1
    moment = support.second_moment()
    np.testing.assert_allclose(moment, dense.T @ dense / len(kept), atol=1e-12)
    np.testing.assert_array_equal(moment > 0, dense.T @ dense > 0)
    for strength in range(1, min(3, space.slots) + 1):
        sets = space.list_interactions(strength)
        wanted = [dense[:, parts].all(axis=1).any() for parts in sets]
        np.testing.assert_array_equal(support.covers(sets), wanted)
    assert kind.promises(space).broken(support.certificate((1, 2))) == ()


@pytest.mark.parametrize("seed", range(20))
def test_with_one_seed_the_blocks_lie_within_each_other(seed: int):
    rows = SPACE.enumerate()
    element, range_, extrapolation = (
        ~SPLITS[name].draw(SPACE, seed).contains(rows) for name in ("element", "range", "extrapolation")
    )
    assert (element.sum(), range_.sum(), extrapolation.sum()) == (6, 12, 36)
    assert np.all(element <= range_) and np.all(range_ <= extrapolation)


def test_seeds_pick_every_value_and_either_end():
    ends, shapes = set(), set()
    for seed in range(40):
        support = SPLITS["range"].draw(SPACE, seed)
        shapes |= set(support.named[0].tolist())
        ends.add(tuple(support.named[2].tolist()))
    assert shapes == {0, 1, 2} and ends == {(7, 8, 9), (9, 10, 11)}


def test_a_space_that_could_never_be_listed():
    space = space_of(**{f"f{index}": 10 for index in range(40)})
    support = block_of({"f0": 1}, {"f39": 5}).draw(space, 0)
    assert support.size == 10**40 - 5 * 10**38
    found = support.certificate((1, 2))
    assert found.complete and found.connected


def test_by_name_and_mapping():
    given = {"kind": "missing-block", "values": {"shape": 1}, "ranges": {"column": 3}}
    assert resolve("supports", given) == SPLITS["range"]


@pytest.mark.parametrize(
    ("values", "ranges", "message"),
    [({}, {}, "at least one factor"), ({"size": 1}, {"size": 2}, "named once"), ({"size": 0}, {}, "greater")],
)
def test_impossible_blocks_are_refused(values: Any, ranges: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        MissingBlock(values=values, ranges=ranges)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"colum": 2}, "no factor called 'colum'"),
        ({"column": 5}, "none is left to train on"),
        ({"shape": 1, "size": 1, "column": 1}, "one combination"),
    ],
)
def test_blocks_that_the_space_forbids_are_refused(ranges: Any, message: str):
    with pytest.raises(BadInput, match=message):
        MissingBlock(ranges=ranges).check(SPACE)


def test_subsets_have_no_blocks():
    with pytest.raises(BadInput, match="not defined for a space of kind 'subset'"):
        SPLITS["range"].check(SubsetSpace(modules=5, max_active=2))
