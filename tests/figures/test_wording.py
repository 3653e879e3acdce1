import math

import pytest

from recombine.figures import wording
from recombine.figures.wording import cut


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.50"), (-0.5, "\u22120.50"), (-0.001, "0.00"), (None, "\u2013"), (math.nan, "\u2013")]
)
def test_number(value, text):
    assert wording.number(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.5, "+0.50"), (-0.5, "\u22120.50"), (0.001, "0.00"), (None, "\u2013")])
def test_signed(value, text):
    assert wording.signed(value) == text


@pytest.mark.parametrize(
    ("direction", "margin", "text"),
    [
        ("greater", 0.05, "holds above +0.05"),
        ("less", 0.05, "holds below \u22120.05"),
        ("equivalent", 0.02, "holds within \u00b10.02"),
        ("above", 0.8, "holds above 0.80"),
        ("below", -0.1, "holds below \u22120.10"),
        ("above", 0.0, "holds above 0"),
        ("greater", 0.005, "holds above +0.005"),
        (None, 0.1, "margin 0.10"),
        ("greater", None, "no margin"),
    ],
)
def test_margin(direction, margin, text):
    assert wording.margin_in_words(direction, margin) == text


def test_interval():
    assert wording.interval_in_words([-0.1, 0.25]) == "\u22120.10 to +0.25"
    assert wording.interval_in_words([None, None]) == "no interval"
    assert wording.interval_in_words(None) == "no interval"


@pytest.mark.parametrize(("p", "text"), [(0.00001, "< 0.001"), (0.0123, "0.012"), (0.34, "0.34"), (None, "\u2013")])
def test_p(p, text):
    assert wording.p_in_words(p) == text


def test_long_names_are_cut():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"


def test_an_answer_says_whether_the_claim_holds_before_the_claim():
    record = {"answer": "holds", "statement": "It rises.", "effect": 0.34, "interval": [0.32, 0.36]}
    record |= {"replicates": 12, "note": "", "scales": []}
    basis = "Effect +0.34 (95 % interval +0.32 to +0.36) over 12 replicates."
    assert wording.answer_in_words(record) == f"Holds: It rises. {basis}"
    undecided = wording.answer_in_words(record | {"answer": "not decided", "note": "too few"}, "texts")
    assert undecided.startswith("Not decided. The claim was: It rises. ") and undecided.endswith("12 texts. (too few.)")
    scales = [
        {"scale": "R2", "effect": -0.04, "interval": [-0.05, -0.03]},
        {"scale": "log error", "effect": 0.7, "interval": [0.6, 0.8]},
    ]
    scaled = wording.answer_in_words(record | {"answer": "depends on the scale", "scales": scales})
    assert (
        "R2 \u22120.04 (95 % interval \u22120.05 to \u22120.03); log error +0.70 (95 % interval +0.60 to +0.80)"
        in scaled
    )
