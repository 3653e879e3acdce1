"""Chains of random functions: answers against plain loops, and which facts training sees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.chained.hops import Hops, HopsTeacher
from recombine.language.vocabulary import END, SPECIAL
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.hops import INNER, Hops as Support, HopSupport, steps
from recombine.testing import check_support
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

TOKENS = 7


def space_of(chain: str) -> ProductSpace:
    positions = 4 if chain == "three-hop" else 3
    return ProductSpace.model_validate({"factors": {f"x{n + 1}": TOKENS for n in range(positions)}})


def setting(chain: str, **family: Any) -> Setting:
    config = RunConfig.model_validate(
        {
            "space": space_of(chain),
            "support": Support(chain=chain, number=60, reserve=20),  # type: ignore[arg-type]
            "family": {"kind": "hops", "tokens": TOKENS, "chain": chain, **family},
            "validation_tasks": 4,
            "seeds": Seeds.replicate(3),
        }
    )
    return Setting(config)


@pytest.mark.parametrize("chain", INNER)
def test_support_conformance(chain: Any) -> None:
    check_support(Support(chain=chain, number=60, reserve=20), space_of(chain))


@pytest.mark.parametrize("chain", INNER)
def test_training_sees_its_share_of_facts_and_no_other(chain: Any) -> None:
    space = space_of(chain)
    support = Support(chain=chain, number=80, reserve=20).draw(space, 1)
    assert isinstance(support, HopSupport)

    def facts(rows: np.ndarray) -> list[set[tuple[int, ...]]]:
        inputs = rows - np.array(space.offsets)
        return [set(zip(*map(list, fact), strict=True)) for fact in steps(chain, inputs, support.inner)]

    trained = facts(support.rows)
    sizes = [len(next(iter(one))) for one in trained]
    assert sizes == [2, 3] if chain == "non-tree" else set(sizes) == {2}
    assert all(len(one) <= round(0.7 * TOKENS**size) for one, size in zip(trained, sizes, strict=True))
    allowed = [
        all(fact <= known for fact, known in zip(facts(row[None]), facts(support.rows), strict=True))
        for row in support.reserved[10:]
    ]
    assert not any(allowed), "the second half has a fact that is never seen"


@pytest.mark.parametrize("chain", INNER)
@pytest.mark.parametrize("chain_of_thought", [False, True])
def test_answers_follow_the_functions(chain: str, chain_of_thought: bool) -> None:
    own = setting(chain, chain_of_thought=chain_of_thought)
    teacher, support = own.teacher, own.support
    assert isinstance(teacher, HopsTeacher) and isinstance(support, HopSupport)
    np.testing.assert_array_equal(teacher.inner, support.inner)
    inner, last = support.inner, np.asarray(teacher.last)
    rows = support.rows[:5]
    for row, x in zip(rows, rows - np.array(own.config.space.offsets), strict=True):
        bridges = [inner[0][x[0], x[1]]]
        if chain == "three-hop":
            bridges.append(inner[1][bridges[0], x[2]])
        wanted = last[bridges[-1], x[1], x[2]] if chain == "non-tree" else last[bridges[-1], x[-1]]
        task = teacher.task(jnp.asarray(row), jax.random.key(0))
        said = [*(bridges if chain_of_thought else []), wanted]
        assert np.asarray(teacher.answer(task)).tolist() == [*(SPECIAL + np.array(said)), END]
        assert np.asarray(teacher.prompt(task)).tolist() == (SPECIAL + x).tolist()


def test_more_training_keeps_the_test() -> None:
    few, more = (Support(number=number, reserve=20).draw(space_of("two-hop"), 2) for number in (30, 60))
    np.testing.assert_array_equal(few.reserved, more.reserved)
    np.testing.assert_array_equal(few.rows, more.rows[:30])


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="needs a product space of 3 factors"):
        Support().check(SubsetSpace(modules=4, max_active=2))
    with pytest.raises(BadInput, match="fewer than number=300"):
        Support(number=300).check(space_of("two-hop"))
    with pytest.raises(BadInput, match="needs 3 factors of 9"):
        Hops(tokens=9).check(space_of("two-hop"))
