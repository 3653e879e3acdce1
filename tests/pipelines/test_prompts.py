"""Sets of prompts: every combination once, nothing listed, seeded, and errors that say what is wrong."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from recombine.errors import BadInput
from recombine.pipelines.prompts.drawing import FOLDS, LISTED, VALIDATION, draw_prompts
from recombine.pipelines.prompts.files import built_in, prompt_sets, read_sets
from recombine.pipelines.prompts.sets import SetPrompts, SlotPrompts, fill, with_article


@given(st.integers(2, 7), st.data())
def test_every_number_is_another_subset(number, data):
    size = data.draw(st.integers(1, number - 1))
    words = tuple("abcdefg"[:number])
    made = SetPrompts(concepts=words, size=size)
    every = [made.combination(place) for place in range(made.size_of_space)]
    assert sorted(every) == sorted(itertools.combinations(words, size))


def test_every_number_is_another_row_of_slots():
    made = SlotPrompts(slots={"x": ("a", "b", "c"), "y": ("d", "e")}, template="{x} {y}")
    every = [made.combination(place) for place in range(made.size_of_space)]
    assert sorted(every) == sorted(itertools.product("abc", "de"))


@pytest.mark.parametrize("name", built_in())
def test_built_in_sets_say_what_they_ask_for(name):
    prompts = draw_prompts(name, built_in()[name], 40, seed=3)
    assert len(prompts) == len({one.combination for one in prompts}) == len({one.name for one in prompts}) == 40
    for prompt in prompts:
        assert "{" not in prompt.text
        for question in prompt.questions:
            assert question.concept in prompt.text and question.concept in question.text
            assert question.prompt == prompt.text and prompt.text not in question.alternatives
            assert question.alternatives
    again = draw_prompts(name, built_in()[name], 40, seed=3)
    assert [one.text for one in again] == [one.text for one in prompts]
    other = draw_prompts(name, built_in()[name], 40, seed=4)
    assert [one.text for one in other] != [one.text for one in prompts]


def test_a_space_too_large_to_list_is_drawn_from():
    huge = SetPrompts(concepts=tuple(f"thing {n}" for n in range(300)), size=10)
    assert huge.size_of_space == math.comb(300, 10) > LISTED
    prompts = draw_prompts("huge", huge, 50, seed=0)
    assert len({one.combination for one in prompts}) == 50
    assert all(len(set(one.combination)) == 10 for one in prompts)


def test_small_spaces_are_used_up_and_forbidden_combinations_are_not_asked_for():
    made = SlotPrompts(slots={"x": ("a", "b"), "y": ("a", "b")}, template="{x} {y}", different=(("x", "y"),))
    assert {one.combination for one in draw_prompts("s", made, 100, 0)} == {("a", "b"), ("b", "a")}


def test_prompts_are_cut_by_combination_and_every_concept_is_in_every_part(pets):
    prompts = draw_prompts("pets", pets, 15, seed=0)
    assert {one.fold for one in prompts} == set(range(FOLDS))
    assert sum(prompt.fold == VALIDATION for prompt in prompts) == 3
    trained = {concept for prompt in prompts if prompt.fold < VALIDATION for concept in prompt.combination}
    assert trained == set(pets.concepts)


def test_the_order_in_a_sentence_tells_nothing(pets):
    texts = [one.text for one in draw_prompts("pets", pets, 15, seed=0)]
    firsts = {text.removeprefix("an image with one ").split(",")[0] for text in texts}
    assert len(firsts) > 3


def test_articles():
    assert with_article("owl") == "an owl" and with_article("cat") == "a cat"
    assert fill("{a x} on {x}", {"x": "owl"}) == "an owl on owl"


def test_a_file_of_sets(tmp_path):
    path = tmp_path / "sets.yaml"
    path.write_text(
        "pets: {kind: set, concepts: [cat, dog, no], size: 2}\n"
        "dressed:\n  kind: slots\n  slots: {animal: [cat, owl], worn: [hat, tie]}\n"
        "  template: a photo of {a animal} in {a worn}\n  asked: {worn: 'Is the {animal} in {a worn}?'}\n"
    )
    found = prompt_sets([str(path), "counting"])
    assert list(found) == ["pets", "dressed", "counting"]
    assert found["pets"].values("concept") == ("cat", "dog", "no")
    one = found["dressed"].questions(("owl", "hat"))
    assert [str(question) for question in one] == ["Does the image show owl as animal?", "Is the owl in a hat?"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("pets: 3", "not a set"),
        ("pets: {kind: sets, concepts: [a, b]}", "kind 'sets'"),
        ("pets: {kind: set, concepts: [a, b], size: 2}", "nothing to combine"),
        ("pets: {kind: set, concepts: [a, a, b], size: 2}", "twice"),
        ("pets: {kind: set, concepts: [], size: 2}", "there are 0"),
        ("pets: {kind: set, concepts: [a, b, c], sise: 2}", "sise"),
        ("pets: {kind: set, concepts: [a, b, c], size: x}", "size"),
        ("pets: {kind: set, concepts: [a, b, c], size: 2, template: nothing}", "does not contain concepts"),
        ("pets: {kind: slots, slots: {x: [a, b], y: [c, d]}, template: '{x} {z}'}", "{z}"),
        ("pets: {kind: slots, slots: {x: [a, b], y: [c, d]}, template: '{x}'}", "does not contain y"),
        ("pets: {kind: slots, slots: {x: [a, b]}, template: '{x}'}", "Two slots or more are needed, got 1"),
        ("pets: {kind: slots, slots: {x: [a, b], y: [c, d]}, template: '{x} {y}', different: [[x, z]]}", "'z'"),
        ("pets: [", "sets.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text, said):
    path = tmp_path / "sets.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        read_sets(path)
    assert said in str(error.value)


def test_unknown_and_missing_sets():
    with pytest.raises(BadInput, match="did you mean 'animals'"):
        prompt_sets(["animls"])
    with pytest.raises(BadInput, match="No prompts"):
        prompt_sets([])
    with pytest.raises(BadInput, match="twice"):
        prompt_sets(["animals", "animals"])
