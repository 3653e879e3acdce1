"""The control of `hops`: answers drawn one by one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from recombine.families.chained.hops import Hops
from recombine.families.chained.lookup_hops import LookupHops
from recombine.language.vocabulary import END, SPECIAL
from recombine.spaces.product import ProductSpace

TOKENS = 8
SPACE = ProductSpace.model_validate({"factors": {"x1": TOKENS, "x2": TOKENS, "x3": TOKENS}})


def answers(family: Hops) -> np.ndarray:
    teacher = family.draw(SPACE, jax.random.key(0))
    rows = jnp.asarray(SPACE.enumerate())
    return np.asarray(jax.vmap(lambda row: teacher.answer(teacher.task(row, jax.random.key(1))))(rows)).astype(int)


def test_answers_are_drawn_evenly_and_close_with_the_end() -> None:
    found = answers(LookupHops(tokens=TOKENS))
    assert (found[:, -1] == END).all() and found.shape == (TOKENS**3, 2)
    counts = np.bincount(found[:, 0] - SPECIAL, minlength=TOKENS)
    assert len(counts) == TOKENS and stats.chisquare(counts).pvalue > 0.001


def test_the_answer_does_not_follow_from_the_bridge() -> None:
    """In `hops` inputs with the same bridge and last token have one answer; here they agree as often as by chance."""
    rows = SPACE.enumerate()
    shares = {}
    for kind in (Hops, LookupHops):
        found = answers(kind(tokens=TOKENS, chain_of_thought=True))
        assert (found[:, 0] == answers(Hops(tokens=TOKENS, chain_of_thought=True))[:, 0]).all() or kind is LookupHops
        group = (found[:, 0] - SPECIAL) * TOKENS + rows[:, 2] % TOKENS
        pairs = (group[:, None] == group) & ~np.eye(len(rows), dtype=bool)
        shares[kind] = (found[:, 1][:, None] == found[:, 1])[pairs].mean()
    assert shares[Hops] == 1.0
    assert abs(shares[LookupHops] - 1 / TOKENS) < 0.03
