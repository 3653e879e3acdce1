"""Plans: what is covered, within which budget, under which constraints, and what is said of it."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.errors import BadInput
from recombine.plan.collected import as_names, as_rows, read_collected, write_csv
from recombine.plan.constraints import compiled, forbid, require
from recombine.plan.costs import costs_of
from recombine.plan.planner import make_plan
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering import Unsatisfiable, allowed

TOYS = ProductSpace(factors={"colour": ["red", "blue", "green"], "object": ["dog", "cat", "cow"], "size": 2})
MODULES = SubsetSpace(modules=9, max_active=3)
GRID = ProductSpace(factors=dict.fromkeys("abcd", 3))


def met(space, rows, strength=2):
    return {one for row in rows for one in itertools.combinations(space.constituents(row), strength)}


@pytest.mark.parametrize("space", [TOYS, MODULES, GRID], ids=["toys", "modules", "grid"])
@pytest.mark.parametrize("kind", ["one", "changes"])
def test_a_plan_for_a_strength_covers_everything(space, kind):
    plan = make_plan(space, strength=2, costs=costs_of(space, kind))
    assert len(met(space, plan.combinations)) == space.interactions(2) == plan.covered == plan.coverable
    assert plan.certificate_before is None and plan.certificate_after is not None
    assert plan.certificate_after.coverage_of(2).share == 1 and plan.certificate_after.complete
    assert plan.cost == sum(plan.costs) and plan.notes == ()


def test_what_is_collected_is_not_collected_again():
    first = make_plan(GRID, budget=4).combinations
    plan = make_plan(GRID, collected=first, strength=2)
    both = np.concatenate([first, plan.combinations])
    assert len(np.unique(both, axis=0)) == len(both) and len(met(GRID, both)) == 54
    assert plan.certificate_before is not None and plan.certificate_before.size == 4
    assert plan.covered_before == len(met(GRID, first)) < plan.covered == 54
    again = make_plan(GRID, collected=both, strength=2)
    assert len(again.combinations) == 0 and "nothing needs to be collected" in again.notes[0]


def test_a_plan_is_the_same_for_the_same_seed():
    one, two = (make_plan(GRID, strength=2, seed=4).combinations for _ in range(2))
    assert np.array_equal(one, two)


def test_a_budget_is_spent():
    assert len(make_plan(GRID, budget=30).combinations) == 30
    assert len(make_plan(GRID, budget=30, strength=2).combinations) < 15, (
        "coverage ends it where it is asked for"
    )
    assert len(make_plan(GRID, budget=1000).combinations) == 81, "there are no more"
    for kind in ("changes", "levels"):
        costs = costs_of(GRID, kind, {"a": 2} if kind == "levels" else None)
        for budget in (0, 3, 17, 60):
            plan = make_plan(GRID, budget=budget, costs=costs)
            assert budget - 6 < plan.cost <= budget
            assert len(np.unique(plan.combinations, axis=0)) == len(plan.combinations)


def test_a_budget_below_what_coverage_needs_is_said_so():
    plan = make_plan(GRID, budget=4, strength=2)
    assert len(plan.combinations) == 4 and plan.covered == len(met(GRID, plan.combinations)) < 54
    (note,) = plan.notes
    assert "below what full coverage needs" in note and f"{plan.covered} of 54 pairs" in note
    assert "it takes 9 combinations" in note
    assert make_plan(GRID, budget=0).certificate_after is None


def test_a_walk_costs_fewer_changes_than_a_list():
    changes = costs_of(GRID, "changes")
    walked = make_plan(GRID, strength=2, costs=changes)
    listed = make_plan(GRID, strength=2)
    assert walked.cost < changes.each(listed.combinations, None).sum()
    diagonal = make_plan(GRID, strategy="stair", costs=changes)
    assert walked.covered > diagonal.covered


def test_any_prefix_is_good():
    """After each combination, what is met is not far from what a plan for just so many meets."""
    rows = make_plan(GRID, strength=2).combinations
    for number in range(1, len(rows)):
        assert len(met(GRID, rows[:number])) >= 0.8 * make_plan(GRID, budget=number).covered


FORBID = ["colour=red and object=dog", "object in {cat, cow} and size=1 and colour=green"]
REQUIRE = ["if size=0 then colour!=blue", "not (object=cow and size=1) or colour=red"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(FORBID), unique=True, min_size=1),
    st.lists(st.sampled_from(REQUIRE), unique=True),
    st.sampled_from(["one", "changes", "levels"]),
    st.sampled_from(["covering", "stair", "L", "diagonal", "random", "complete"]),
    st.sampled_from([None, 5, 9]),
    st.integers(0, 3),
)
def test_no_constraint_is_ever_broken(never, always, kind, strategy, budget, seed):
    forbidden = compiled(never, always, TOYS)
    free = TOYS.enumerate()[allowed(TOYS, TOYS.enumerate(), forbidden)]
    costs = costs_of(TOYS, kind, {"colour": {"red": 3}} if kind == "levels" else None)
    endless = strategy == "random" and budget is None
    plan = make_plan(
        TOYS, budget=30 if endless else budget, forbidden=forbidden, costs=costs, strategy=strategy, seed=seed
    )
    assert allowed(TOYS, plan.combinations, forbidden).all()
    assert plan.coverable == len(met(TOYS, free)) and plan.covered == len(met(TOYS, plan.combinations))
    if budget is None and strategy in ("covering", "complete"):
        assert plan.covered == plan.coverable


def test_constraints_are_counted():
    plan = make_plan(TOYS, strength=2, forbidden=forbid("colour=red and object=dog", TOYS))
    assert (plan.covered, plan.coverable, plan.total) == (20, 20, 21)
    assert "rule out 1 of 21 pairs" in plan.notes[0]
    assert plan.certificate_after is not None and plan.certificate_after.coverage_of(2).share < 1


def test_contradictory_constraints_are_refused():
    clauses = [*forbid("colour=red", TOYS), *require("colour=red", TOYS)]
    with pytest.raises(Unsatisfiable):
        make_plan(TOYS, forbidden=clauses)


def test_those_that_contradict_each_other_are_named_as_they_were_given():
    """A needless one is not named, and one that shares a clause with another is not lost with it."""
    required = ["if colour!=red then object=dog", "object=cat", "object!=dog or colour!=red"]
    with pytest.raises(Unsatisfiable) as told:
        compiled(["colour=red", "object=dog and colour=red"], required, TOYS)
    said = told.value.message.split("each other: ")[1]
    assert said == "forbid colour=red; require if colour!=red then object=dog; require object=cat."


def test_collected_combinations_that_break_constraints_are_told():
    there = as_rows([["red", "dog", "0"], ["red", "cat", "1"]], TOYS)
    plan = make_plan(TOYS, collected=there, forbidden=forbid("object=dog and colour=red", TOYS))
    assert "1 of 2 collected combinations break the constraints" in plan.notes[0]


def test_what_must_be_included_is():
    lacking = [require("a=2 and b=2 and c=2 and d=2", GRID), require("a=1 and b=1 and c=1", GRID)]
    plan = make_plan(GRID, strength=2, include=lacking)
    assert all(allowed(GRID, plan.combinations, one).any() for one in lacking)
    assert len(met(GRID, plan.combinations)) == 54
    short = make_plan(GRID, budget=1, include=lacking)
    assert len(short.combinations) == 1 and "budget ends before" in short.notes[0]
    with pytest.raises(Unsatisfiable):
        make_plan(GRID, include=lacking, forbidden=forbid("a=1", GRID))


def test_strategies_say_what_they_cover():
    plan = make_plan(GRID, strategy="stair", costs=costs_of(GRID, "changes"))
    assert plan.cost == 4 + 8 and len(plan.combinations) == 9
    assert f"{plan.covered} of 54 pairs are met" in plan.notes[0]
    short = make_plan(GRID, strategy="stair", costs=costs_of(GRID, "changes"), budget=6)
    assert short.cost == 6 and np.array_equal(short.combinations, plan.combinations[:3])
    after = make_plan(GRID, strategy="stair", collected=plan.combinations, costs=costs_of(GRID, "changes"))
    assert set(map(tuple, after.combinations)).isdisjoint(map(tuple, plan.combinations))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"strategy": "stairs"}, "did you mean 'stair'"),
        ({"strategy": "random"}, "has no end"),
        ({"strength": 5}, "choose a strength of 1 to 4"),
        ({"strength": 0}, "choose a strength"),
        ({"budget": -1}, "from 0 on"),
        ({"budget": float("nan")}, "from 0 on"),
        ({"strategy": "L", "include": [forbid("a=1", GRID)]}, "knows nothing of"),
    ],
)
def test_what_cannot_be_planned(asked, says):
    with pytest.raises(BadInput, match=says):
        make_plan(GRID, **asked)


def test_strategies_are_for_factors():
    with pytest.raises(BadInput, match="subsets have none"):
        make_plan(MODULES, strategy="stair")


@pytest.mark.parametrize("space", [TOYS, MODULES], ids=["toys", "modules"])
def test_a_plan_can_be_read_as_collected(space, tmp_path):
    rows = make_plan(space, budget=7).combinations
    with (tmp_path / "done.csv").open("w", newline="") as file:
        write_csv(rows, space, file)
    assert np.array_equal(read_collected(tmp_path / "done.csv", space), rows)
    (tmp_path / "done.json").write_text(json.dumps({"combinations": as_names(rows, space)}))
    assert np.array_equal(read_collected(tmp_path / "done.json", space), rows)
    (tmp_path / "done.jsonl").write_text("".join(json.dumps(one) + "\n" for one in as_names(rows, space)))
    assert np.array_equal(read_collected(tmp_path / "done.jsonl", space), rows)


def test_odd_names_come_back(tmp_path):
    space = ProductSpace(factors={"a,b": ['"', "line\nbreak", "\x0bv"], "雪": ["<b>", "山"]})
    with (tmp_path / "done.csv").open("w", newline="", encoding="utf-8") as file:
        write_csv(space.enumerate(), space, file)
    assert np.array_equal(read_collected(tmp_path / "done.csv", space), space.enumerate())


TABLES = [
    ("colour,object\nred,dog\n", "no column for the factor 'size'"),
    ("colour,object,size\nred,dog\n", "line 2 has 2 cells"),
    ("colour,object,size\nred,dog,0\nrde,dog,0\n", "line 3: 'colour' has no level 'rde'"),
    ('colour,object,size\nred,"dog,0\n', "line 2"),
    ("", "no column for the factor 'colour'"),
]


@pytest.mark.parametrize(("text", "says"), TABLES)
def test_broken_tables(tmp_path, text, says):
    (tmp_path / "done.csv").write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        read_collected(tmp_path / "done.csv", TOYS)
    assert caught.value.fix


def test_other_columns_do_not_matter_and_repeats_count_once(tmp_path):
    (tmp_path / "done.tsv").write_text("size\tx\tobject\tcolour\n1\t?\tdog\tred\n1\t?\tdog\tred\n")
    rows = read_collected(tmp_path / "done.tsv", TOYS)
    assert rows.tolist() == [[0, 3, 7]] * 2
    plan = make_plan(TOYS, collected=rows, budget=1)
    assert plan.certificate_before is not None and plan.certificate_before.size == 1


@pytest.mark.parametrize("given", [[[0, 0]], [[9]], [[0, 1, 2, 3]], [["x"]], [3], [[True]], [[0.5]], [[]]])
def test_sets_that_are_none(given):
    with pytest.raises(BadInput):
        as_rows(given, MODULES)
