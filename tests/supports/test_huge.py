"""Trap 5 of the released code: all combinations were enumerated, so that memory grew as M^K. Not here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.balanced import Balanced
from recombine.supports.by_size import BySize
from recombine.supports.disconnected import Disconnected
from recombine.supports.given import Given
from recombine.supports.listed.kinds import RandomList
from recombine.supports.missing_part import MissingPart
from recombine.supports.popular import Popular
from recombine.supports.random import Random
from recombine.supports.regions import Regions


@pytest.fixture(autouse=True)
def _no_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the space was enumerated")

    monkeypatch.setattr(Space, "enumerate", refuse)
    monkeypatch.setattr(SubsetSpace, "_rows", refuse)


def test_a_list_in_a_space_of_1e41(huge: SubsetSpace, drawn: Callable):
    support = Random(number=100_000).draw(huge, 0)
    assert support.rows.shape == (100_000, 20)

    found = support.certificate()
    assert found.space_size == huge.size
    assert found.complete
    assert found.connected
    assert found.coverage_of(2).exact
    third = found.coverage_of(3)
    assert not third.exact
    # A row holds a triple with a chance of 1140 / comb(1000, 3), and there are 100,000: 1 - exp(-.686), less a
    # little for rows of 19. The Wilson interval of 4000 draws is .03 wide.
    assert third.low < 0.494 < third.high
    assert third.high - third.low < 0.04
    # E[z z'] is nearly that of the whole space, whose largest eigenvalue is E[n^2] / M.
    assert found.spectrum[0] == pytest.approx(huge.second_moment().sum() / 1000, rel=0.005)

    regions = Regions(support, 0)
    held_out = regions.rows("held_out", 1024, "test")
    assert held_out.shape == (1024, 20)
    assert huge.contains(held_out).all()
    assert not support.contains(held_out).any()
    assert support.contains(regions.rows("trained", 1024)).all()
    assert support.contains(drawn(support.sampler(pad_to=2**17), 256)).all()


def test_a_rule_in_a_space_of_1e41(huge: SubsetSpace):
    found = MissingPart(part=7).draw(huge, 0).certificate()
    assert found.unseen == (7,)
    assert found.groups == 2
    assert found.coverage_of(1).share == pytest.approx(0.999)
    assert found.coverage_of(2).share == pytest.approx(0.998)
    third = found.coverage_of(3)
    assert not third.exact
    assert third.low < 0.997 < third.high
    assert found.usage[0] == found.usage[999] > found.usage[7] == 0


@pytest.mark.parametrize(
    "kind",
    [
        Balanced(number=3000, reserve=500),
        BySize(rule="linear", factor=3, reserve=500),
        Popular(parts=3, number=3000, reserve=500),
        Random(number=3000, most_active=18, reserve=500),
    ],
    ids=str,
)
def test_numbers_of_combinations_of_1e41(huge: SubsetSpace, kind: RandomList):
    support = kind.draw(huge, 0)
    assert support.rows.shape == (3000, 20)
    assert support.reserved.shape == (500, 20)
    assert kind.promises(huge).broken(support.certificate((1,))) == ()


@pytest.mark.parametrize("kind", [Disconnected(), Disconnected(groups="published")], ids=str)
def test_two_groups_in_a_space_of_1e41(huge: SubsetSpace, drawn: Callable, kind: Disconnected):
    support = kind.draw(huge, 0)
    assert kind.promises(huge).broken(support.certificate((1, 2))) == ()
    rows = drawn(support.sampler(), 512)
    assert support.contains(rows).all()
    assert not support.contains(Regions(support, 0).rows("held_out", 100)).any()
    # Both halves are drawn equally often (standard deviation 11); a lone module's own combination never comes up.
    from_first = int(np.isin(rows[:, 0], support.first[1][:-1]).sum())
    assert 190 < from_first < 322 if kind.groups == "halves" else from_first == 0


def test_a_given_list_in_a_space_of_1e41(huge: SubsetSpace):
    kind = Given(combinations=tuple(tuple(range(at, at + 20)) for at in range(500)), reserve=50)
    support = kind.draw(huge, 0)
    assert (support.size, len(support.reserved)) == (500, 50)
