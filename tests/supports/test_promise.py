"""What kinds promise of their supports, held against certificates; and what is refused, and with which advice."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.balanced import Balanced
from recombine.supports.base import SupportKind, existing, instead
from recombine.supports.by_size import BySize
from recombine.supports.certificate import Promise, whole
from recombine.supports.corner import Corner
from recombine.supports.disconnected import Disconnected
from recombine.supports.given import Given
from recombine.supports.listed import Listed
from recombine.supports.missing_part import MissingPart
from recombine.supports.optimal import Optimal
from recombine.supports.planned import Planned
from recombine.supports.popular import Popular
from recombine.supports.random import Random
from recombine.supports.unpopular import Unpopular
from recombine.supports.varied import Varied

KINDS: list[SupportKind] = [
    Random(),
    Random(number=12, reserve=5),
    Random(number=4, require_connected=False),
    Random(held_out=0.4, most_active=2),
    Balanced(),
    Balanced(number=11, reserve=4),
    Balanced(number=5, require_connected=False),
    BySize(),
    BySize(rule="quadratic", factor=0.3),
    BySize(rule="constant", factor=14),
    MissingPart(),
    MissingPart(part=1),
    Disconnected(),
    Disconnected(groups="published"),
    Popular(),
    Popular(parts=3, reserve=2),
    Popular(parts=2, number=9, reserve=3),
    Unpopular(),
    Unpopular(core=3, reserve=3),
    Given(combinations=((0, 4), (2, 5)), weights=(1.0, 2.0)),
    Planned(number=7, reserve=3),
    Planned(strength=3, number=5),
    Optimal(number=7, reserve=3),
    Optimal(criterion="pair-poor", number=6),
    Varied(number=7, reserve=3),
    Varied(strategy="walk", number=9, reserve=2),
]

SPACES: list[Space] = [
    SubsetSpace(modules=7, max_active=3),
    SubsetSpace(modules=6, max_active=3, min_active=2),
    SubsetSpace(modules=8, max_active=2),
    SubsetSpace(modules=9, max_active=2, min_active=2),
    SubsetSpace(modules=5, max_active=5),
    SubsetSpace(modules=5, max_active=1),
    SubsetSpace(modules=3, max_active=3),
    ProductSpace(factors={"a": 4, "b": 5}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 5, "b": 5}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 2, "b": 3, "c": 4}),  # type: ignore[arg-type]
    ProductSpace(factors={"a": 3, "b": 1, "c": 5}),  # type: ignore[arg-type]
]


def exists(kind: SupportKind, space: Space) -> bool:
    try:
        kind.check(space)
    except BadInput:
        return False
    return True


@settings(deadline=None, max_examples=100)
@given(st.integers(0, len(KINDS) - 1), st.integers(0, len(SPACES) - 1), st.integers(0, 10_000))
def test_promises_are_kept(kind_number: int, space_number: int, seed: int):
    kind, space = KINDS[kind_number], SPACES[space_number]
    if not exists(kind, space):
        with pytest.raises(BadInput, match=r"(?s)..*fix: ."):
            kind.draw(space, seed)
        return
    try:
        drawn, again = kind.draw(space, seed), kind.draw(space, seed)
    except BadInput:
        # The reserve can leave so little of a tiny space that nothing of it is balanced, or connected around the popular parts.
        # Nothing else may fail here.
        if isinstance(kind, Balanced | Popular) and kind.reserve:
            return
        raise
    assert kind.promises(space).broken(drawn.certificate((1, 2))) == ()
    every = space.enumerate()
    assert drawn.contains(every).sum() == drawn.size <= space.size - max(2, len(drawn.reserved))
    assert not drawn.contains(drawn.reserved).any()
    assert len(drawn.reserved) == getattr(kind, "reserve", 0)
    assert kind.length(space) == (drawn.size if isinstance(drawn, Listed) else None)
    assert drawn.most_parts == (every[drawn.contains(every)] < space.width).sum(axis=1).max()
    np.testing.assert_array_equal(drawn.contains(every), again.contains(every))
    np.testing.assert_array_equal(drawn.reserved, again.reserved)
    if isinstance(drawn, Listed) and isinstance(again, Listed):
        np.testing.assert_array_equal(drawn.rows, again.rows)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_is_met_in_some_space(kind: SupportKind):
    assert any(exists(kind, space) for space in SPACES)


def test_promises_say_something():
    space = SPACES[0]
    assert Random().promises(space) == whole(47)
    assert Balanced(number=9).promises(space) == dataclasses.replace(whole(9), balanced=True)
    assert Random(number=3, require_connected=False).promises(space) == Promise(size=3)
    assert MissingPart().promises(space) == Promise(complete=False, connected=False, groups=2, unseen=1, size=41)
    # Which factor loses a value decides how much is left.
    assert MissingPart().promises(SPACES[9]).size is None
    assert Disconnected().promises(space).groups == 2


def test_broken_promises_are_reported(paper: SubsetSpace):
    found = MissingPart(part=3).draw(paper, 0).certificate((1,))
    assert whole(575).broken(found) == (
        "complete is False, but True was promised",
        "connected is False, but True was promised",
        "groups is 2, but 1 was promised",
        "unseen is 1, but 0 was promised",
    )
    assert Promise().broken(found) == ()


def test_which_kinds_exist(paper: SubsetSpace, huge: SubsetSpace):
    everywhere = {"balanced", "by-size", "disconnected", "missing-part", "popular", "random", "unpopular"}
    assert everywhere <= set(existing(paper))
    assert not {"corner", "given"} & set(existing(paper))
    # Too large for a quarter of it to be listed, but not for a number of combinations.
    assert everywhere - {"unpopular"} <= set(existing(huge))
    assert existing(SubsetSpace(modules=5, max_active=1)) == ()
    assert instead(SubsetSpace(modules=1, max_active=1)) == "choose a larger space"


@pytest.mark.parametrize(
    ("kind", "space", "message"),
    [
        (Corner(), SPACES[0], r"corner is not defined for a space of kind .subset.*\n.*exist here: balanced, by-size, disconnected"),
        (Random(), SPACES[5], r"never connect two constituents.*\n.*require_connected=false; choose a larger space"),
        (Disconnected(), SubsetSpace(modules=4, max_active=3, min_active=3), r"two groups would have no combination.*\n.*exist"),
        (Disconnected(groups="published"), SPACES[1], r"two groups would have no combination"),
        (Disconnected(), SPACES[10], "A factor has only one value"),
        (Disconnected(), SPACES[5], "Only 0 combinations have constituents of both groups"),
        (Popular(), SPACES[5], "never occur with others"),
        (Unpopular(), SPACES[5], "cannot link other constituents to the core"),
        (Random(), SubsetSpace(modules=2, max_active=1), "has 2 combinations, but training, validation and test need one each"),
    ],
)  # fmt: skip
def test_obstacles_say_why_and_what_exists_instead(kind: SupportKind, space: Space, message: str):
    with pytest.raises(BadInput, match=message):
        kind.check(space)
