"""Lines of ciphers: prompts and answers against a cipher written without arrays."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jaxtyping import Array

from recombine.errors import BadInput
from recombine.families.ciphers import Ciphers
from recombine.language.items import shifted
from recombine.language.vocabulary import END, PAD
from recombine.supports.cipher_stream import cipher_space, line_names
from recombine.testing import check_family

ENGLISH = Ciphers(alphabet=26, length=5)
SPACE = cipher_space(26, 5)


@functools.cache
def spoken() -> Any:
    """Prompt and answer of a row, compiled."""
    teacher = ENGLISH.draw(SPACE, jax.random.key(0))

    def both(row: Array) -> tuple[Array, Array]:
        task = teacher.task(row, jax.random.key(0))
        return teacher.prompt(task), teacher.answer(task)

    return jax.jit(both)


def line(kind: str, text: str) -> tuple[list[str], str]:
    """The words of a line's prompt, and its answer."""
    letters = [ord(sign) - ord("a") for sign in text]
    values = np.array([line_names(26).index(kind), *letters])
    prompt, answer = spoken()(jnp.asarray(values + np.array(SPACE.offsets), jnp.int32))
    asked, said = np.asarray(prompt), np.asarray(answer)
    assert said[-1] == END
    return list(ENGLISH.vocabulary.spelled(asked)), "".join(ENGLISH.vocabulary.spelled(said))


TEXTS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=5, max_size=5)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS, shift=st.integers(1, 25))
def test_lines_are_those_of_the_cipher(text: str, shift: int) -> None:
    cipher = shifted(text, shift)
    assert line(f"decode {shift}", text) == ([str(shift), "decode", *cipher], text)
    assert line(f"encode {shift}", text) == ([str(shift), "encode", *text], cipher)


def test_of_a_text_nothing_is_given() -> None:
    assert line("text", "hello") == (["text"], "hello")
    prompt, _ = spoken()(jnp.asarray(np.array([0, 1, 2, 3, 4, 5]) + np.array(SPACE.offsets), jnp.int32))
    assert (np.asarray(prompt)[1:] == PAD).all()


def test_conformance() -> None:
    check_family(Ciphers(alphabet=5, length=4), cipher_space(5, 4))


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="lines of 9 letters out of 10"):
        Ciphers().check(cipher_space(5, 4))
