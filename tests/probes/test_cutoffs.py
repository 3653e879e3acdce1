"""Cutoffs of held-out inputs, from training data alone, against direct counts of facts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.chained.hops import HopsTeacher
from recombine.probes.base import Measured
from recombine.probes.cutoffs import FRAGMENTS, Cutoffs, known_facts, most_frequent
from recombine.supports.coverage_graph import CoverageGraph
from recombine.supports.hops import INNER, HopSupport
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

TOKENS = 6


@functools.cache
def setting(chain: str = "two-hop", kind: str = "hops", **family: Any) -> Setting:
    places = 4 if chain == "three-hop" else 3
    config = RunConfig.model_validate(
        {
            "family": {"kind": kind, "tokens": TOKENS, "chain": chain, **family},
            "space": {"kind": "product", "factors": {f"x{place + 1}": TOKENS for place in range(places)}},
            "support": {"kind": "hops", "chain": chain, "number": 60, "reserve": 40},
            "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
            "validation_tasks": 4,
            "seeds": Seeds.replicate(5),
        }
    )
    return Setting(config)


@functools.cache
def measured(chain: str = "two-hop", kind: str = "hops") -> Measured:
    run = setting(chain, kind)
    return Cutoffs().measure(run, run.network())


def answer(teacher: HopsTeacher, inputs: list[int]) -> int:
    """The answer by plain steps."""
    inner, last = np.asarray(teacher.inner), np.asarray(teacher.last)
    value = inner[0, inputs[0], inputs[1]]
    if teacher.chain == "non-tree":
        return int(last[value, inputs[1], inputs[2]])
    if teacher.chain == "three-hop":
        value = inner[1, value, inputs[2]]
    return int(last[value, inputs[-1]])


@pytest.mark.parametrize("chain", INNER)
def test_cutoffs_are_those_of_the_training_examples(chain: Any) -> None:
    one = setting(chain, "hops")
    teacher, support = one.teacher, one.support
    assert isinstance(teacher, HopsTeacher) and isinstance(support, HopSupport)
    found = measured(chain)
    inputs = np.array([[int(token) for token in name.split()] for name in found.columns["input"]])
    trained = support.rows % TOKENS
    outcomes = np.array([answer(teacher, row) for row in trained.tolist()])
    expected = CoverageGraph(trained.astype(np.int64), outcomes, FRAGMENTS[chain]).cutoffs(inputs)
    assert found.columns["cutoff"] == expected.tolist()
    assert found.summary["covered"] == pytest.approx((expected > 0).mean())
    # Nothing that is asked was trained on, and all of it is of the test side.
    tested = one.regions.rows("held_out", 100, "test") % TOKENS
    assert {*map(tuple, inputs.tolist())} == {*map(tuple, tested.tolist())}
    assert not {*map(tuple, inputs.tolist())} & {*map(tuple, trained.tolist())}


@pytest.mark.parametrize("chain", INNER)
def test_facts_are_known_if_each_occurs_in_a_training_example(chain: Any) -> None:
    one = setting(chain, "hops")
    support = one.support
    assert isinstance(support, HopSupport)

    def facts(row: list[int]) -> list[tuple[Any, ...]]:
        bridge = support.inner[0][row[0], row[1]]
        if chain == "non-tree":
            return [(1, row[0], row[1]), (2, bridge, row[1], row[2])]
        way = [(1, row[0], row[1]), (2, bridge, row[2])]
        if chain == "three-hop":
            way.append((3, support.inner[1][bridge, row[2]], row[3]))
        return way

    trained, asked = (rows.astype(np.int64) % TOKENS for rows in (support.rows, support.reserved))
    seen = {fact for row in trained.tolist() for fact in facts(row)}
    expected = [all(fact in seen for fact in facts(row)) for row in asked.tolist()]
    assert known_facts(chain, trained, asked, support.inner).tolist() == expected
    assert known_facts(chain, trained, trained, support.inner).all()


def test_only_the_final_answer_counts() -> None:
    """A network that says nothing right but the last token is right; one that says that wrong is not."""
    one = setting(chain_of_thought=True)
    found = Cutoffs().measure(one, one.network())
    assert set(found.columns["right"]) <= {0.0, 1.0}
    assert found.summary["answered"] == pytest.approx(np.mean(found.columns["right"]))
    assert len(found.columns["right"]) == len(found.columns["known"]) == len(found.columns["guess"])


def test_the_most_frequent_answer_is_counted_by_last_token() -> None:
    last, outcomes = np.array([0, 0, 0, 1, 1, 2]), np.array([2, 2, 1, 0, 0, 1])
    assert most_frequent(last, outcomes, 3).tolist() == [2, 0, 1]


def test_answers_that_are_drawn_one_by_one_leave_no_evidence() -> None:
    """Where answers follow from nothing, fragments agree by chance only: never on much."""
    chained, drawn = measured("two-hop"), measured("two-hop", "lookup-hops")
    assert max(drawn.columns["cutoff"]) < max(chained.columns["cutoff"])


def test_other_families_are_refused() -> None:
    one = Setting(RunConfig())
    with pytest.raises(BadInput, match="chains of functions"):
        Cutoffs().measure(one, one.network())
