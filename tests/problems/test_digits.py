"""Numbers as text."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.problems.digits import END, MINUS, PAD, SEPARATOR, SIZE, WORDS, ZERO, Field, Numbers, as_strings

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


def test_a_text_follows_its_format():
    tokens = PAIR.write(np.array([[134.319, 1.1], [-0.004, 0.97]]))
    assert as_strings(tokens) == ["+13432,110000", "+00000,097000"]
    assert tokens.shape == (2, PAIR.length) and (tokens[:, -1] == END).all()
    assert [WORDS[token - 3] for token in (SEPARATOR, MINUS, ZERO)] == [",", "-", "0"]
    assert tokens.max() < SIZE == 16


@given(rows())
@settings(derandomize=True, deadline=None)
def test_reading_inverts_writing(given_rows):
    numbers = Numbers([Field("x", *shape) for *shape, _ in given_rows])
    values = np.array([[number / 10**decimals for _, decimals, _, number in given_rows]])
    np.testing.assert_array_equal(numbers.read(numbers.write(values)), values)
    np.testing.assert_array_equal(numbers.rounded(values), values)


@given(rows(), st.sampled_from([1, 2]), st.booleans())
@settings(derandomize=True, deadline=None)
def test_pairs_and_texts_without_separators_are_read_exactly(given_rows, group, separated):
    numbers = Numbers([Field("x", *shape) for *shape, _ in given_rows], group, separated)
    values = np.array([[number / 10**decimals for _, decimals, _, number in given_rows]])
    tokens = numbers.write(values)
    assert tokens.shape == (1, numbers.length) and tokens.max() < 3 + len(numbers.words)
    np.testing.assert_array_equal(numbers.read(tokens), values)
    if separated:
        return
    # Whatever is of another kind is no number, and leaves the others as they are.
    for place in range(numbers.length - 1):
        broken = tokens.copy()
        broken[0, place] = SEPARATOR
        found = numbers.read(broken)[0]
        assert np.isnan(found).sum() == 1 and np.isin(found[~np.isnan(found)], values).all()


def test_pairs_are_written_as_they_say():
    short = Numbers([Field("power", 3, 2, signed=True), Field("count", 2, 0)], group=2, separated=False)
    tokens = short.write(np.array([[-134.32, 7.0]]))
    assert as_strings(tokens) == ["-1343207"] and tokens.shape == (1, 6) == (1, short.length)
    assert [short.words[token - 3] for token in tokens[0, :-1]] == ["-", "1", "34", "32", "07"]
    cut = tokens.copy()
    cut[0, 4] = END
    np.testing.assert_array_equal(short.read(cut), [[-134.32, np.nan]])
    np.testing.assert_array_equal(short.read(tokens[:, :2]), [[np.nan, np.nan]])


def test_positions_are_read_alike_inside_a_compiled_program():
    short = Numbers([Field("power", 3, 1, signed=True), Field("count", 2, 0)], group=2, separated=False)
    tokens = short.write(np.array([[-134.3, 7.0], [20.5, 99.0]]))
    tokens[1, 0] = SEPARATOR
    found = jax.jit(lambda given: short.read_positions(given, jnp))(tokens)
    np.testing.assert_allclose(found, short.read(tokens), rtol=1e-6)


@given(st.floats(-999, 999), st.floats(0, 9))
@settings(derandomize=True, deadline=None)
def test_rounding_is_to_half_of_the_last_digit(power, magnitude):
    values = np.array([[power, magnitude]])
    found = PAIR.read(PAIR.write(values))
    assert np.all(np.abs(found - values) <= np.array([0.005, 0.000005]) * (1 + 1e-9))
    np.testing.assert_array_equal(found, PAIR.rounded(values))


@given(st.lists(st.integers(-5, 30), max_size=30))
@settings(derandomize=True, deadline=None)
def test_any_tokens_can_be_read(tokens):
    found = PAIR.read(np.array([tokens], dtype=np.int32).reshape(1, -1))
    assert found.shape == (1, 2)
    known = found[np.isfinite(found)]
    assert np.all(np.abs(known) < 1000)


def test_unreadable_numbers_are_nan_and_the_others_are_read():
    good = PAIR.write(np.array([[1.5, 1.0]]))[0]

    def read(row):
        return PAIR.read(np.array([row]))[0].tolist()

    assert read(good) == [1.5, 1.0]
    assert read([*good, 7, 8, 9]) == [1.5, 1.0]  # what follows the end
    assert read([*good[:-1], SEPARATOR, ZERO, END]) == [1.5, 1.0]  # a field too many
    unsigned = [*good[1:]]
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
