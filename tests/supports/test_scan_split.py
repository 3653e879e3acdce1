"""The published splits of SCAN: their sizes, and what is in them, judged by their sentences."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.scan import ScanSpace
from recombine.spaces.scan.language import WORDS, action_counts, word_numbers
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import existing
from recombine.supports.listed import Listed
from recombine.supports.regions import Regions
from recombine.supports.scan_split import ScanSplit
from recombine.testing import check_support

SCAN = ScanSpace()

PUBLISHED = {
    "simple": (16_728, 4_182),
    "length": (16_990, 3_920),
    "add-jump": (14_670, 7_706),
    "around-right": (15_225, 4_476),
}
"""Lines of the published files to train and to test on."""


def texts(rows: np.ndarray) -> set[str]:
    return set(listed(rows))


def listed(rows: np.ndarray) -> list[str]:
    lines = word_numbers(rows).tolist()
    return [" ".join(WORDS[word] for word in line if word < len(WORDS)) for line in lines]


def drawn(split: str, seed: int = 3, share: float = 1) -> Listed:
    return ScanSplit(split=split, share=share).draw(SCAN, seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("split", PUBLISHED)
def test_published_sizes(split: str):
    support = drawn(split)
    lines = support.size if support.weights is None else support.weights.sum()
    assert (lines, len(support.reserved)) == (pytest.approx(PUBLISHED[split][0]), PUBLISHED[split][1])
    assert support.size == ScanSplit(split=split).length(SCAN)  # type: ignore[arg-type]


@pytest.mark.parametrize("split", PUBLISHED)
def test_what_is_held_out_is_the_published_test(split: str):
    support = drawn(split)
    regions = Regions(support, 5)
    held_out = regions.rows("held_out", 50_000)
    assert texts(held_out) == texts(support.reserved)
    sides = [regions.rows("held_out", 50_000, side) for side in ("validation", "test")]
    assert sum(len(side) for side in sides) == PUBLISHED[split][1]
    rest = regions.rows("rest", 50_000)
    assert len(rest) == (1_209 if split == "around-right" else 0)
    assert all("turn around right" in text for text in texts(rest))


def test_length():
    support = drawn("length")
    assert action_counts(support.rows).max() == 22
    lengths = action_counts(support.reserved)
    assert (lengths.min(), lengths.max()) == (24, 48)


def test_add_jump():
    support = drawn("add-jump")
    train, test = texts(support.rows), texts(support.reserved)
    assert {text for text in train if "jump" in text} == {"jump"}
    assert len(train) == 13_204
    assert all("jump" in text and text != "jump" for text in test)
    alone = [text == "jump" for text in listed(support.rows)]
    assert support.weights is not None
    assert support.weights[alone] == pytest.approx(1_467)
    assert set(support.weights[np.invert(alone)]) == {1}
    assert support.shares[alone] == pytest.approx(0.1)


def test_around_right():
    support = drawn("around-right")
    train, test = texts(support.rows), texts(support.reserved)
    assert not any("around right" in text for text in train)
    assert any("around left" in text for text in train) and any("opposite right" in text for text in train)
    assert all("around right" in text and "turn around right" not in text for text in test)


def test_simple_is_random_by_the_seed_and_whole():
    one, again, other = (texts(drawn("simple", seed).rows) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one & other) == pytest.approx(0.8 * 16_728, rel=0.02)
    support = drawn("simple", 1)
    assert len(texts(support.rows) | texts(support.reserved)) == 20_910
    assert texts(drawn("length", 1).rows) == texts(drawn("length", 2).rows)


@pytest.mark.parametrize("split", PUBLISHED)
def test_shares_are_nested_and_leave_the_test_alone(split: str):
    full, half, few = (drawn(split, 7, share) for share in (1, 0.5, 0.003))
    assert texts(few.rows) < texts(half.rows) < texts(full.rows)
    np.testing.assert_array_equal(few.reserved, full.reserved)
    jump = split == "add-jump"
    assert half.size == jump + round(0.5 * (full.size - jump))
    for support, share in ((half, 0.5), (few, 0.003)):
        kind = ScanSplit(split=split, share=share)  # type: ignore[arg-type]
        assert kind.length(SCAN) == support.size
    if jump:
        assert "jump" in texts(few.rows)
        assert few.weights is not None and few.weights[0] / few.weights.sum() == pytest.approx(0.1)
    assert texts(drawn(split, 8, 0.5).rows) != texts(half.rows)


def test_the_smallest_share_has_a_command():
    assert drawn("length", share=1e-9).size == 1


@pytest.mark.parametrize("split", PUBLISHED)
@pytest.mark.parametrize("share", [1, 0.05])
def test_it_is_a_component(split: str, share: float):
    check_support(ScanSplit(split=split, share=share), SCAN)  # type: ignore[arg-type]


def test_jump_is_a_separate_group():
    found = drawn("add-jump").certificate((1, 2))
    assert found.complete and found.groups == 2


@pytest.mark.parametrize(
    "space",
    [SubsetSpace(modules=5, max_active=2), ProductSpace(factors={"a": 3, "b": 3})],  # type: ignore[arg-type]
)
def test_other_spaces_are_refused(space):
    with pytest.raises(BadInput, match=r"is not defined for a space of kind.*\n.*space=scan; supports that"):
        ScanSplit().check(space)
    assert not {"scan-split", "compound-divergence"} & set(existing(space))


def test_which_supports_exist_for_scan():
    assert {"scan-split", "compound-divergence", "random"} <= set(existing(SCAN))


@pytest.mark.parametrize("wrong", [{"split": "mcd"}, {"share": 0}, {"share": 1.1}])
def test_bad_settings(wrong: dict):
    with pytest.raises(ValidationError):
        ScanSplit(**wrong)


@pytest.mark.parametrize("kind", ["optimal", "planned", "balanced"])
def test_supports_of_other_spaces_say_so(kind: str) -> None:
    with pytest.raises(BadInput, match="not defined for a space of kind 'scan'"):
        resolve("supports", kind).check(ScanSpace())
