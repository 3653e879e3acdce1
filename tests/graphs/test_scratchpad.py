"""Scratchpads: read what was written, and make the best of nonsense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
def test_nonsense_is_missing_and_nothing_worse(tokens):
    for pad in (
        maximum_sum_scratchpad(maximum_sum_graph([1, -2, 3])),
        multiplication_scratchpad(multiplication_graph("23", "4")),
    ):
        stated = pad.read(tokens)
        assert stated[list(pad.graph.inputs)].tolist() == pad.graph.given.tolist()
        for place, step in enumerate(pad.graph.steps[:-1]):
            known = place < len(tokens) and tokens[place] in set(map(str, range(-30, 31)))
            assert known <= (stated[step] != MISSING)
            if stated[step] != MISSING:
                assert str(stated[step]) == tokens[place]


@pytest.mark.parametrize("token", ["", " 1", "1 ", "01", "-0", "+1", "1e3", "٣", "--1", "1\n", "9" * 19, "x"])
def test_what_is_no_number_says_nothing(token):
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
