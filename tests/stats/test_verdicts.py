"""Claims: judged one by one, and settled together."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.stats.correction import benjamini_hochberg, holm
from recombine.stats.verdicts import Claim, Direction, Verdict, judge, settle

EFFECTS = [0.3, 0.2, 0.4, 0.35]


def claim(name="better", direction="greater", margin=0.05, **others):
    return Claim(name, others.pop("study", "study"), "a statement", direction, margin, **others)


def test_judge_is_a_t_test():
    verdict = judge(claim(), EFFECTS)
    assert verdict.verdict == "supported"
    assert verdict.p == pytest.approx(stats.ttest_1samp(EFFECTS, 0.05).pvalue)
    ends = stats.ttest_1samp(EFFECTS, 0).confidence_interval()
    assert (verdict.low, verdict.high) == pytest.approx((ends.low, ends.high))
    assert (verdict.effect, verdict.replicates) == (pytest.approx(np.mean(EFFECTS)), 4)
    assert verdict.note == "" and verdict.p_adjusted is None


def test_failed_runs_are_left_out_and_counted():
    verdict = judge(claim(), [*EFFECTS, np.nan, -np.inf])
    assert replace(verdict, note="") == judge(claim(), EFFECTS)
    assert verdict.note == "2 of 6 effects are not finite and were left out"


@pytest.mark.parametrize("effects", [[], [0.3], [np.nan], [np.nan, 0.3], [None, 0.3]])
@pytest.mark.parametrize("direction", get_args(Direction))
def test_too_few_effects_decide_nothing(effects, direction):
    verdict = judge(claim(direction=direction), effects)
    assert verdict.verdict == "inconclusive" and verdict.p == 1
    assert "of the at least 2 effects" in verdict.note
    record = settle([verdict])[0].record()
    assert record["interval"] == [None, None]
    assert record["effect"] == (0.3 if 0.3 in effects else None)
    json.dumps(record, allow_nan=False)


def test_equal_effects_are_noted():
    verdict = judge(claim(), [0.1] * 12)
    assert (verdict.verdict, verdict.low, verdict.high, verdict.p) == ("supported", 0.1, 0.1, 0)
    assert verdict.note == "all 12 effects are equal"


def test_effects_must_be_flat():
    with pytest.raises(BadInput, match="one effect per replicate"):
        judge(claim(), [[0.1, 0.2]])


@pytest.mark.parametrize(
    "others, said",
    [
        ({"direction": "grater"}, "did you mean 'greater'"),
        ({"role": "precondtion"}, "did you mean 'precondition'"),
        ({"margin": -0.1}, "a distance from no effect"),
        ({"margin": np.nan}, "a distance from no effect"),
        ({"margin": np.inf, "direction": "above"}, "a finite threshold"),
        ({"primary": True, "role": "control"}, "only a claim can be primary"),
    ],
)
def test_bad_claims_are_refused(others, said):
    with pytest.raises(BadInput, match=said):
        claim(**others)


def test_a_threshold_may_be_negative():
    assert judge(claim(direction="above", margin=-1.0), EFFECTS).verdict == "supported"


def test_record_is_plain():
    fits = judge(claim("fits", role="precondition"), EFFECTS)
    record = settle([judge(claim(needs=("fits",)), EFFECTS), fits])[0].record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert {"claim": "better", "study": "study", "verdict": "supported", "needs": ["fits"]}.items() <= record.items()
    assert set(record) >= {
        *("claim", "study", "statement", "role", "verdict", "effect", "interval", "margin", "direction"),
        *("replicates", "primary", "p", "p_adjusted", "note"),
    }


def test_settle_corrects_each_family():
    rng = np.random.default_rng(0)
    verdicts = [judge(claim(str(index), primary=index % 2 == 0), rng.normal(0.06, 0.02, size=8)) for index in range(9)]
    settled = settle(verdicts)
    p = np.array([verdict.p for verdict in verdicts])
    np.testing.assert_array_equal([verdict.p_adjusted for verdict in settled[0::2]], holm(p[0::2]))
    np.testing.assert_array_equal([verdict.p_adjusted for verdict in settled[1::2]], benjamini_hochberg(p[1::2]))


@pytest.mark.parametrize("others", [0, 6])
def test_recorded_verdicts_can_be_settled_again(others: int):
    rng = np.random.default_rng(1)
    wide = [0.12, 0.06, 0.15, 0.09, np.nan, 0.08]
    verdicts = [
        judge(claim("first", primary=True), wide),
        judge(claim("fits", role="precondition"), [0.0, 0.1, -0.1]),
        judge(claim("needy", needs=("fits", "first")), rng.normal(1, 0.1, size=5)),
        judge(claim("nothing"), [np.nan, 1.0]),
    ]
    rivals = [judge(claim(primary=True, study=f"other {one}"), [0.0, 0.1, -0.1]) for one in range(others)]
    # First settled by themselves, then read back and settled with others: as if all had been together from the start.
    records = json.loads(json.dumps([one.record() for one in settle(verdicts)]))
    again = settle([*map(Verdict.from_record, records), *rivals])
    assert [one.record() for one in again] == [one.record() for one in settle([*verdicts, *rivals])]


def test_what_does_not_survive_becomes_inconclusive():
    weak = [0.12, 0.06, 0.15, 0.09, 0.2, 0.08]
    alone = judge(claim(primary=True), weak)
    assert alone.verdict == "supported" and 0.01 < alone.p < 0.05
    assert settle([alone])[0].verdict == "supported"
    rivals = [judge(claim(primary=True, study=f"other {index}"), [0.0, 0.1, -0.1]) for index in range(4)]
    settled = settle([alone, *rivals])[0]
    assert settled.verdict == "inconclusive"
    assert settled.note.startswith("supported alone, but not after correction (Holm: p = 0.")
    assert settled.record()["verdict_alone"] == "supported"
    assert (settled.effect, settled.low, settled.high) == (alone.effect, alone.low, alone.high)


def test_preconditions():
    fits = judge(claim("fits", "above", 0.9, role="precondition"), [0.99, 0.98, 0.99, 0.97])
    does_not = judge(fits.claim, [0.5, 0.6, 0.5, 0.4])
    better = judge(claim(primary=True, needs=("fits",)), EFFECTS)
    assert [verdict.verdict for verdict in settle([better, fits])] == ["supported", "supported"]

    settled = settle([better, does_not])
    assert [verdict.verdict for verdict in settled] == ["inconclusive", "contradicted"]
    assert settled[0].note == "precondition 'fits' is contradicted"
    assert settle([better])[0].note == "precondition 'fits' was not judged"

    elsewhere = replace(fits, claim=replace(fits.claim, study="another"))
    assert settle([better, elsewhere])[0].verdict == "inconclusive"


def test_an_equivalence_can_be_a_precondition():
    same = judge(claim("same", "equivalent", 0.1, role="precondition"), [0.01, 0.0, -0.01])
    assert settle([judge(claim(needs=("same",)), EFFECTS), same])[0].verdict == "supported"


def test_preconditions_pass_on():
    chain = [
        judge(claim("last", needs=("middle",)), EFFECTS),
        judge(claim("middle", role="precondition", needs=("first",)), EFFECTS),
        judge(claim("first", "above", 0.9, role="precondition"), EFFECTS),
    ]
    settled = settle(chain)
    assert [verdict.verdict for verdict in settled] == ["inconclusive", "inconclusive", "contradicted"]
    assert settled[0].note == "precondition 'middle' is inconclusive"


def test_a_claim_is_settled_once():
    with pytest.raises(BadInput, match="two verdicts on claim 'better' of study 'study'"):
        settle([judge(claim(), EFFECTS)] * 2)
    assert settle([]) == []


effects = st.lists(st.floats(-1, 1) | st.just(float("nan")), max_size=6)
drafts = st.lists(
    st.tuples(st.sampled_from(get_args(Direction)), st.booleans(), st.sets(st.integers(0, 5), max_size=2), effects),
    max_size=6,
)


@given(drafts)
@settings(derandomize=True, deadline=None)
def test_settling_twice_is_settling_once(drafts):
    """Also when claims need each other in circles, and when only some were settled before."""
    verdicts = [
        judge(claim(str(index), direction, 0.1, primary=primary, needs=tuple(map(str, sorted(needs)))), values)
        for index, (direction, primary, needs, values) in enumerate(drafts)
    ]
    once = settle(verdicts)
    assert settle(once) == once
    assert settle(once[:3] + verdicts[3:]) == once
    assert [verdict.claim for verdict in once] == [verdict.claim for verdict in verdicts]
    for before, after in zip(verdicts, once, strict=True):
        assert after.verdict in (before.verdict, "inconclusive")
        assert after.p_adjusted >= after.p
        assert after.verdict == "inconclusive" or after.p_adjusted <= 0.05


def any_false(truths, primary, seed, trials=500):
    """How often settle() lets at least one false word through, and the mean share of false words among all."""
    rng = np.random.default_rng(seed)
    claims = [claim(str(index), margin=0.5, primary=primary) for index in range(len(truths))]
    true_words = ["supported" if truth > 0.5 else "contradicted" if truth < -0.5 else "equivalent" for truth in truths]
    some, share = 0, 0.0
    for _ in range(trials):
        settled = settle([judge(c, rng.normal(truth, 1, size=12)) for c, truth in zip(claims, truths, strict=True)])
        said = [(v.verdict, word) for v, word in zip(settled, true_words, strict=True) if v.verdict != "inconclusive"]
        false = sum(verdict != word for verdict, word in said)
        some += false > 0
        share += false / max(len(said), 1)
    return some / trials, share / trials


@pytest.mark.parametrize("truths", [[0.5] * 5, [0.5, -0.5, 0.5, 0.0, 2.0], [0.5, 0.5, 2.0, 2.0, 2.0]])
def test_holm_keeps_any_false_primary_rare(truths):
    assert any_false(truths, primary=True, seed=0)[0] <= 0.05


def test_benjamini_hochberg_keeps_the_share_of_false_secondaries_low():
    assert any_false([0.5, 0.5, 0.5, -0.5, 2.0, 2.0], primary=False, seed=0)[1] <= 0.05
