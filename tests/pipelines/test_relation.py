"""A relation that is there is found, one that is not is not; and joint success against the product."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from recombine.pipelines.findings import CombinationFinding
from recombine.pipelines.relation import (
    ALL,
    FREQUENCY,
    PARTS,
    TEXT,
    held_concepts,
    joint_and_product,
    relate,
    shared_rank,
)
from recombine.stats.rank import partial_rank


def points(decodability, success, text=None, related=True):
    rng = np.random.default_rng(5)
    text = rng.normal(size=len(success)) if text is None else text
    return [
        CombinationFinding(f"p{n}", f"prompt {n}", float(d), float(t), float(rng.normal()), float(s), n % 5, related)
        for n, (d, t, s) in enumerate(zip(decodability, text, success, strict=True))
    ]


def test_a_relation_is_found():
    rng = np.random.default_rng(0)
    read = rng.normal(size=80)
    success = np.clip(np.round((read + rng.normal(size=80)) / 4 + 0.5, 2), 0, 1)
    found = relate({"set": points(read, success)})
    assert found.plain.low > 0 and found.partial[ALL].low > 0 and "more often" in found.verdict
    assert "It remains" in found.verdict and "no evidence of a cause" in found.verdict
    assert set(found.rivals) == {TEXT, FREQUENCY} and set(found.partial) == {TEXT, FREQUENCY, ALL}
    assert relate({"set": points(-read, success)}).plain.high < 0


def test_a_rival_that_says_the_same_takes_it_away():
    rng = np.random.default_rng(1)
    text = rng.normal(size=100)
    read, success = text + 0.3 * rng.normal(size=100), text + 0.3 * rng.normal(size=100)
    found = relate({"set": points(read, 1 / (1 + np.exp(-success)), text)})
    assert found.plain.low > 0 and found.partial[ALL].low < 0.3
    assert found.rivals[TEXT].low > 0.5


def test_no_relation_is_mostly_not_found():
    hits = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found = relate({"set": points(rng.normal(size=40), rng.integers(0, 5, 40) / 4)})
        hits += found.plain.low > 0 or found.plain.high < 0
    assert hits <= 2


def crossed(seed, share, relation=0.0):
    """10 x 10 concepts, each with an effect of its own on both, 80 combinations; and a relation of what is left."""
    rng = np.random.default_rng(seed)
    pairs = [divmod(int(one), 10) for one in rng.permutation(100)[:80]]
    effects = rng.normal(size=(2, 2, 10)) * math.sqrt(share / 2)
    own = rng.normal(size=(2, 80)) * math.sqrt(1 - share)
    own[1] = relation * own[0] + math.sqrt(1 - relation**2) * own[1]
    read, drawn = (
        [effect[0, a] + effect[1, b] + one for (a, b), one in zip(pairs, each, strict=True)]
        for effect, each in zip(effects, own, strict=True)
    )
    success = np.round(4 / (1 + np.exp(-1.5 * np.array(drawn)))) / 4
    return [
        dataclasses.replace(one, concepts=(f"a{a}", f"b{b}"), fold=0)
        for one, (a, b) in zip(points(read, success), pairs, strict=True)
    ]


def test_concepts_with_effects_of_their_own_make_no_relation():
    """With a bootstrap over prompts about a fifth of such tables had one."""
    hits, held = 0, 0
    for seed in range(20):
        found = relate({"set": crossed(seed, 0.8)})
        hits += found.plain.low > 0 or found.plain.high < 0
        held += found.partial[PARTS].low > 0 or found.partial[PARTS].high < 0
        assert found.plain.estimate == pytest.approx(_spearman(crossed(seed, 0.8)))
    assert hits <= 4 and held <= 3


def _spearman(given):
    return stats.spearmanr([one.decodability for one in given], [one.success for one in given]).statistic


def test_a_relation_beyond_concepts_is_found_where_they_are_held_still():
    found = [relate({"set": crossed(seed, 0.4, 0.8)}).partial[PARTS] for seed in range(5)]
    assert all(one.low > 0 for one in found)


def test_independent_points_have_the_usual_error():
    """Without concepts it is the jackknife, which is near Bonett and Wright's."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2, 200))
    holds = held_concepts([()] * 200)
    found = shared_rank(x, np.zeros(200, int), holds)
    usual = partial_rank(*x, np.zeros(200))
    assert found.estimate == pytest.approx(usual.estimate)
    assert found.high - found.low == pytest.approx(usual.high - usual.low, rel=0.15)


def test_too_many_concepts_are_not_held_still():
    given = crossed(0, 0.0)[:25]
    found = relate({"set": given})
    assert PARTS not in found.partial and any("too few prompts" in note for note in found.notes)


def test_success_that_differs_only_between_sets():
    easy, hard = points(range(20), np.ones(20)), points(range(20), np.zeros(20))
    said = relate({"easy": easy, "hard": hard}).verdict
    assert "within each set" in said and "Decodability" not in said


def test_what_cannot_be_said_is_not():
    few = relate({"set": points(range(5), np.linspace(0, 1, 5))})
    assert few.plain is None and few.verdict.startswith("Too few to say: 5 prompts")
    kept_out = relate({"set": points(range(30), np.linspace(0, 1, 30), related=False)})
    assert kept_out.plain is None and "0 prompts" in kept_out.verdict
    assert "no image is right" in relate({"set": points(range(30), np.zeros(30))}).verdict
    assert "all images are right" in relate({"set": points(range(30), np.ones(30))}).verdict
    same = relate({"set": points(np.zeros(30), np.linspace(0, 1, 30))})
    assert same.plain is None and "does not vary" in same.verdict
    no_text = relate({"set": points(range(30), np.linspace(0, 1, 30), [math.nan] * 30)})
    assert TEXT not in no_text.partial and any("text encoder" in note for note in no_text.notes)


def test_sets_are_compared_within_themselves():
    rng = np.random.default_rng(3)
    easy = points(rng.normal(size=40) + 5, 0.8 + 0.2 * rng.random(40))
    hard = points(rng.normal(size=40) - 5, 0.2 * rng.random(40))
    found = relate({"easy": easy, "hard": hard})
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
