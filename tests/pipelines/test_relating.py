"""A relation that is there is found, one that is not is not; and joint success against the product."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recombine.pipelines.findings import Point
from recombine.pipelines.relating import ALL, FREQUENCY, TEXT, joint_and_product, relate


def points(decodability, success, text=None, related=True):
    rng = np.random.default_rng(5)
    text = rng.normal(size=len(success)) if text is None else text
    return [
        Point(f"p{n}", f"prompt {n}", float(d), float(t), float(rng.normal()), float(s), n % 5, related)
        for n, (d, t, s) in enumerate(zip(decodability, text, success, strict=True))
    ]


def test_a_relation_is_found():
    rng = np.random.default_rng(0)
    read = rng.normal(size=80)
    success = np.clip(np.round((read + rng.normal(size=80)) / 4 + 0.5, 2), 0, 1)
    found = relate({"set": points(read, success)}, 0)
    assert found.plain.low > 0 and found.partial[ALL].low > 0 and "more often" in found.verdict
    assert "It stays" in found.verdict and "no cause" in found.verdict
    assert set(found.rivals) == {TEXT, FREQUENCY} and set(found.partial) == {TEXT, FREQUENCY, ALL}
    assert relate({"set": points(-read, success)}, 0).plain.high < 0


def test_a_rival_that_says_the_same_takes_it_away():
    rng = np.random.default_rng(1)
    text = rng.normal(size=100)
    read, success = text + 0.3 * rng.normal(size=100), text + 0.3 * rng.normal(size=100)
    found = relate({"set": points(read, 1 / (1 + np.exp(-success)), text)}, 0)
    assert found.plain.low > 0 and found.partial[ALL].low < 0.3
    assert found.rivals[TEXT].low > 0.5


def test_no_relation_is_mostly_not_found():
    hits = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found = relate({"set": points(rng.normal(size=40), rng.integers(0, 5, 40) / 4)}, seed)
        hits += found.plain.low > 0 or found.plain.high < 0
    assert hits <= 2


def test_what_cannot_be_said_is_not():
    few = relate({"set": points(range(5), np.linspace(0, 1, 5))}, 0)
    assert few.plain is None and few.verdict.startswith("Too few to say: 5 prompts")
    kept_out = relate({"set": points(range(30), np.linspace(0, 1, 30), related=False)}, 0)
    assert kept_out.plain is None and "0 prompts" in kept_out.verdict
    assert "no image is right" in relate({"set": points(range(30), np.zeros(30))}, 0).verdict
    assert "all images are right" in relate({"set": points(range(30), np.ones(30))}, 0).verdict
    same = relate({"set": points(np.zeros(30), np.linspace(0, 1, 30))}, 0)
    assert same.plain is None and "does not vary" in same.verdict
    no_text = relate({"set": points(range(30), np.linspace(0, 1, 30), [math.nan] * 30)}, 0)
    assert TEXT not in no_text.partial and any("text encoder" in note for note in no_text.notes)


def test_sets_are_compared_within_themselves():
    rng = np.random.default_rng(3)
    easy = points(rng.normal(size=40) + 5, 0.8 + 0.2 * rng.random(40))
    hard = points(rng.normal(size=40) - 5, 0.2 * rng.random(40))
    found = relate({"easy": easy, "hard": hard}, 0)
    assert found.combinations == 80 and found.plain.low < 0 < found.plain.high


@pytest.mark.parametrize(("kind", "sign"), [("independent", 0), ("together", 1), ("apart", -1)])
def test_joint_and_product(kind, sign):
    rng = np.random.default_rng(0)
    labels = [[f"a{n % 7}", f"b{n % 6}"] for n in range(60)]
    right = []
    for _ in labels:
        one, other = rng.random((2, 40)) < 0.6
        if kind == "together":
            other = np.where(rng.random(40) < 0.7, one, other)
        elif kind == "apart":
            other = np.where(rng.random(40) < 0.7, ~one, other)
        right.append(np.stack([one, other], axis=1))
    found = joint_and_product(right, labels)
    low, high = found.difference.low, found.difference.high
    assert {0: low < 0 < high, 1: low > 0, -1: high < 0}[sign]
    products = []
    for place, names in enumerate(labels):
        rates = [
            np.mean([right[n][:, k].mean() for n in range(60) if n != place and labels[n][k] == names[k]])
            for k in range(2)
        ]
        products.append(rates[0] * rates[1])
    assert found.product.estimate == pytest.approx(np.mean(products))
    assert found.joint.estimate == pytest.approx(np.mean([one.all(1).mean() for one in right]))


def test_too_few_for_joint_and_product():
    assert joint_and_product([np.ones((2, 1), bool)] * 3, [["a"]] * 3) is None
    assert joint_and_product([np.zeros((0, 1), bool)] * 30, [["a"]] * 30) is None
