"""Random lists of combinations."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet
from recombine.spaces.subset import SubsetSpace
from recombine.supports.listed import drawing, kinds
from recombine.supports.random import Random


def connected(space: Space, rows: np.ndarray) -> bool:
    graph = nx.Graph()
    graph.add_nodes_from(range(space.width))
    for row in rows:
        graph.add_edges_from(itertools.combinations(space.constituents(row), 2))
    return nx.is_connected(graph)


def test_by_number(paper: SubsetSpace):
    support = Random(number=100).draw(paper, 0)
    assert support.size == Random(number=100).length(paper) == 100
    assert len(RowSet(support.rows)) == 100
    assert paper.contains(support.rows).all()
    assert support.weights is None
    assert len(support.reserved) == 0


@pytest.mark.parametrize(("share", "number"), [(0.25, 522), (0.9, 70), (0.5, 348), (0.1, 626)])
def test_by_held_out_share(paper: SubsetSpace, share: float, number: int):
    assert Random(held_out=share).length(paper) == number
    assert Random(held_out=share).draw(paper, 0).size == number


def test_a_tiny_share_still_holds_one_out(paper: SubsetSpace):
    assert Random(held_out=1e-6).length(paper) == 695


def test_shares_of_spaces_that_do_not_fit_a_float():
    space = SubsetSpace(modules=2000, max_active=500)
    assert Random(held_out=0.25).length(space) == space.size - round(Fraction(space.size, 4))
    assert Random(held_out=0.1).length(space) * 10 - 9 * space.size in range(-10, 11)
    for support in (Random(held_out=0.25), Random(number=10**7)):
        with pytest.raises(BadInput, match="would not fit in memory"):
            support.check(space)
    Random(number=1000).check(space)


def test_messages_about_spaces_too_long_to_print():
    space = SubsetSpace(modules=20_000, max_active=6000)
    with pytest.raises(BadInput, match=r"about 10\^\d+ training combinations would not fit"):
        Random(held_out=0.5).check(space)


def test_exact_sizes(paper: SubsetSpace):
    support = Random(number=100, sizes="exactly", reserve=50).draw(paper, 0)
    assert (support.rows < 16).all()
    # The common test is drawn from the whole space.
    assert (support.reserved == 16).any()
    assert Random(held_out=0.25, sizes="exactly").length(paper) == 420


def test_exact_sizes_are_for_subset_spaces(toys: ProductSpace):
    with pytest.raises(BadInput, match="needs a subset space"):
        Random(number=10, sizes="exactly").check(toys)


@pytest.mark.parametrize(("sizes", "counts"), [("up_to", {1, 2, 3}), ("exactly", {3})])
def test_fewer_parts_than_the_space_has(sizes: str, counts: set[int]):
    space = SubsetSpace(modules=12, max_active=5)
    # Of the 220 combinations of three the reserve could take all its 200.
    support = Random(number=20, most_active=3, sizes=sizes, reserve=200).draw(space, 0)  # type: ignore[arg-type]
    assert space.contains(support.rows).all()
    assert set((support.rows < 12).sum(axis=1).tolist()) <= counts
    assert connected(space, support.rows)
    # The common test is that of the whole space, and has larger combinations.
    assert support.most_parts == 3
    np.testing.assert_array_equal(support.reserved, Random(number=120, reserve=200).draw(space, 0).reserved)
    assert ((support.reserved < 12).sum(axis=1) > 3).any()
    assert not support.contains(support.reserved).any()


def test_shares_are_of_what_may_be_trained_on():
    space = SubsetSpace(modules=12, max_active=5)
    assert Random(held_out=0.5, most_active=2).length(space) == 39
    # Those with more parts are left to test on, so all smaller ones can be trained on.
    assert Random(number=78, most_active=2).draw(space, 0).size == 78
    with pytest.raises(BadInput, match="train on at most 78"):
        Random(number=79, most_active=2).check(space)


def test_as_many_parts_as_the_space_has_changes_nothing(paper: SubsetSpace):
    np.testing.assert_array_equal(
        Random(number=90, most_active=3).draw(paper, 2).rows, Random(number=90).draw(paper, 2).rows
    )


def test_impossible_numbers_of_parts(paper: SubsetSpace, toys: ProductSpace):
    with pytest.raises(BadInput, match=r"most_active=4, but combinations have 1 to 3.*\n.*choose 1\.\.3"):
        Random(most_active=4).check(paper)
    with pytest.raises(BadInput, match="most_active=1, but combinations have 2 to 3"):
        Random(most_active=1).check(SubsetSpace(modules=16, max_active=3, min_active=2))
    with pytest.raises(BadInput, match="most_active needs a subset space"):
        Random(most_active=2).check(toys)
    with pytest.raises(BadInput, match="set require_connected=false"):
        Random(number=10, most_active=1).check(paper)


@pytest.mark.parametrize("listing", [True, False])
def test_supports_of_one_seed_are_nested(paper: SubsetSpace, listing: bool, monkeypatch: pytest.MonkeyPatch):
    if not listing:
        monkeypatch.setattr(drawing, "SMALL", 0)
    lists = [
        Random(number=number, reserve=64, require_connected=False).draw(paper, 5).rows for number in (1, 20, 80, 320)
    ]
    for shorter, longer in itertools.pairwise(lists):
        np.testing.assert_array_equal(longer[: len(shorter)], shorter)
    # From some length on the first draw is connected, and asking for it changes nothing.
    np.testing.assert_array_equal(Random(number=320, reserve=64).draw(paper, 5).rows, lists[-1])


def test_the_reserve_is_common_and_never_trained(paper: SubsetSpace):
    supports = [Random(number=number, reserve=100).draw(paper, 3) for number in (30, 80, 320, 596)]
    for support in supports:
        np.testing.assert_array_equal(support.reserved, supports[0].reserved)
        assert len(RowSet(support.reserved)) == 100
        assert not support.contains(support.reserved).any()
    assert supports[-1].size + 100 == paper.size


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("number", [8, 9, 12, 20])
def test_complete_and_connected(number: int, seed: int):
    space = SubsetSpace(modules=8, max_active=2)
    assert connected(space, Random(number=number).draw(space, seed).rows)


def test_complete_and_connected_in_a_product(toys: ProductSpace):
    for seed in range(5):
        assert connected(toys, Random(number=5).draw(toys, seed).rows)


def test_connection_is_optional():
    space = SubsetSpace(modules=8, max_active=2)
    lists = [Random(number=3, require_connected=False).draw(space, seed).rows for seed in range(5)]
    assert not any(connected(space, rows) for rows in lists)


def test_a_draw_is_deterministic(paper: SubsetSpace):
    first, again, other, far = (Random(number=50).draw(paper, seed) for seed in (1, 1, 2, 2**32 + 1))
    np.testing.assert_array_equal(first.rows, again.rows)
    assert (first.rows != other.rows).any()
    assert (first.rows != far.rows).any()


def test_every_combination_is_equally_often_trained(toys: ProductSpace):
    kind = Random(number=6, require_connected=False)
    times = sum(kind.draw(toys, seed).contains(toys.enumerate()).astype(int) for seed in range(400))
    # 100 of 400 expected, standard deviation 9.
    assert abs(times - 100).max() < 40


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Random(held_out=0.9999), "combinations is left to train on"),
        (Random(held_out=0.001), "validation and test need at least one combination each"),
        (Random(number=696), "validation and test need at least one combination each"),
        (Random(number=695), "train on at most 694 combinations"),
        (Random(number=600, reserve=97), "train on at most 599 combinations"),
        (Random(number=1, reserve=700), "reserve fewer"),
        (Random(number=561, sizes="exactly"), "train on at most 560 combinations"),
        (Random(number=7), "connected combinations contain at most"),
        (Random(number=7), "train on at least 8 combinations"),
    ],
)
def test_impossible_supports_are_refused(paper: SubsetSpace, kind: Random, message: str):
    with pytest.raises(BadInput, match=message):
        kind.check(paper)
    with pytest.raises(BadInput, match=message):
        kind.draw(paper, 0)


def test_one_part_at_a_time_never_connects():
    with pytest.raises(BadInput, match="fix: set require_connected=false"):
        Random(number=6).check(SubsetSpace(modules=8, max_active=1))


def test_lists_that_are_too_long_are_refused(huge: SubsetSpace):
    for kind in (Random(held_out=0.25), Random(number=5_000_001)):
        with pytest.raises(BadInput, match="would not fit in memory"):
            kind.check(huge)


def test_a_failed_search_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kinds, "TRIES", 3)
    with pytest.raises(BadInput, match="3 random supports of 23 combinations were drawn, and none was complete"):
        Random(number=23).draw(SubsetSpace(modules=24, max_active=2), 0)


def test_number_or_share():
    with pytest.raises(ValidationError, match="either number or held_out"):
        Random(number=3, held_out=0.5)
    space = SubsetSpace(modules=16, max_active=3)
    assert Random().length(space) == Random(held_out=0.25).length(space) == 522


@pytest.mark.parametrize("fields", [{"number": 0}, {"held_out": 0}, {"held_out": 1}, {"number": 5, "reserve": -1}])
def test_numbers_out_of_range(fields: dict):
    with pytest.raises(ValidationError, match=r"greater than|less than"):
        Random(**fields)


def test_memory_is_proportional_to_the_list(huge: SubsetSpace):
    Random(number=1000, require_connected=False).draw(huge, 0)  # compiled before the count begins
    peaks = []
    for number in (20_000, 100_000):
        tracemalloc.start()
        support = Random(number=number, reserve=1000).draw(huge, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert support.rows.nbytes == number * 20 * 4
        assert not support.contains(support.reserved).any()
        assert peaks[-1] < 10 * support.rows.nbytes
    assert peaks[1] < 6 * peaks[0]


def test_found_by_name(paper: SubsetSpace):
    kind = resolve("supports", {"kind": "random", "held_out": 0.25})
    assert kind == Random(held_out=0.25)
    assert kind.length(paper) == 522
