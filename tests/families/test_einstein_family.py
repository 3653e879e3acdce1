"""Puzzles as text: results against all ways to fill the houses, steps against the graph, and the support that goes by depth."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.puzzles.einstein import Einstein
from recombine.graphs.einstein.clues import orbit_key, solutions
from recombine.graphs.graph import evaluate
from recombine.overrides import validate
from recombine.spaces.instances import InstanceSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.leading_instances import LeadingInstances
from recombine.testing import check_support
from recombine.training.config import RunConfig

SPACE = InstanceSpace(number=80)


def family(steps: bool = True) -> Einstein:
    return Einstein(instances=SPACE, steps=steps)


def test_names_do_not_make_another_puzzle() -> None:
    worked = family().solved
    keys = [orbit_key(one.puzzle) for one in worked]
    assert all(len(set(keys[at : at + 4])) == 1 for at in range(0, 80, 4))
    assert len(set(keys)) == 20
    assert len({one.puzzle.tokens for one in worked}) > 60, "other names are other questions"
    depths = [max(one.graph.depth for one in worked[at : at + 4]) for at in range(0, 80, 4)]
    assert depths == sorted(depths)


def test_results_are_the_only_solutions_and_steps_are_the_graph() -> None:
    spoken = {steps: family(steps).draw(SPACE, jax.random.key(0)) for steps in (True, False)}
    words = family().vocabulary
    for number, worked in enumerate(family().solved):
        (homes,) = solutions(worked.puzzle)
        result = [f"{thing.label}:{homes[thing] + 1}" for thing in worked.puzzle.things]
        assert words.spelled(np.asarray(spoken[False].questions[number])) == worked.puzzle.tokens
        assert list(words.spelled(np.asarray(spoken[False].answers[number]))) == result
        said = words.spelled(np.asarray(spoken[True].answers[number]))
        assert list(said[-6:]) == result
        graph, _, stated = family().stated(np.array([[number]]), np.asarray(spoken[True].answers[number])[None])
        np.testing.assert_array_equal(stated[0], evaluate(graph))
        assert len(said) == len(graph.steps) + 6


def test_a_run_of_it_has_its_parts() -> None:
    config = RunConfig.model_validate({"family": {"kind": "einstein", "instances": SPACE}, "space": SPACE})
    assert config.support.kind == "leading-instances"
    with pytest.raises(BadInput, match="the same number"):
        validate(RunConfig, {"family": {"kind": "einstein"}, "space": {"kind": "instances", "number": 84}})
    with pytest.raises(BadInput, match="puzzles with 4 names"):
        Einstein(instances=InstanceSpace(number=82)).check(InstanceSpace(number=82))


def test_the_support_trains_on_whole_leading_blocks() -> None:
    kind = LeadingInstances(share=0.5, reserve=2)
    check_support(kind, SPACE)
    support = kind.draw(SPACE, 3)
    trained, held_out = (set((rows[:, 0] // 4).tolist()) for rows in (support.rows, support.reserved))
    assert len(support.rows) == 8 * 4 and len(trained) == 8 and max(trained) < 10
    assert not trained & held_out and held_out >= set(range(10, 20))
    sizes = family().sizes(support.rows)
    assert sizes.max() <= family().sizes(support.reserved).max()
    with pytest.raises(BadInput, match="not defined for a space of kind"):
        kind.check(SubsetSpace(modules=4, max_active=2))
    with pytest.raises(BadInput, match="cannot be divided into blocks of 4"):
        kind.check(InstanceSpace(number=82))
