"""Sentences: compiled tokens are those of the text, and the reader sees words in order and no pads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.encodings.script import PAD
from recombine.encodings.sentences import Sentences
from recombine.encodings.text_encoder import TextBlock, TextEncoder
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.testing import check_encoding

ROOMS = ProductSpace(
    factors={"verb": ["pick up", "open"], "place": 2, "object": ["ball", "big old box", "key"]}  # type: ignore[arg-type]
)
PLAIN = Hyperteacher(inputs=3, hidden=4, outputs=2, coefficients="k-hot")


class Told(Hyperteacher):
    """A family with words of its own."""

    def sentence(self, space: ProductSpace, constituents: tuple[int, ...]) -> str:
        verb, place, thing = constituents
        names = [values for _, values in space.factors]
        return f"{names[0][verb]} the {names[2][thing - 4]} in room {names[1][place - 2]}."


TOLD = Told(inputs=3, hidden=4, outputs=2, coefficients="k-hot")


@pytest.mark.parametrize("family", [PLAIN, TOLD], ids=["default words", "own words"])
def test_compiled_tokens_are_those_of_the_text(family: Family):
    encoding = Sentences()
    check_encoding(encoding, ROOMS, family)
    teacher = family.draw(ROOMS, jax.random.key(0))
    encoder = encoding.draw(ROOMS, family, jax.random.key(0))
    script = encoding.script(ROOMS, family)
    rows = ROOMS.enumerate()
    key = jax.random.key(1)
    codes = jax.jit(jax.vmap(lambda row: encoder(teacher.task(row, key), teacher, key)))(jnp.asarray(rows))
    assert codes.shape == (12, encoding.size(ROOMS, family))
    for row, code in zip(rows, np.asarray(codes), strict=True):
        ids = script.tokenize(script.sentence_of(row))
        np.testing.assert_array_equal(code[: len(ids)], ids)
        assert np.all(code[len(ids) :] == PAD)


def drawn(layers: int = 2) -> TextEncoder:
    reader = TextEncoder.draw(vocabulary=9, length=6, width=8, layers=layers, heads=2, key=jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf + 0.1 * jnp.sin(jnp.arange(leaf.size)).reshape(leaf.shape), reader)


def block_by_hand(block: TextBlock, words: np.ndarray) -> np.ndarray:
    def norm(values: np.ndarray, scale: Any) -> np.ndarray:
        return np.asarray(scale) * values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6)

    seen, size = norm(words, block.scales[0]), words.shape[1] // block.heads
    query, key, value = (seen @ np.asarray(one) for one in (block.query, block.key, block.value))
    heads = []
    for head in range(block.heads):
        part = slice(head * size, (head + 1) * size)
        match = np.exp(query[:, part] @ key[:, part].T / np.sqrt(size))
        heads.append(match / match.sum(1, keepdims=True) @ value[:, part])
    words = words + np.concatenate(heads, axis=1) @ np.asarray(block.out)
    hidden = norm(words, block.scales[1]) @ np.asarray(block.up) + np.asarray(block.bias)
    return words + np.asarray(jax.nn.gelu(hidden)) @ np.asarray(block.down)


@pytest.mark.parametrize("words", [(3, 1, 4), (5, 9, 2, 6, 5, 3)])
def test_the_reader_equals_numpy_on_the_words_alone(words: tuple[int, ...]):
    """Pads are not computed here at all, so they cannot have had any influence there."""
    reader = drawn()
    code = jnp.array([*words, *[PAD] * (6 - len(words))], jnp.float32)
    hidden = np.asarray(reader.words)[list(words)] + np.asarray(reader.positions)[: len(words)]
    for block in reader.blocks:
        hidden = block_by_hand(block, hidden)
    scaled = np.asarray(reader.scale) * hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(reader(code), scaled.mean(0), rtol=1e-4, atol=1e-5)


def test_the_order_of_words_matters():
    reader = drawn()
    one, other = reader(jnp.array([3.0, 1, 4, 0, 0, 0])), reader(jnp.array([4.0, 1, 3, 0, 0, 0]))
    assert np.max(np.abs(np.asarray(one - other))) > 1e-3


def test_gradients_are_finite_and_pads_get_none():
    gradient = jax.grad(lambda one: jnp.sum(one(jnp.array([3.0, 1, 4, 0, 0, 0])) ** 2))(drawn())
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert set(np.flatnonzero(np.any(gradient.words != 0, axis=1))) == {1, 3, 4}
    assert set(np.flatnonzero(np.any(gradient.positions != 0, axis=1))) == {0, 1, 2}


def test_what_has_no_words_is_refused_before_training(tiny: Callable[..., Any]):
    with pytest.raises((BadInput, ValidationError), match="have no names"):
        tiny(encoding=Sentences(), family=PLAIN)
    with pytest.raises((BadInput, ValidationError), match="cannot express coefficients"):
        tiny(encoding=Sentences(), space=ROOMS, support=Random(number=6))
    with pytest.raises(BadInput, match="have no names"):
        Sentences().size(SubsetSpace(modules=4, max_active=2), PLAIN)


def test_heads_divide_the_width():
    with pytest.raises(ValidationError, match="heads must divide width"):
        Sentences(width=10, heads=4)
