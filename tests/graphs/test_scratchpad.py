"""Scratchpads: reading inverts writing, and unreadable tokens are missing values."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs.dynamic_programming import maximum_sum_graph, maximum_sum_scratchpad
from recombine.graphs.multiplication import multiplication_graph, multiplication_scratchpad
from recombine.graphs.scratchpad import MISSING, NUMBER, Scratchpad, digits

TOKENS = st.lists(st.one_of(st.text(max_size=4), st.integers(-30, 30).map(str)), max_size=40)


@settings(deadline=None, max_examples=60)
@given(values=st.lists(st.integers(-99, 99), min_size=6, max_size=6))
def test_any_values_can_be_stated(values):
    pad = maximum_sum_scratchpad(maximum_sum_graph([1, 2, 3]))
    stated = np.array([1, 2, 3, *values])
    assert pad.read(pad.write(stated)).tolist() == stated.tolist()


@settings(deadline=None, max_examples=60)
@given(tokens=TOKENS)
def test_unreadable_tokens_are_missing_values(tokens):
    for pad in (
        maximum_sum_scratchpad(maximum_sum_graph([1, -2, 3])),
        multiplication_scratchpad(multiplication_graph("23", "4")),
    ):
        stated = pad.read(tokens)
        assert stated[list(pad.graph.inputs)].tolist() == pad.graph.input_values.tolist()
        for place, step in enumerate(pad.graph.steps[:-1]):
            known = place < len(tokens) and tokens[place] in set(map(str, range(-30, 31)))
            assert known <= (stated[step] != MISSING)
            if stated[step] != MISSING:
                assert str(stated[step]) == tokens[place]


@pytest.mark.parametrize("token", ["", " 1", "1 ", "01", "-0", "+1", "1e3", "٣", "--1", "1\n", "9" * 19, "x"])
def test_other_tokens_are_not_numbers(token):
    assert NUMBER.read((token,)) is None


def test_digits_are_padded_and_read_together():
    spelling = digits(4)
    assert spelling.write(35) == ("0", "0", "3", "5")
    assert spelling.read(("0", "0", "3", "5")) == 35
    assert spelling.read(("0", "0", "3", "")) is None
    assert spelling.read(("0", "0", "3", "15")) is None


def test_a_step_that_ends_too_early_is_missing():
    pad = multiplication_scratchpad(multiplication_graph("23", "45"))
    tokens = pad.write()
    assert pad.read(tokens[:-1])[-1] == MISSING
    assert pad.read([*tokens, "more"]).tolist() == pad.read(tokens).tolist()


def test_every_step_has_a_spelling():
    with pytest.raises(BadInput, match="2 steps, but there are 1 spellings"):
        Scratchpad(maximum_sum_graph([1]), (NUMBER,))
