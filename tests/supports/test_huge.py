"""Trap 5 of the released code: all combinations were enumerated, so that memory grew as M^K. Not here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.missing_part import MissingPart
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
