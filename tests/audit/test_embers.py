"""Embers: a model with a known bias, one without, and tables that say little."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import special

from recombine.audit.embers.findings import COLUMNS, embers_findings, levels
from recombine.audit.embers.regression import UNIT
from recombine.errors import BadInput
from recombine.language.items import make_items


def table(items, rng, *, level=0.0, common=0.0, output=0.0, given=0.0, spread=0.0):
    """Answers with known log-odds: the effects of variant, output and input (10 nats), and of the text itself."""
    frame = pd.DataFrame(
        {
            "task": [item.task for item in items],
            "variant": [item.variant for item in items],
            "input_logprob": [item.input_logprob for item in items],
            "output_logprob": [item.output_logprob for item in items],
            "input_length": [len(item.input) for item in items],
            "output_length": [len(item.output) for item in items],
            "group": [item.group for item in items],
        }
    )
    centred = {
        name: frame[name] - frame.groupby("task")[name].transform("mean")
        for name in ("input_logprob", "output_logprob")
    }
    texts = {group: rng.normal() for group in frame["group"].unique()}
    odds = level + common * ((frame["variant"] == "common") - 0.5)
    odds += (output * centred["output_logprob"] + given * centred["input_logprob"]) / UNIT
    odds += spread * frame["group"].map(texts)
    return frame.assign(correct=(rng.uniform(size=len(frame)) < special.expit(odds)).astype(int))


@pytest.fixture(scope="module")
def items():
    return make_items(60, tasks=["decode", "encode", "reversal", "sorting"])


def words(found):
    return {verdict.claim.name: verdict.verdict for verdict in found.verdicts}


def weight(found, name):
    return next(one.weight for one in found.weights if one.name == name)


def test_a_known_bias_is_found_with_its_size(items):
    made = table(items, np.random.default_rng(0), common=1.0, output=1.0, spread=0.7)
    found = embers_findings(made)
    assert set(words(found).values()) == {"supported"}
    for name, true in (("common variant", 1.0), ("output log-probability", 1.0)):
        one = weight(found, name)
        assert one.low < true < one.high and one.high - one.low < 1.2
    assert 0.3 < found.spread < 1.1
    one = weight(found, "input log-probability")
    assert one.low < 0 < one.high
    effects = {verdict.claim.name: verdict.effect for verdict in found.verdicts}
    # By hand, without the machinery.
    made = made.assign(level=levels(made))
    decode, encode = (made[(made["task"] == task)] for task in ("decode", "encode"))
    gaps = [
        part[part["level"] == "high"]["correct"].mean() - part[part["level"] == "low"]["correct"].mean()
        for part in (decode, encode)
    ]
    assert effects["decoding-gap"] == pytest.approx(gaps[0] - gaps[1])
    both = made[made["task"] != "reversal"]
    means = both.groupby("variant")["correct"].mean()
    assert effects["common-task"] == pytest.approx(means["common"] - means["rare"], abs=0.01)


def test_no_bias_is_not_found(items):
    found = embers_findings(table(items, np.random.default_rng(1), level=0.4, spread=0.7))
    assert "supported" not in words(found).values() and "contradicted" not in words(found).values()


def test_no_bias_is_found_no_more_often_than_it_may_be():
    """Simulated: any claim is supported in at most about 5 of 100 tables without an effect."""
    items = make_items(12, tasks=["decode", "encode"])
    wrong = 0
    for number in range(30):
        made = table(items, np.random.default_rng([5, number]), spread=0.7)
        wrong += any(word == "supported" for word in words(embers_findings(made)).values())
    assert wrong <= 4


def test_a_bias_of_the_input_is_not_one_of_the_output(items):
    found = embers_findings(table(items, np.random.default_rng(2), given=1.0))
    said = words(found)
    assert said["output-weight"] != "supported" and said["output-over-input"] == "contradicted"
    assert weight(found, "input log-probability").low > 0
    assert said["decoding-gap"] == "contradicted"


def test_shares_are_those_of_the_table(items):
    made = table(items, np.random.default_rng(3), level=-0.5)
    found = embers_findings(made)
    assert found.items == len(made) and found.right.estimate == pytest.approx(made["correct"].mean())
    made = made.assign(level=levels(made))
    for one in found.shares:
        part = made[(made["task"] == one.task) & (made["variant"] == one.variant)]
        part = part if one.level == "all" else part[part["level"] == one.level]
        assert one.items == len(part) and one.right.estimate == pytest.approx(part["correct"].mean())
    high = [one.items for one in found.shares if one.task == "decode" and one.level == "high"]
    assert high == [60, 60]


def test_levels_are_those_that_the_items_were_made_with(items):
    made = table(items, np.random.default_rng(0))
    found = np.array(levels(made))
    for task in ("decode", "encode", "reversal"):
        at = (made["task"] == task).to_numpy()
        each = 1 if task == "reversal" else 2
        assert found[at].tolist() == np.tile(np.repeat(["high", "medium", "low"], each), 60).tolist()


def test_levels_of_what_does_not_vary():
    frame = pd.DataFrame(
        {
            "task": ["a"] * 6 + ["b"] * 4 + ["c"] * 2,
            "input_logprob": -1.0,
            "output_logprob": [-3.0, -3, -3, -9, -9, -9, -5, -5, -5, -5, math.nan, math.nan],
        }
    )
    assert levels(frame) == ["high"] * 3 + ["low"] * 3 + [""] * 6


@pytest.mark.parametrize(("share", "said"), [(0, "wrong"), (1, "right")])
def test_all_the_same(items, share, said):
    found = embers_findings(table(items, np.random.default_rng(0)).assign(correct=share))
    assert set(words(found).values()) == {"inconclusive"} and found.weights == ()
    assert all(f"answers are {said}" in one.note for one in found.verdicts[:3])
    assert any("no regression" in note for note in found.notes) and math.isnan(found.spread)
    assert found.record()["verdicts"][0]["effect"] is None


def test_few_texts_decide_nothing():
    items = make_items(2, tasks=["decode", "encode"])
    found = embers_findings(table(items, np.random.default_rng(0), output=3.0))
    assert set(words(found).values()) == {"inconclusive"}
    assert "6 texts; a verdict needs at least 10" in found.verdicts[1].note


def test_tasks_that_are_all_right_are_left_out_of_the_regression(items):
    made = table(items, np.random.default_rng(4), output=1.0)
    made.loc[made["task"] == "sorting", "correct"] = 1
    found = embers_findings(made)
    assert any("all answers are right or all are wrong" in note and "sorting" in note for note in found.notes)
    assert weight(found, "output log-probability").low > 0


def test_a_variant_that_is_never_solved_has_no_weight():
    items = make_items(20, tasks=["decode"])
    made = table(items, np.random.default_rng(5), level=1.0)
    made.loc[made["variant"] == "rare", "correct"] = 0
    found = embers_findings(made)
    assert words(found)["common-task"] == "supported"
    rare = int((made["variant"] == "rare").sum())
    assert any(f"The rare variant is never solved (0 of {rare} answers)" in note for note in found.notes)
    assert found.weights and "common variant" not in {each.name for each in found.weights}
    assert all(each.weight.high - each.weight.low < 20 for each in found.weights)


def test_unknown_probabilities_are_noted(items):
    made = table(items, np.random.default_rng(6))
    made.loc[:9, "output_logprob"] = math.nan
    found = embers_findings(made)
    told = f"10 of {len(made)} answers have no output log-probability"
    assert any(note.startswith(told) for note in found.notes)
    for column in ("input", "output"):
        found = embers_findings(table(items, np.random.default_rng(6)).assign(**{f"{column}_logprob": math.nan}))
        assert f"{len(made)} of {len(made)} answers have no {column} log-probability" in found.notes[0]
        assert "No answer has both log-probabilities, so there is no regression." in found.notes
        assert not any("right and wrong" in note for note in found.notes)
    bare = embers_findings(made.assign(output_logprob=math.nan, input_logprob=math.nan))
    assert bare.weights == () and words(bare)["common-task"] in ("equivalent", "inconclusive")


def test_lengths_that_go_with_probability_are_noted(items):
    made = table(items, np.random.default_rng(7))
    longer = made.assign(output_length=made["output_length"] + (made["output_logprob"] < -20) * 9)
    assert not any("characters" in note for note in embers_findings(made).notes)
    assert any("one of length" in note for note in embers_findings(longer).notes)


def test_what_is_no_table(items):
    made = table(items, np.random.default_rng(8))
    assert set(COLUMNS) <= set(made.columns)
    with pytest.raises(BadInput, match="no column 'group'"):
        embers_findings(made.drop(columns="group"))
    with pytest.raises(BadInput, match="no answers"):
        embers_findings(made.iloc[:0])


def test_findings_show_themselves_on_a_screen_and_in_a_notebook(items):
    made = table(items, np.random.default_rng(0), common=1.0).replace({"task": {"sorting": "<i>sorting"}})
    found = embers_findings(made.assign(output_length=np.arange(len(made)) % 7))
    lines = repr(found).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    assert lines[0].startswith("Embers: ") and any("supported: The common variant" in line for line in lines)
    page = found._repr_html_()
    assert "<i>" not in page and page.count("<tr>") == 1 + len(found.verdicts)
