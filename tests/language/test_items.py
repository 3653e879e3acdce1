"""Items: answers against another computation, and levels that differ only in probability."""

from __future__ import annotations

import codecs
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recombine.errors import BadInput
from recombine.language import items as of
from recombine.language.items import LEVELS, TASKS, make_items
from recombine.language.words import english


@pytest.fixture(scope="module")
def items():
    return make_items(30)


def given_text(item):
    return item.prompt.rpartition("\n")[2]


@given(st.text(), st.integers(-60, 60))
def test_a_shift_can_be_undone(text, by):
    there = of.shifted(text, by)
    assert of.shifted(there, -by) == text and len(there) == len(text)
    assert of.shifted(text, by + 26) == there


@given(st.text())
def test_thirteen_equals_rot13_of_the_standard_library(text):
    assert of.shifted(text, 13) == codecs.encode(text, "rot13")


@given(st.integers(-5000, 5000), st.integers(1, 20), st.integers(-50, 50))
def test_linear_functions_are_exact(number, factor, constant):
    assert Fraction(of.linear(number, factor, constant)) == Fraction(number * factor, 5) + constant


def test_small_cases():
    assert of.shifted("Xyz, a!", 3) == "Abc, d!"


def test_every_kind_of_item_has_the_requested_number(items):
    kinds = {name: [item for item in items if item.task == name] for name in TASKS}
    counts = {name: len(members) for name, members in kinds.items()}
    assert counts == {
        "decode": 180,
        "encode": 180,
        "reversal": 90,
        "counting": 60,
        "linear": 60,
        "sorting": 60,
        "acronym": 120,
    }
    for name, members in kinds.items():
        common = sum(item.variant == "common" for item in members)
        assert common == (len(members) if name == "reversal" else len(members) // 2)
    assert len({item.name for item in items}) == len(items)


def test_answers_are_right(items):
    """Computed from the prompts, by other means than those that made them."""
    for item in items:
        text = given_text(item)
        assert item.input == text and item.output == item.answer
        if item.task in ("decode", "encode"):
            shift = {"common": 13, "rare": 12}[item.variant]
            sign = -1 if item.task == "decode" else 1
            moved = [chr((ord(c) - 97 + sign * shift) % 26 + 97) if c != " " else c for c in text]
            assert item.answer == "".join(moved) and f"rot-{shift} " in item.prompt
        elif item.task == "reversal":
            assert item.answer.split()[::-1] == text.split()
        elif item.task == "counting":
            assert int(item.answer) == len(text) and (len(text) % 10 == 0) == (item.variant == "common")
        elif item.task == "linear":
            a, b = {"common": (9, 32), "rare": (7, 31)}[item.variant]
            assert Fraction(int(text) * a, 5) + b == int(item.answer)
        elif item.task == "sorting":
            order = sorted(text.split())
            assert item.answer.split() == (order if item.variant == "common" else order[::-1])
        else:
            place = {"common": 0, "rare": 1}[item.variant]
            assert item.answer == "".join(word[place] for word in text.split())


def test_probable_and_improbable_texts_differ_in_nothing_else(items):
    """The same length, the same lengths of words in the same order, the same alphabet; and clearly apart."""
    decoded = [item for item in items if item.task == "decode" and item.variant == "common"]
    triples = [decoded[start : start + 3] for start in range(0, len(decoded), 3)]
    assert {len(item.answer) for item in decoded} == {24}
    for triple in triples:
        assert len({tuple(len(word) for word in item.answer.split()) for item in triple}) == 1
    by_level = np.array([[item.output_logprob for item in triple] for triple in triples])
    high, medium, low = by_level.T
    assert list(LEVELS) == ["high", "medium", "low"]
    assert high.min() > medium.max() > medium.min() > low.max()
    # What is given has no probability to speak of: it is the same for all.
    assert np.ptp([item.input_logprob for item in decoded]) < np.ptp(by_level)


def test_numbers_have_one_length(items):
    for name, digits in (("counting", 2), ("linear", 3)):
        members = [item for item in items if item.task == name]
        assert {len(item.answer) for item in members} == {digits}
        assert len({item.output_logprob for item in members}) == 1
    counted = [(int(item.answer), item.variant) for item in items if item.task == "counting"]
    beside = [number % 10 for number, variant in counted if variant == "rare"]
    assert set(beside) == {1, 9}  # So that the rare ones are not always the longer ones.


def test_acronyms_come_as_a_word_and_as_its_letters_in_another_order(items):
    made = [item for item in items if item.task == "acronym"]
    words = set(english().words)
    for start in range(0, len(made), 4):
        *real, a, b = [item.answer for item in made[start : start + 4]]
        assert real[0] == real[1] in words and a == b not in words and sorted(a) == sorted(real[0])


def test_variants_share_texts_and_tasks_do_too(items):
    by_task = {}
    for item in items:
        by_task.setdefault((item.task, item.variant), set()).add(item.group)
    texts = by_task["reversal", "common"]
    for task in ("decode", "encode"):
        assert by_task[task, "common"] == by_task[task, "rare"] == texts
    for task in ("counting", "linear", "sorting", "acronym"):
        assert by_task[task, "common"] == by_task[task, "rare"]


def test_more_items_begin_with_the_same_ones(items):
    fewer = make_items(10)
    assert fewer == items[: len(fewer)]
    assert {item.name for item in make_items(10, seed=1)}.isdisjoint(
        item.name for item in fewer if item.task in ("decode", "counting")
    )


def test_chosen_tasks_are_a_subset_of_all(items):
    chosen = make_items(30, tasks=["sorting", "decode"])
    assert chosen == [item for item in items if item.task in ("sorting", "decode")]


def test_other_shifts(items):
    other = make_items(2, tasks=["decode"], shifts={"common": 3, "rare": -4})
    assert of.shifted(other[0].answer, 3) == other[0].input
    assert of.shifted(other[1].answer, 22) == other[1].input


def test_impossible_requests_are_refused():
    with pytest.raises(BadInput, match="no task 'decoding'") as caught:
        make_items(1, tasks=["decoding"])
    assert "decode" in str(caught.value.fix)
    with pytest.raises(BadInput, match="At least one"):
        make_items(0)
    for shifts in ((13, 13), (13, 39), (0, 3), (3, 26)):
        with pytest.raises(BadInput, match="two ciphers"):
            make_items(1, shifts=dict(zip(("common", "rare"), shifts, strict=True)))
