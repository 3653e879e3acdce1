"""Odd-one-out and fill-in: the contract, and which rules items obey."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families.fill_in import SPACE as GAPS, FillIn
from recombine.families.odd_one_out import ITEMS, SPACE, OddOneOut
from recombine.families.odd_one_out.items import LENGTH, MASK, Pictures, Sentences
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig


@pytest.mark.parametrize(
    ("family", "space"), [(OddOneOut(), SPACE), (OddOneOut(items="pictures"), SPACE), (FillIn(words=3), GAPS)], ids=str
)
def test_the_contract(family: OddOneOut, space: object) -> None:
    check_family(family, space)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="needs its own space"):
        family.check(SubsetSpace(modules=4, max_active=2))


@settings(max_examples=40)
@given(st.booleans(), st.booleans(), st.integers(0, 2**31 - 1))
def test_sentences_obey_the_rules_that_they_should(first: bool, second: bool, seed: int) -> None:
    sentences = Sentences(5)
    tokens = np.asarray(sentences.draw(jnp.array([first, second]), jax.random.key(seed))).astype(int)
    assert sentences.rules(tokens) == (first, second)
    assert len(tokens) == LENGTH and tokens.min() > MASK and tokens.max() < sentences.vocabulary


@settings(max_examples=20)
@given(st.booleans(), st.booleans(), st.integers(0, 2**31 - 1))
def test_things_are_alike_as_they_should(first: bool, second: bool, seed: int) -> None:
    shapes, sizes = Pictures(16).things(jnp.array([first, second]), jax.random.key(seed))
    assert (shapes[0] == shapes[1]) == first and (sizes[0] == sizes[1]) == second


@pytest.mark.parametrize("rule", [0, 1])
@pytest.mark.parametrize("mixed", [False, True])
def test_one_item_breaks_the_rule_and_only_mixed_ones_break_the_other(rule: int, mixed: bool) -> None:
    family = OddOneOut()
    teacher = family.draw(SPACE, jax.random.key(0))
    task = teacher.task(jnp.array([rule, 3 if mixed else 2]), jax.random.key(0))
    batch = teacher.batch(task, jax.random.key(1), 64)
    items = np.asarray(batch.inputs).reshape(64, ITEMS, LENGTH).astype(int)
    rules = np.array([[family.source.rules(item) for item in four] for four in items])  # type: ignore[union-attr]
    odd = np.asarray(batch.targets).astype(bool)
    np.testing.assert_array_equal(rules[..., rule], ~odd)
    other = rules[..., 1 - rule]
    assert (other.mean() == 1) if not mixed else 0.4 < other.mean() < 0.6
    assert odd.mean(axis=0).min() > 0.1 and odd.mean(axis=0).max() < 0.45, "the odd one is anywhere"


def test_the_gap_is_where_the_question_says() -> None:
    teacher = FillIn(words=4).draw(GAPS, jax.random.key(0))
    batch = teacher.batch(teacher.task(jnp.array([5, 9]), jax.random.key(0)), jax.random.key(1), 16)
    assert (np.asarray(batch.inputs)[:, 5] == MASK).all() and (np.asarray(batch.inputs) == MASK).sum() == 16
    verbs = np.asarray(batch.targets).argmax(axis=1)
    assert (verbs >= 4 + 4 + 3 * 4).all(), "the sixth word is a verb"


def test_models_say_what_they_do_not_fit() -> None:
    base = RunConfig.model_validate({"family": "odd-one-out"})
    for changes, message in (
        ({"model": {"kind": "comparison", "items": "pictures"}}, "does not fit the family"),
        ({"model": {"kind": "comparison", "vocabulary": 10}}, "tokens, and vocabulary=10"),
        ({"model": {"kind": "word-filler"}}, "does not fit the family"),
    ):
        with pytest.raises(BadInput, match=message):
            base.replace(**changes)
