"""Plans: what is covered, within which budget, under which constraints, and what is said of it."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.plan.collected import as_names, as_rows, read_collected, write_csv
from recombine.plan.constraints import compile_constraints, compiled
from recombine.plan.costs import make_costs
from recombine.plan.planner import make_plan
from recombine.plan.spec import read_spec
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
    plan = make_plan(space, strength=2, cost=kind)
    assert len(met(space, plan.combinations)) == space.interactions(2) == plan.covered == plan.coverable
    assert plan.certificate_before is None and plan.certificate_after is not None
    assert plan.certificate_after.coverage_of(2).share == 1 and plan.certificate_after.complete
    assert plan.cost == sum(plan.costs) and plan.notes == ()


def test_collected_combinations_are_not_planned_again():
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
    assert len(make_plan(GRID, budget=30, strength=2).combinations) < 15, "coverage ends it where it is asked for"
    assert len(make_plan(GRID, budget=1000).combinations) == 81, "there are no more"
    for kind in ("changes", "levels"):
        costs = {"a": 2} if kind == "levels" else None
        for budget in (0, 3, 17, 60):
            plan = make_plan(GRID, budget=budget, cost=kind, costs=costs)
            assert budget - 6 < plan.cost <= budget
            assert len(np.unique(plan.combinations, axis=0)) == len(plan.combinations)


def test_a_budget_that_is_too_small_for_coverage_is_reported():
    plan = make_plan(GRID, budget=4, strength=2)
    assert len(plan.combinations) == 4 and plan.covered == len(met(GRID, plan.combinations)) < 54
    (note,) = plan.notes
    assert "too small for full coverage" in note and f"{plan.covered} of 54 pairs" in note
    assert "Full coverage takes 9 combinations" in note
    assert make_plan(GRID, budget=0).certificate_after is None


def test_a_walk_costs_fewer_changes_than_a_list():
    changes = make_costs(GRID, "changes")
    walked = make_plan(GRID, strength=2, cost="changes")
    listed = make_plan(GRID, strength=2)
    assert walked.cost < changes.in_order(listed.combinations, None).sum()
    stair = make_plan(GRID, strategy="stair", cost="changes")
    assert walked.covered > stair.covered


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
    forbidden = compile_constraints(never, always, TOYS)
    free = TOYS.enumerate()[allowed(TOYS, TOYS.enumerate(), forbidden)]
    costs = {"colour": {"red": 3}} if kind == "levels" else None
    endless = strategy == "random" and budget is None
    plan = make_plan(
        TOYS,
        budget=30 if endless else budget,
        forbid=never,
        require=always,
        cost=kind,
        costs=costs,
        strategy=strategy,
        seed=seed,
    )
    assert allowed(TOYS, plan.combinations, forbidden).all()
    assert plan.coverable == len(met(TOYS, free)) and plan.covered == len(met(TOYS, plan.combinations))
    if budget is None and strategy in ("covering", "complete"):
        assert plan.covered == plan.coverable


def test_constraints_are_counted():
    plan = make_plan(TOYS, strength=2, forbid=["colour=red and object=dog"])
    assert (plan.covered, plan.coverable, plan.total) == (20, 20, 21)
    assert "rule out 1 of 21 pairs" in plan.notes[0]
    assert plan.certificate_after is not None and plan.certificate_after.coverage_of(2).share < 1


def test_contradictory_constraints_are_refused():
    with pytest.raises(Unsatisfiable, match="forbid colour=red; require colour=red"):
        make_plan(TOYS, forbid=["colour=red"], require=["colour=red"])


def test_contradictory_constraints_are_quoted():
    """A needless one is not named, and one that shares a clause with another is not lost with it."""
    required = ["if colour!=red then object=dog", "object=cat", "object!=dog or colour!=red"]
    with pytest.raises(Unsatisfiable) as told:
        compile_constraints(["colour=red", "object=dog and colour=red"], required, TOYS)
    said = told.value.message.split("each other: ")[1]
    assert said == "forbid colour=red; require if colour!=red then object=dog; require object=cat."


def test_collected_combinations_that_break_constraints_are_reported():
    there = [["red", "dog", "0"], {"colour": "red", "object": "cat", "size": 1}]
    plan = make_plan(TOYS, collected=there, forbid=["object=dog and colour=red"])
    assert "1 of 2 collected combinations break the constraints" in plan.notes[0]


def test_required_combinations_are_included():
    include = ["a=2 and b=2 and c=2 and d=2", "a=1 and b=1 and c=1"]
    plan = make_plan(GRID, strength=2, include=include)
    assert all(allowed(GRID, plan.combinations, compiled(text, GRID, hold=False)).any() for text in include)
    assert len(met(GRID, plan.combinations)) == 54
    short = make_plan(GRID, budget=1, include=include)
    assert len(short.combinations) == 1 and "budget is too small for all" in short.notes[0]
    with pytest.raises(Unsatisfiable):
        make_plan(GRID, include=include, forbid=["a=1"])


def test_a_plan_shows_itself():
    plan = make_plan(TOYS, strength=2, collected=[["red", "dog", "0"]], forbid=["colour=blue and object=cat"])
    lines = repr(plan).splitlines()
    number = len(plan.combinations)
    assert lines[0] == f"Plan: collect {number} combinations at a cost of {number}; 20 of 20 pairs covered, 3 before"
    assert lines[1] == "  " + ", ".join(plan.names[0]) and "rule out 1 of 21" in lines[-1]
    many = make_plan(GRID, budget=30)
    assert len(repr(many).splitlines()) == 12 and "and 20 more" in repr(many)
    ugly = ProductSpace(factors={"<b>x</b>": ["<script>", "b"], "y": ["c", "d"]})
    page = make_plan(ugly, strength=2)._repr_html_()
    assert "&lt;script&gt;" in page and "<script" not in page and "<b>x" not in page
    assert make_plan(MODULES, strength=2)._repr_html_().startswith("<div")
    assert "pairs covered" in make_plan(GRID, budget=0)._repr_html_()


def test_a_file_and_python_make_the_same_plan(tmp_path):
    (tmp_path / "done.csv").write_text("a,b,c,d\n0,0,0,0\n1,1,1,1\n")
    (tmp_path / "plan.yaml").write_text(
        "factors: {a: 3, b: 3, c: 3, d: 3}\nforbid: [a=1 and b=1]\ncost: changes\ncollected: done.csv\nseed: 3\n"
    )
    plan = make_plan(**vars(read_spec(tmp_path / "plan.yaml")))
    collected = [[0, 0, 0, 0], ["1", "1", "1", "1"]]
    same = make_plan(GRID, forbid=["a=1 and b=1"], cost="changes", collected=collected, seed=3)
    assert np.array_equal(plan.combinations, same.combinations) and len(plan.combinations)


def test_strategies_say_what_they_cover():
    plan = make_plan(GRID, strategy="stair", cost="changes")
    assert plan.cost == 4 + 8 and len(plan.combinations) == 9
    assert f"{plan.covered} of 54 pairs are covered" in plan.notes[0]
    short = make_plan(GRID, strategy="stair", cost="changes", budget=6)
    assert short.cost == 6 and np.array_equal(short.combinations, plan.combinations[:3])
    after = make_plan(GRID, strategy="stair", collected=plan.combinations, cost="changes")
    assert set(map(tuple, after.combinations)).isdisjoint(map(tuple, plan.combinations))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"strategy": "stairs"}, "did you mean 'stair'"),
        ({"strategy": "random"}, "has no end"),
        ({"strength": 5}, "choose a strength of 1 to 4"),
        ({"strength": 0}, "choose a strength"),
        ({"budget": -1}, "at least 0"),
        ({"budget": float("nan")}, "at least 0"),
        ({"strategy": "L", "include": ["a=1"]}, "cannot include"),
    ],
)
def test_impossible_plans_are_refused(asked, says):
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
    ("colour,object,size\nred,dog,0\nrde,dog,0\n", "line 3: The factor 'colour' has no value 'rde'"),
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
def test_collected_sets_that_are_not_combinations(given):
    with pytest.raises(BadInput):
        as_rows(given, MODULES)
