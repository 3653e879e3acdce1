"""The language of constraints: what it says, compile_constraints, is what a direct evaluation says, and errors point to their place."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.plan.constraints import compile_constraints, compiled
from recombine.plan.expressions import parse
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering import Forbidden

TOYS = ProductSpace(
    factors=(("colour", ("red", "blue")), ("the object", ("dog", "c'at", "雪 山")), ("in", ("and", '"', "3")))
)
MODULES = SubsetSpace(modules=5, max_active=3)
forbid = functools.partial(compiled, hold=True)
require = functools.partial(compiled, hold=False)


def forbidden(clauses, row):
    """The meaning of a list of forbidden partial combinations, from its definition."""
    return any(set(one.present) <= set(row) and not set(one.absent) & set(row) for one in clauses)


def quoted(name, draw):
    mark = draw(st.sampled_from("\"'"))
    return mark + name.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


@st.composite
def statements(draw):
    """A text about toys, and a function that says whether it holds for a mapping from factors to levels."""
    factor, levels = draw(st.sampled_from(TOYS.factors))
    name = factor if factor == "colour" else quoted(factor, draw)
    some = draw(st.lists(st.sampled_from(levels), min_size=1, max_size=3))
    how = draw(st.sampled_from(["=", "==", "!=", "≠", "in", "not in"]))
    if how.endswith("in"):
        text = f"{name} {how} {{{', '.join(quoted(level, draw) for level in some)}}}"
        return text, lambda row: (row[factor] in some) == (how == "in")
    return f"{name}{how}{quoted(some[0], draw)}", lambda row: (row[factor] == some[0]) == (how in ("=", "=="))


@st.composite
def modules(draw):
    number = draw(st.integers(0, 4))
    return str(number), lambda row: number in row


def expressions(atoms):
    """Expressions from statements, each with its own evaluation in Python."""

    def larger(smaller):
        two = st.tuples(smaller, smaller)
        return st.one_of(
            smaller.map(lambda one: (f"not ({one[0]})", lambda row: not one[1](row))),
            two.map(lambda p: (f"({p[0][0]}) and ({p[1][0]})", lambda row: p[0][1](row) and p[1][1](row))),
            two.map(lambda p: (f"({p[0][0]}) OR ({p[1][0]})", lambda row: p[0][1](row) or p[1][1](row))),
            two.map(lambda p: (f"(if {p[0][0]} then {p[1][0]})", lambda row: not p[0][1](row) or p[1][1](row))),
        )

    return st.recursive(atoms, larger, max_leaves=6)


@functools.cache
def toys():
    """Every combination of toys: its row and what it is in words."""
    rows = TOYS.enumerate().tolist()
    return [(row, dict(TOYS.label(part).split("=", 1) for part in row)) for row in rows]


@functools.cache
def sets():
    return [MODULES.constituents(row) for row in MODULES.enumerate()]


@settings(max_examples=200, deadline=None)
@given(expressions(statements()), st.booleans())
def test_a_compiled_expression_forbids_what_it_says(expression, always):
    text, holds = expression
    clauses = require(text, TOYS) if always else forbid(text, TOYS)
    for row, words in toys():
        assert forbidden(clauses, row) == (not holds(words) if always else holds(words)), text


@settings(max_examples=200, deadline=None)
@given(expressions(modules()), st.booleans())
def test_the_same_for_modules(expression, always):
    text, holds = expression
    clauses = require(text, MODULES) if always else forbid(text, MODULES)
    for parts in sets():
        assert forbidden(clauses, parts) == (not holds(parts) if always else holds(parts)), text


def test_and_binds_more_than_or_and_not_more_than_both():
    space = ProductSpace(factors=dict.fromkeys("abc", 2))

    def same(one, two):
        return forbid(one, space) == forbid(two, space)

    assert same("a=1 or b=1 and c=1", "a=1 or (b=1 and c=1)")
    assert same("not a=1 and b=1", "(not a=1) and b=1")
    assert same("if a=1 then b=1 or c=1", "not (a=1) or (b=1 or c=1)")
    assert same("if a=1 then if b=1 then c=1", "a!=1 or b!=1 or c=1")
    assert not same("a=1 or b=1 and c=1", "(a=1 or b=1) and c=1")


def test_clauses_are_few_and_simple():
    space = ProductSpace(factors={"colour": ["red", "blue"], "object": ["dog", "cat", "cow"]})
    assert forbid("colour=red and object=dog", space) == [Forbidden((0, 2))]
    assert require("if colour=red then object!=dog", space) == [Forbidden((0, 2))]
    assert forbid("colour!=red and object=dog", space) == [Forbidden((1, 2))], "the other of two levels"
    assert forbid("colour=red and object not in {dog, cat}", space) == [Forbidden((0, 4))]
    assert forbid("colour=red and object!=dog", space) == [Forbidden((0,), (2,))]
    assert forbid("colour=red and colour=blue", space) == [], "no combination is so"
    assert forbid("colour=red or colour=red and object=dog", space) == [Forbidden((0,))]
    assert compile_constraints(["3 and 5"], ["if 3 then 5"], SubsetSpace(modules=8, max_active=3)) == (
        Forbidden((3, 5)),
        Forbidden((3,), (5,)),
    )
    assert forbid("0 and 1 and 2 and 3", MODULES) == [], "nothing has four modules"


BROKEN = [
    ("colour=", 7, "expected a level of 'colour', got the end"),
    ("colour=rde", 7, "'colour' has no level 'rde'"),
    ("color=red", 0, "no factor called 'color'"),
    ("colour red", 7, "expected =, !=, <, <=, >, >= or in after"),
    ("colour=red colour=blue", 11, "'colour' is not expected here"),
    ("colour=red and", 14, "expected a factor, got the end"),
    ("(colour=red", 11, "expected ')' at the end of the parenthesis"),
    ("colour in {red", 14, "expected '}' at the end of the levels"),
    ("colour in red", 10, "expected '{' after in"),
    ("if colour=red", 13, "expected 'then' after the condition"),
    ('colour="red', 7, "this quote is not closed"),
    ("", 0, "expected a factor, got the end"),
    ("in=and", 0, "expected a factor, got 'in'"),
    ("dog", 0, "no factor called 'dog'"),
]


@pytest.mark.parametrize(("text", "place", "says"), BROKEN)
def test_an_error_points_to_its_place(text, place, says):
    with pytest.raises(BadInput) as caught:
        parse(text, TOYS)
    first, shown, caret = caught.value.message.split("\n")
    assert says in first
    assert shown == f"  {text}" and caret.index("^") == 2 + place


def test_errors_help():
    with pytest.raises(BadInput, match=r"did you mean 'colour'"):
        parse("color=red", TOYS)
    with pytest.raises(BadInput, match=r"did you mean 'red'"):
        parse("colour=rde", TOYS)
    with pytest.raises(BadInput, match="colour=red"):
        parse("red", TOYS)
    with pytest.raises(BadInput, match="put quotes around"):
        parse("in=and", TOYS)
    with pytest.raises(BadInput, match=r"numbered 0 to 4"):
        parse("not 5", MODULES)


def test_the_caret_stands_below_wide_signs():
    space = ProductSpace(factors={"山": ["高い", "低い"], "b": 2})
    with pytest.raises(BadInput) as caught:
        parse("山=高い and b=7", space)
    assert caught.value.message.split("\n")[2].index("^") == 2 + len("山=高い and b=") + 3


def test_control_signs_do_not_reach_a_terminal():
    with pytest.raises(BadInput) as caught:
        parse("colour=\x1b[31mred\x07", TOYS)
    assert "\x1b" not in str(caught.value) and "\x07" not in str(caught.value)


@pytest.mark.parametrize("text", ["(" * 5000 + "colour=red", "if " * 5000, "(not " * 5000])
def test_endless_nesting_is_refused(text):
    with pytest.raises(BadInput, match="the nesting is too deep"):
        parse(text, TOYS)


def test_many_nots_and_long_lists_are_fine():
    assert forbid("not " * 4000 + "colour=red", TOYS) == forbid("colour=red", TOYS)
    assert forbid(" or ".join(["colour=red"] * 3000), TOYS) == [Forbidden((0,))]


def test_an_expression_that_explodes_is_refused():
    space = ProductSpace(factors={f"f{place}": 3 for place in range(40)})
    text = " and ".join(f"(f{place}=0 or f{place + 1}=0)" for place in range(0, 40, 2))
    with pytest.raises(BadInput, match="divide it into several"):
        forbid(text, space)
    assert len(require(text, space)) == 20, "the other way round it is short"


def test_nothing_is_evaluated():
    for text in ("__import__('os').system('true')=1", "colour=red; import os", "{colour}=red"):
        with pytest.raises(BadInput):
            parse(text, TOYS)


def test_all_small_expressions_agree_with_truth_tables():
    space = ProductSpace(factors={"a": 2, "b": 2})
    values = np.array(list(itertools.product([0, 1], repeat=2)))
    for sign, meaning in ((" and ", np.minimum), (" or ", np.maximum)):
        for first, second in itertools.product(["a=1", "not a=1"], ["b=1", "b!=1"]):
            one = values[:, 0] == 1 if first == "a=1" else values[:, 0] != 1
            two = values[:, 1] == 1 if second == "b=1" else values[:, 1] != 1
            clauses = forbid(first + sign + second, space)
            told = [forbidden(clauses, row) for row in space.enumerate()]
            assert told == meaning(one, two).tolist()
