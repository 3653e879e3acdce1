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
    assert (verdict.verdict, verdict.low, verdict.high) == ("supported", 0.1, 0.1)
    assert verdict.p == stats.binomtest(12, 12).pvalue  # The sign test: equal effects are no proof of no variance.
    assert verdict.note == "all 12 effects are equal"
    assert judge(claim(), [0.1] * 5).verdict == "inconclusive"


def test_both_intervals_must_agree():
    effects = [0.04, 0.12, 0.12, 0.13, 0.12, 0.12]
    assert stats.ttest_1samp(effects, 0.05).pvalue < 0.05 <= stats.wilcoxon(np.subtract(effects, 0.05)).pvalue
    verdict = judge(claim(), effects)
    assert verdict.verdict == "inconclusive"
    assert verdict.note == "supported by the t interval, but not by the signed-rank interval [0.04, 0.13]"
    assert judge(claim(), [0.06, *effects[1:]]).verdict == "supported"


SCALES = (("R2", 0.05), ("log error", 0.2))


def scaled(first, second, **others):
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.01, size=(2, 8))
    return judge(claim(scales=SCALES, **others), np.array([[first], [second]]) + noise)


@pytest.mark.parametrize(
    "first, second, outcome, answer",
    [
        (0.2, 0.5, "supported", "holds"),
        (-0.2, -0.5, "contradicted", "does not hold"),
        (0.0, 0.0, "equivalent", "too small to matter"),
        (0.2, 0.2, "inconclusive", "not decided"),  # The second lies on its margin.
        (0.05, 0.2, "inconclusive", "not decided"),
        (0.0, 0.5, "depends on the scale", "depends on the scale"),
        (0.2, -0.5, "depends on the scale", "depends on the scale"),
    ],
)
def test_a_claim_holds_on_every_scale_or_depends_on_the_scale(first, second, outcome, answer):
    verdict = scaled(first, second)
    assert (verdict.verdict, verdict.answer) == (outcome, answer)
    assert verdict.p == max(scale.p for scale in verdict.scales)
    assert [scale.scale for scale in verdict.scales] == ["R2", "log error"]
    settled = settle([verdict])[0]
    assert settled.verdict == outcome
    record = json.loads(json.dumps(settled.record(), allow_nan=False))
    assert record["answer"] == answer and len(record["values"]) == 8
    assert settle([Verdict.from_record(record)])[0].record() == settled.record()


def test_an_undecided_scale_does_not_hide_that_two_others_differ():
    scales = (*SCALES, ("root error", 0.05))
    noise = np.random.default_rng(4).normal(0, 0.01, size=(3, 8))
    verdict = judge(claim(scales=scales, primary=True), np.array([[0.05], [0.5], [0.0]]) + noise)
    assert [scale.verdict for scale in verdict.scales] == ["inconclusive", "supported", "equivalent"]
    assert verdict.p == max(scale.p for scale in verdict.scales[1:]) < 0.05
    assert settle([verdict])[0].verdict == "depends on the scale"


def test_what_depends_on_the_scale_is_no_precondition():
    depends = scaled(0.0, 0.5, name="fits", role="precondition")
    assert settle([judge(claim(needs=("fits",)), EFFECTS), depends])[0].verdict == "inconclusive"


def test_scales_need_a_row_each():
    with pytest.raises(BadInput, match="one row for each of the 2 scales"):
        judge(claim(scales=SCALES), EFFECTS)


def test_equivalence_is_an_answer_or_what_was_claimed():
    same = [0.01, 0.0, -0.01, 0.005, 0.0, -0.002]
    assert judge(claim(direction="equivalent"), same).answer == "holds"
    assert judge(claim(), same).answer == "too small to matter"


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
    elsewhere = [judge(claim(primary=True, study=f"other {index}"), [0.0, 0.1, -0.1]) for index in range(4)]
    assert settle([alone, *elsewhere])[0].verdict == "supported"
    assert settle([alone, *elsewhere])[0].p_portfolio > 0.05
    rivals = [judge(claim(f"rival {index}", primary=True), [0.0, 0.1, -0.1]) for index in range(4)]
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


@given(drafts, drafts)
@settings(derandomize=True, deadline=None)
def test_another_study_changes_no_verdict(drafts, others):
    def verdicts(study, drafts):
        return [
            judge(claim(str(index), direction, 0.1, primary=primary, study=study), values)
            for index, (direction, primary, _, values) in enumerate(drafts)
        ]

    own = verdicts("own", drafts)
    together = settle([*own, *verdicts("other", others)])[: len(own)]
    for alone, joined in zip(settle(own), together, strict=True):
        assert replace(joined, p_portfolio=alone.p_portfolio) == alone


def test_preconditions_and_controls_are_not_corrected():
    weak = [0.12, 0.06, 0.15, 0.09, 0.2, 0.08]
    many = [judge(claim(f"claim {index}"), [0.0, 0.1, -0.1]) for index in range(9)]
    for role in ("precondition", "control"):
        settled = settle([judge(claim(role=role), weak), *many])[0]
        assert (settled.verdict, settled.p_adjusted, settled.p_portfolio) == ("supported", settled.p, None)


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
