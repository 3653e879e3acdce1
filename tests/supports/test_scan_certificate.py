"""The certificate of splits of SCAN, against brute force over sentences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.spaces.scan import ScanSpace
from recombine.spaces.scan.language import parse
from recombine.supports.listed import Listed
from recombine.supports.random import Random
from recombine.supports.regions import STRATA
from recombine.supports.scan_split import ScanSplit
from recombine.supports.scan_split.certificate import scan_certificate

SCAN = ScanSpace()


def of(split: str, share: float = 1) -> dict[str, float]:
    return scan_certificate(ScanSplit(split=split, share=share).draw(SCAN, 2))  # type: ignore[arg-type]


def test_by_hand():
    train = [parse(text) for text in ("jump", "walk left", "walk twice", "run and walk")]
    test = [parse(text) for text in ("walk left twice", "look", "run and jump", "walk")]
    found = scan_certificate(Listed(SCAN, np.array(train), reserved=np.array(test)))
    # In this order: some_pairs_unmet, part_unseen, some_pairs_unmet, all_pairs_met.
    shares = {name: found[f"share_{name}"] for name in STRATA}
    assert shares == {"all_pairs_met": 0.25, "some_pairs_unmet": 0.5, "part_unseen": 0.25}
    # Compounds of the test: walk left, walk twice, left twice, walk left twice; run and ..., ... and jump.
    assert found["compounds_unseen"] == pytest.approx(3 / 6)


def pairs(rows: np.ndarray) -> list[set[tuple[int, int]]]:
    lists = [[part for part in row if part < SCAN.width] for row in rows.tolist()]
    return [set(itertools.combinations(parts, 2)) for parts in lists]


@pytest.mark.parametrize("split", ["simple", "length", "add-jump", "around-right"])
def test_against_brute_force(split: str):
    support = ScanSplit(split=split, share=0.02).draw(SCAN, 2)  # type: ignore[arg-type]
    found = scan_certificate(support)
    train, asked = set().union(*pairs(support.rows)), pairs(support.reserved)
    test = set().union(*asked)
    assert found["pairs_unmet"] == pytest.approx(len(test - train) / len(test))
    # Who has not met anybody has not occurred, as every command has two constituents.
    seen = {part for pair in train for part in pair}
    wanted = [
        "all_pairs_met" if own <= train
        else "some_pairs_unmet" if {part for pair in own for part in pair} <= seen
        else "part_unseen"
        for own in asked
    ]  # fmt: skip
    for name in STRATA:
        assert found[f"share_{name}"] == pytest.approx(wanted.count(name) / len(wanted))


def test_what_the_published_splits_leave_out():
    simple, length, jump, around = (of(split) for split in ("simple", "length", "add-jump", "around-right"))
    assert simple["share_all_pairs_met"] == length["share_all_pairs_met"] == 1
    assert jump["share_some_pairs_unmet"] == around["share_some_pairs_unmet"] == 1
    assert simple["pairs_unmet"] == length["pairs_unmet"] == 0 < around["pairs_unmet"] < jump["pairs_unmet"]
    assert simple["compound_divergence"] < 0.01 < around["compound_divergence"]
    assert simple["compounds_unseen"] == 0 < around["compounds_unseen"] < jump["compounds_unseen"]


def test_any_list_of_commands_has_one():
    support = Random(number=500).draw(SCAN, 0)
    every = SCAN.enumerate()
    rest = every[~support.contains(every)]
    assert scan_certificate(support) == scan_certificate(Listed(SCAN, support.rows, reserved=rest))
