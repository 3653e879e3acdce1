"""The rule "two groups that never meet"."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.disconnected import Disconnected, TwoGroups
from recombine.supports.listed import Listed

SPACES: list[Space] = [
    SubsetSpace(modules=6, max_active=3),
    SubsetSpace(modules=7, max_active=5),
    SubsetSpace(modules=7, max_active=3, min_active=2),
    ProductSpace(factors={"colour": 2, "shape": 3, "place": 4}),  # type: ignore[arg-type]
]


def first_group(support: TwoGroups) -> set[int]:
    return set(support.first[1][:-1].tolist())


def unmixed(support: TwoGroups) -> np.ndarray:
    """All combinations of one group, by brute force."""
    space, first = support.space, first_group(support)
    return np.array([row for row in space.enumerate() if len({part in first for part in space.constituents(row)}) == 1])


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("groups", ["halves", "published"])
def test_against_brute_force(space: Space, groups: str, drawn: Callable, fit: Callable):
    kind = Disconnected(groups=groups)  # type: ignore[arg-type]
    if groups == "published" and isinstance(space, SubsetSpace) and space.min_active > 1:
        with pytest.raises(BadInput, match="two groups would have no combination"):
            kind.check(space)
        return
    support = kind.draw(space, 1)
    expected = unmixed(support)
    every = space.enumerate()
    assert support.size == len(expected)
    assert support.contains(every).sum() == len(expected)
    assert support.contains(expected).all()
    assert fit(drawn(support.sampler(), 6000), expected) > 1e-3
    spelt_out = Listed(space, expected)
    np.testing.assert_allclose(support.second_moment(), spelt_out.second_moment(), atol=1e-12)
    for strength in range(1, space.slots + 1):
        asked = space.list_interactions(strength)
        np.testing.assert_array_equal(support.covers(asked), spelt_out.covers(asked))
    assert support.most_parts == spelt_out.most_parts


def test_the_two_groups(paper: SubsetSpace):
    for groups, size in (("halves", 8), ("published", 1)):
        support = Disconnected(groups=groups).draw(paper, 0)  # type: ignore[arg-type]
        graph = nx.Graph(np.argwhere(support.second_moment() > 0).tolist())
        assert sorted(len(part) for part in nx.connected_components(graph)) == [size, 16 - size]
        assert first_group(support) in [set(part) for part in nx.connected_components(graph)]


def test_exact_sizes_in_the_papers_space(paper: SubsetSpace):
    # Twice 8 + 28 + 56, and 1 + (15 + 105 + 455).
    assert Disconnected().draw(paper, 0).size == 184
    assert Disconnected(groups="published").draw(paper, 0).size == 576


def test_the_seed_picks_the_groups(paper: SubsetSpace):
    lone = [first_group(Disconnected(groups="published").draw(paper, seed)) for seed in range(200)]
    assert set.union(*lone) == set(range(16))
    halves = [first_group(Disconnected().draw(paper, seed)) for seed in (1, 1, 2)]
    assert halves[0] == halves[1] != halves[2]


def test_rows_that_are_no_combinations(paper: SubsetSpace):
    foreign = np.array([[3, 2, 16], [1, 1, 16], [1, 2, 17], [-1, 2, 3], [2**31, 0, 0]])
    assert not Disconnected().draw(paper, 0).contains(foreign).any()


def test_a_product_is_cut_in_every_factor(toys: ProductSpace):
    first = first_group(Disconnected().draw(toys, 0))
    counts = [
        sum(at <= part < at + level for part in first) for at, level in zip(toys.offsets, toys.levels, strict=True)
    ]
    assert counts == [1, 1, 2]
    assert Disconnected().draw(toys, 0).size == 1 * 1 * 2 + 1 * 2 * 2


def test_the_groups_are_arrays_of_the_program(paper: SubsetSpace):
    one, other = (Disconnected().draw(paper, seed).sampler() for seed in (0, 1))
    assert one.spaces == other.spaces
    assert one.labels[0].shape == other.labels[0].shape


def test_a_rule_has_no_length(paper: SubsetSpace):
    assert Disconnected().length(paper) is None
