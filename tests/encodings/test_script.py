"""The words of a space: a template with a phrase for each factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from recombine.component import resolve
from recombine.encodings.script import Script, script_of, words_of
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.goals import Goals
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

ROOMS = ProductSpace(
    factors={  # type: ignore[arg-type]
        "quadrant": ["north-east", "south-west"],
        "verb": ["pick up", "open", "push"],
        "maze": ["plain", "spiral", "two long walls"],
        "object": ["ball", "apple", "old box"],
    }
)


class Told(Hyperteacher):
    """A family with words of its own."""

    def sentence(self, space: ProductSpace, constituents: tuple[int, ...]) -> str:
        where, verb, maze, thing = values_of(space, constituents)
        article = "an" if thing[0] in "aeiou" else "a"
        return f"In the {where} quadrant {verb} {article} {thing}: the maze has {maze}."


def values_of(space: ProductSpace, constituents: tuple[int, ...]) -> list[str]:
    spans = zip(space.factors, space.offsets, constituents, strict=True)
    return [values[part - offset] for (_, values), offset, part in spans]


def telling(make: Callable[..., str]) -> Family:
    """A family whose sentence is this function of the values."""

    class Teller(Hyperteacher):
        def sentence(self, space: ProductSpace, constituents: tuple[int, ...]) -> str:
            return make(*values_of(space, constituents))

    return Teller(coefficients="k-hot")


def agrees(script: Script) -> bool:
    """Whether the template gives every sentence of a small space."""
    return all(script.compose(row) == script.tokenize(script.sentence_of(row)) for row in script.space.enumerate())


@pytest.mark.parametrize("family", [Told(), Hyperteacher()], ids=["own words", "default words"])
def test_the_template_gives_every_sentence(family: Family):
    script = script_of(ROOMS, family)
    assert agrees(script)
    lengths = [len(words_of(script.sentence_of(row))) for row in ROOMS.enumerate()]
    assert script.length == max(lengths) > min(lengths)


def test_goals_have_words_of_their_own():
    script = script_of(resolve("spaces", Goals.defaults["space"]), Goals())
    assert script.space.size == 500
    assert agrees(script)


def test_what_is_said():
    row = ROOMS.row((1, 3, 7, 9))
    assert script_of(ROOMS, Told()).sentence_of(row) == (
        "In the south-west quadrant open an apple: the maze has two long walls."
    )
    assert script_of(ROOMS, Hyperteacher()).sentence_of(row) == (
        "quadrant south-west verb open maze two long walls object apple"
    )


def test_the_order_is_that_of_speaking():
    assert script_of(ROOMS, Told()).order == (0, 1, 3, 2)


def test_words():
    assert words_of("Don't  open the North-East door, now!") == [
        *["don't", "open", "the", "north-east", "door", ",", "now", "!"]
    ]
    assert words_of("größe_2 -1") == ["größe_2", "-", "1"]


def test_unknown_words_are_refused():
    script = script_of(ROOMS, Told())
    assert script.tokenize("Push THE apple") == tuple(
        script.vocabulary.index(word) + 1 for word in ("push", "the", "apple")
    )
    with pytest.raises(BadInput, match="words pear, throw"):
        script.tokenize("throw the pear")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, b, c: f"{a} {b} {c}" if a == "red" else f"{b} {a} {c}", "not follow the template"),
        (lambda a, b, c: f"{a} {b} {c} {'and' if (a, b) == ('blue', 'box') else 'or'}", "not follow"),
        (lambda a, b, c: f"{a} {b} {c} {a if b == 'box' else b}", "not follow"),
        (lambda a, b, c: f"{a} {b}", "'place' have the same words"),
        (lambda a, b, c: "", "same words"),
    ],
)
def test_sentences_without_a_template_are_refused(make: Callable[..., str], message: str):
    space = ProductSpace(
        factors={"colour": ["red", "blue"], "shape": ["ball", "box"], "place": ["here", "there"]}  # type: ignore[arg-type]
    )
    with pytest.raises(BadInput, match=message):
        script_of(space, telling(make))


def test_values_that_sound_alike_are_refused():
    with pytest.raises(BadInput, match="'colour' have the same words: Red, red"):
        script_of(ProductSpace(factors={"colour": ["Red", "red"]}), Hyperteacher())  # type: ignore[arg-type]


def test_spaces_without_words_are_refused():
    with pytest.raises(BadInput, match="'subset' spaces have no names"):
        script_of(SubsetSpace(modules=5, max_active=2), Hyperteacher())


WORD = st.sampled_from(["a", "b", "c", "d"])
PHRASES = st.lists(st.lists(WORD, max_size=3).map(" ".join), min_size=1, max_size=3, unique=True)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(PHRASES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_a_script_is_right_or_refused(values: list[list[str]], random: Any):
    """Whatever the words: shared between factors, repeated, empty."""
    space = ProductSpace(factors={f"f{number}": names for number, names in enumerate(values)})  # type: ignore[arg-type]
    order = random.sample(range(len(values)), len(values))

    def make(*said: str) -> str:
        return " ".join(["x", *(said[factor] for factor in order)])

    try:
        script = script_of(space, telling(make))
    except BadInput:
        return
    assert agrees(script)


def test_no_combination_is_listed():
    space = ProductSpace(factors={f"f{number}": 50 for number in range(12)})  # type: ignore[arg-type]
    script = script_of(space, Hyperteacher())
    assert len(script.phrases) == 600
    assert script.length == 24
