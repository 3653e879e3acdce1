"""Which answers are right."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from recombine.language.answers import is_right, normalised

ANSWER = "the woman went to school"


@pytest.mark.parametrize(
    "said",
    [
        "the woman went to school",
        "The woman went to school.",
        '"The woman went to school."',
        "  **the  woman\twent to school**  ",
        "Answer: the woman went to school",
        "The decoded message is: `the woman went to school`",
        "**Decoded message:** the woman went to school",
        "Rot-13 is easy.\n\nthe woman went to school\n",
        "<think>the dog? no</think>\nthe woman went to school",
        "```text\nthe woman went to school\n```",
        "\N{LEFT DOUBLE QUOTATION MARK}The woman went to school\N{RIGHT DOUBLE QUOTATION MARK}",
        "the, woman, went, to, school",
        "\N{FULLWIDTH LATIN SMALL LETTER T}he woman went to school",
    ],
)
def test_right(said):
    assert is_right(said, ANSWER)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "  \n",
        "the woman went to the school",
        "the woman went to schoo",
        "thewomanwenttoschool",
        "I think that the woman went to school",
        "the woman went to school\nor maybe not",
        "school to went woman the",
        "```",
        "<think>the woman went to school",
        "x" * 100_000,
    ],
)
def test_wrong(said):
    assert not is_right(said, ANSWER)


def test_numbers():
    assert is_right("30.", "30") and is_right("**30**", "30") and is_right("The number is: 30", "30")
    assert not is_right("30.5", "30") and not is_right("3 0", "30") and not is_right("130", "30")
    assert is_right("-2.5", "-2.5") and not is_right("2.5", "-2.5")


def test_marks_that_the_answer_has_are_asked_for():
    asked = "first the cat, then the dog; all ran."
    assert is_right("First the cat, then the dog; all ran.", asked)
    assert is_right('Answer: "first the cat, then the dog; all ran."', asked)
    for without in (",", ";", "."):
        assert not is_right(asked.replace(without, ""), asked)
    assert not is_right(asked.replace(";", ","), asked)
    assert is_right("cup; box; pen.", "cup box pen") and not is_right("cup box pen", "cup, box, pen")
    assert is_right("cup, box, pen.", "cup, box, pen") and not is_right("cup, box pen", "cup, box, pen")
    assert is_right("Stop!", "stop!") and not is_right("stop", "stop!") and is_right("stop!", "stop")


def test_an_empty_answer_is_never_right():
    assert not is_right("", "") and not is_right("...", "...")


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalised(normalised(text)) == normalised(text)
