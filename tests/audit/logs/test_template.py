"""Templates find the factors of a prompt in exactly one way, or say why not."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from recombine.audit.logs.template import Template
from recombine.errors import BadInput

WORD = st.text("abcxyz", min_size=1, max_size=5)


@given(st.lists(WORD, min_size=3, max_size=3))
def test_what_was_filled_in_is_found(values):
    """The words hold no separator, so there is one way to read the prompt."""
    colour, thing, place = values
    found = Template("Draw: {colour}, {object} on {place}!").match(f"Draw: {colour},  {thing}\n on {place}!")
    assert found == {"colour": colour, "object": thing, "place": place}


@given(st.lists(st.sampled_from("ab "), max_size=9).map("".join))
def test_all_readings_agree_with_brute_force(text):
    text = " ".join(text.split())
    cuts = range(len(text) + 1)
    every = {
        (text[:i], text[i + 1 : j], text[j + 1 :])
        for i in cuts
        for j in cuts
        if i < j
        and text[i : i + 1] == " "
        and text[j : j + 1] == " "
        and all((text[:i], text[i + 1 : j], text[j + 1 :]))
    }
    template = Template("{x} {y} {z}")
    if len(every) > 1:
        with pytest.raises(BadInput, match="in two ways"):
            template.match(text)
    else:
        found = template.match(text)
        assert (set() if found is None else {tuple(found.values())}) == every


def test_values_and_ignored_text():
    listed = Template("{_}a {colour:red|dark red} {object}.{_}")
    assert listed.match("Please: a dark red cup. Thanks") == {"colour": "dark red", "object": "cup"}
    assert listed.match("Please: a blue cup.") is None
    assert Template("{{a}} {b}").match("{a} 1") == {"b": "1"}
    assert Template("{a:x|y}{b:z|xz}").match("xxz") == {"a": "x", "b": "xz"}
    with pytest.raises(BadInput, match="in two ways: x=1 or x=1 b a 2"):
        Template("{_}a {x} b{_}").match("a 1 b a 2 b")


def test_two_ways_are_shown_with_a_fix():
    with pytest.raises(BadInput, match="colour=dark, object=red ball or colour=dark red, object=ball") as caught:
        Template("a {colour} {object}").match("a dark red ball")
    assert caught.value.fix == "list the values of a field, for example {colour:dark|dark red}"


@pytest.mark.parametrize(
    "text, match",
    [
        ("a cup", "has no field"),
        ("a {} cup", "not a name"),
        ("a {x.y}", "not a name"),
        ("a {x", "cannot be read"),
        ("{a} and {a}", "'a' twice"),
        ("{a}{b}", "no text between {a} and {b}"),
    ],
)
def test_templates_that_cannot_be(text, match):
    with pytest.raises(BadInput, match=match):
        Template(text)
