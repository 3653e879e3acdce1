"""Captions: each tells its combination and no other, and the compiled tokens are those of a text."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.encodings.captions import SYNONYMS, Captions, Grammar, grammar_of, with_article
from recombine.encodings.script import PAD
from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.scenes import FACTORS, TWO_THINGS, Scenes
from recombine.families.scenes.rendering import PAIR, SINGLE
from recombine.spaces.product import ProductSpace
from recombine.testing import check_encoding


def space_of(factors: Any) -> ProductSpace:
    return ProductSpace(factors=factors)


ONE, TWO = space_of(FACTORS), space_of(TWO_THINGS)
BARE = space_of({"colour": ["orange", "red", "white"], "shape": ["ring", "bar"]})
SPACES = {"one thing": ONE, "two things": TWO, "shape and colour": BARE}


@st.composite
def spaces(draw: st.DrawFn) -> ProductSpace:
    """Any space of scenes."""
    known = draw(st.sampled_from([SINGLE, PAIR]))
    optional = [name for name in SINGLE if name not in ("shape", "colour")] if known is SINGLE else []
    left_out = draw(st.sets(st.sampled_from(optional))) if optional else set()
    names = draw(st.permutations([name for name in known if name not in left_out]))
    return space_of({name: draw(st.lists(st.sampled_from(known[name]), min_size=1, unique=True)) for name in names})


@functools.cache
def synonyms() -> dict[str, tuple[str, str]]:
    """The factor and the value of each way to say one."""
    return {
        words: (factor, value)
        for factor, values in SYNONYMS.items()
        for value, every in values.items()
        for words in every
    }


def said_of_one(text: str) -> dict[str, str]:
    """The factors and values that a text names, whatever its order."""
    found = [synonyms()[words] for words in synonyms() if f" {words} " in f" {text.replace(',', ' ')} "]
    assert len({factor for factor, _ in found}) == len(found), f"{text} says something twice"
    return dict(found)


def understood(caption: str) -> dict[str, str]:
    """What a person makes of a caption: who is left and who is right, then what is said of each."""
    for between, order in (
        (" to the left of ", ("left", "right")),
        (" to the right of ", ("right", "left")),
        (" left of ", ("left", "right")),
        (" right of ", ("right", "left")),
        (" on the left and ", ("left", "right")),
    ):
        if between in caption:
            sides = zip(order, caption.removesuffix(" on the right").split(between), strict=True)
            return {f"{side} {name}": value for side, text in sides for name, value in said_of_one(text).items()}
    return said_of_one(caption)


def values_of(space: ProductSpace, row: np.ndarray) -> Mapping[str, str]:
    parts = zip(space.factors, space.offsets, row, strict=True)
    return {name: values[int(part) - offset] for (name, values), offset, part in parts}


@settings(max_examples=60, deadline=None)
@given(space=spaces(), seed=st.integers(0, 10**6))
def test_every_caption_tells_its_combination(space: ProductSpace, seed: int):
    row = np.random.default_rng(seed).integers(0, space.levels) + np.array(space.offsets)
    grammar = grammar_of(space)
    every = grammar.captions(row)
    assert len(set(every)) == len(every)
    for caption in every[:: max(1, len(every) // 60)]:
        assert understood(caption) == values_of(space, row)
        assert len(grammar.tokenize(caption)) <= grammar.length


def test_ways_to_say_values_differ():
    assert len(synonyms()) == sum(len(every) for values in SYNONYMS.values() for every in values.values())
    assert {name: tuple(values) for name, values in SYNONYMS.items()} == dict(SINGLE)


def test_captions_read_as_english():
    row = ONE.row((0, 4, 8, 10))
    every = grammar_of(ONE).captions(row)
    assert every[0] == "a small red disc at the top left"
    assert "in the upper left corner there is a tiny crimson ball" in every
    assert "a circle at the top left, little, scarlet" in every
    assert "an orange ring" in grammar_of(BARE).captions(BARE.row((0, 3)))
    pair = grammar_of(TWO).captions(TWO.row((0, 4, 9, 14)))
    assert pair[0] == "a red disc left of a blue square"
    assert "a blue square to the right of a red disc" in pair
    assert "a crimson ball on the left and a cobalt box on the right" in pair
    assert with_article("emerald wedge") == "an emerald wedge"


def drawn(space: ProductSpace, encoding: Captions, number: int = 300) -> tuple[Grammar, np.ndarray, np.ndarray]:
    family = Scenes()
    teacher = family.draw(space, jax.random.key(0))
    encoder = encoding.draw(space, family, jax.random.key(0))

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        row = space.sample(key)
        return row, encoder(teacher.task(row, key), teacher, jax.random.fold_in(key, 1))

    rows, codes = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), number))
    return encoding.grammar(space, family), np.asarray(rows), np.asarray(codes)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("varied", [True, False])
def test_compiled_tokens_are_those_of_a_caption(name: str, varied: bool):
    grammar, rows, codes = drawn(SPACES[name], Captions(varied=varied))
    for row, code in zip(rows, codes, strict=True):
        tokens = {grammar.tokenize(caption) for caption in grammar.captions(row)}
        assert len(tokens) == 1 or varied
        length = int(np.sum(code != PAD))
        assert tuple(code[:length].astype(int)) in tokens
        assert np.all(code[length:] == PAD)


def test_all_captions_are_drawn_alike():
    """Templates and words are uniform: the first word tells the template's kind, the colours their synonyms."""
    only = space_of({"shape": ["disc"], "colour": ["red"]})
    grammar, _, codes = drawn(only, Captions(), number=3000)
    texts = [" ".join(grammar.vocabulary[int(word) - 1] for word in code if word) for code in codes]
    every = [caption.replace(",", " ,") for caption in grammar.captions(only.row((0, 1)))]
    assert len(every) == 27
    counts = np.array([texts.count(caption) for caption in every])
    assert counts.sum() == 3000
    assert np.all(np.abs(counts - 3000 / 27) < 5 * np.sqrt(3000 / 27))


@pytest.mark.parametrize("name", SPACES)
def test_the_contract(name: str):
    check_encoding(Captions(), SPACES[name], Scenes())


def test_the_reader_takes_captions():
    family, encoding = Scenes(), Captions(width=16, heads=2)
    _, _, codes = drawn(TWO, encoding, number=4)
    reader = encoding.embedder(TWO, family, jax.random.key(0))
    read = jax.vmap(reader)(jnp.asarray(codes))
    assert read.shape == (4, encoding.features(TWO, family)) == (4, 16)
    assert np.all(np.isfinite(read))


def test_unknown_words_and_other_spaces_are_refused():
    with pytest.raises(BadInput, match="No caption of this space has the words mauve"):
        grammar_of(ONE).tokenize("a mauve disc")
    with pytest.raises(BadInput, match="Scenes have the factors"):
        Captions().size(space_of({"a": 2, "b": 3}), Hyperteacher(coefficients="k-hot"))
    with pytest.raises(BadInput, match="cannot express coefficients"):
        Captions().size(ONE, Hyperteacher())
    with pytest.raises(ValidationError, match="heads must divide width"):
        Captions(width=10, heads=4)
