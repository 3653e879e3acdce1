"""Numbers as text."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.problems.digits import END, MINUS, PAD, WORDS, ZERO, Field, Numbers

COMMA = 3
PAIR = Numbers([Field("power", 3, 2, signed=True), Field("magnitude", 1, 5)])

shapes = st.tuples(st.integers(1, 4), st.integers(0, 5), st.booleans())


@st.composite
def rows(draw):
    """Fields by their digits and signs, each with a whole number that fills it."""
    row = []
    for whole, decimals, signed in draw(st.lists(shapes, min_size=1, max_size=6)):
        most = 10 ** (whole + decimals) - 1
        row.append((whole, decimals, signed, draw(st.integers(-most if signed else 0, most))))
    return row


def words(tokens):
    return [WORDS[token - 3] for token in tokens]


def test_a_text_follows_its_format():
    tokens = PAIR.write(np.array([[134.319, 1.1], [-0.004, 0.97]]))
    assert words(tokens[0, :-1]) == ["+", "1", "34", "32", "11", "00", "00"]
    assert words(tokens[1, :-1]) == ["+", "0", "00", "00", "09", "70", "00"]
    assert tokens.shape == (2, PAIR.length) and (tokens[:, -1] == END).all()
    assert words([COMMA, MINUS, ZERO]) == [",", "-", "0"]
    assert tokens.max() < 3 + len(WORDS) == 116


@given(rows())
@settings(derandomize=True, deadline=None)
def test_reading_inverts_writing(given_rows):
    numbers = Numbers([Field("x", *shape) for *shape, _ in given_rows])
    values = np.array([[number / 10**decimals for _, decimals, _, number in given_rows]])
    tokens = numbers.write(values)
    assert tokens.shape == (1, numbers.length) and tokens.max() < 3 + len(WORDS)
    np.testing.assert_array_equal(numbers.read(tokens), values)
    np.testing.assert_array_equal(numbers.rounded(values), values)
    # Whatever is of another kind is no number, and leaves the others as they are.
    for position in range(numbers.length - 1):
        broken = tokens.copy()
        broken[0, position] = COMMA
        read = numbers.read(broken)[0]
        assert np.isnan(read).sum() == 1 and np.isin(read[~np.isnan(read)], values).all()


def test_pairs_are_written_as_they_say():
    short = Numbers([Field("power", 3, 2, signed=True), Field("count", 2, 0)])
    tokens = short.write(np.array([[-134.32, 7.0]]))
    assert tokens.shape == (1, 6) == (1, short.length)
    assert words(tokens[0, :-1]) == ["-", "1", "34", "32", "07"]
    cut = tokens.copy()
    cut[0, 4] = END
    np.testing.assert_array_equal(short.read(cut), [[-134.32, np.nan]])
    np.testing.assert_array_equal(short.read(tokens[:, :2]), [[np.nan, np.nan]])


def test_texts_are_read_alike_inside_a_compiled_program():
    short = Numbers([Field("power", 3, 1, signed=True), Field("count", 2, 0)])
    tokens = short.write(np.array([[-134.3, 7.0], [20.5, 99.0]]))
    tokens[1, 0] = COMMA
    compiled = jax.jit(lambda given: short.read(given, jnp))
    np.testing.assert_allclose(compiled(tokens), short.read(tokens), rtol=1e-6)
    np.testing.assert_allclose(compiled(tokens[:, :-1]), short.read(tokens), rtol=1e-6)


@given(st.floats(-999, 999), st.floats(0, 9))
@settings(derandomize=True, deadline=None)
def test_rounding_is_to_half_of_the_last_digit(power, magnitude):
    values = np.array([[power, magnitude]])
    read = PAIR.read(PAIR.write(values))
    assert np.all(np.abs(read - values) <= np.array([0.005, 0.000005]) * (1 + 1e-9))
    np.testing.assert_array_equal(read, PAIR.rounded(values))


@given(st.lists(st.integers(-5, 200), max_size=30))
@settings(derandomize=True, deadline=None)
def test_any_tokens_can_be_read(tokens):
    read = PAIR.read(np.array([tokens], dtype=np.int32).reshape(1, -1))
    assert read.shape == (1, 2)
    assert np.all(np.abs(read[np.isfinite(read)]) < 1000)


def test_unreadable_numbers_are_nan_and_the_others_are_read():
    good = PAIR.write(np.array([[1.5, 1.0]]))[0]

    def read(row):
        return PAIR.read(np.array([row]))[0].tolist()

    assert read(good) == [1.5, 1.0]
    assert read([*good, 7, 8, 9]) == [1.5, 1.0]  # what follows the end
    assert read([*good[:-1], ZERO, END]) == [1.5, 1.0]  # a token too many
    unsigned = [ZERO, *good[1:]]
    assert np.isnan(read(unsigned)[0]) and read(unsigned)[1] == 1.0
    short = [*good[:-2], END]
    assert read(short)[0] == 1.5 and np.isnan(read(short)[1])
    cut = [*good[:3], PAD, *good[4:]]
    assert np.isnan(read(cut)).all()
    assert np.isnan(read([END])).all()
    assert np.isnan(PAIR.read(np.zeros((2, 0), dtype=np.int32))).all()


@pytest.mark.parametrize("row", [[1000.0, 1.0], [1.0, -0.1], [np.nan, 1.0], [1.0, np.inf]])
def test_a_number_that_does_not_fit_is_refused(row):
    with pytest.raises(BadInput, match=r"its field goes from"):
        PAIR.write(np.array([row]))
