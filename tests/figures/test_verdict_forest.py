import math

import pytest

from recombine.figures.theme import ANSWERS
from recombine.figures.verdict_forest import draw_verdict_forest, in_order, verdict_forest_info


def record(claim="rises", **changes):
    made = {
        "claim": claim,
        "study": "data-scaling",
        "statement": "It rises.",
        "role": "claim",
        "answer": "holds",
        "effect": 0.4,
        "interval": [0.3, 0.5],
        "margin": 0.05,
        "direction": "greater",
        "replicates": 4,
        "primary": False,
        "p": 0.001,
        "p_adjusted": 0.002,
        "note": "",
    }
    return made | changes


def test_the_primary_claim_comes_first_then_controls_then_preconditions():
    names = [
        one["claim"]
        for one in in_order(
            [
                record("fits", role="precondition"),
                record("control", role="control"),
                record("second"),
                record("first", primary=True),
            ]
        )
    ]
    assert names == ["first", "second", "control", "fits"]


def test_margins_are_boxes_and_thresholds_are_lines():
    info = verdict_forest_info([record("a", margin=0.05), record("b", direction="above", margin=0.8)])
    distance, threshold = info.rows.to_dict("records")
    assert (distance["from_margin"], distance["to_margin"]) == (-0.05, 0.05)
    assert math.isnan(distance["threshold"])
    assert threshold["threshold"] == 0.8
    assert math.isnan(threshold["from_margin"])
    assert info.domain[0] < -0.05
    assert info.domain[1] > 0.8


def test_one_wild_effect_does_not_flatten_the_others():
    info = verdict_forest_info([record("a"), record("b", effect=40.0, interval=[30.0, 50.0])])
    assert info.domain[1] < 2
    assert list(info.rows["clipped"]) == [False, True]
    assert "beyond the axis" in info.caption


def test_equal_names_of_two_studies_are_two_rows():
    info = verdict_forest_info([record(), record(study="other"), record(study="other")])
    assert list(info.rows["label"]) == ["data-scaling: rises", "other: rises", "other: rises (2)"]


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [record()],
        [record(effect=None, interval=[None, None], answer="not decided")],
        [record(effect=math.nan, interval=None, margin=None, direction=None)],
        [record(word) for word in ("<b>", '"', "</script>")],
        [record(word, answer=word) for word in ANSWERS],
        [{"claim": "bare"}],
    ],
)
def test_any_verdicts_draw_something(verdicts):
    info = verdict_forest_info(verdicts)
    assert info.caption
    assert draw_verdict_forest(info).to_dict()
