"""Preferences are learned and recombined; the control is memorised at best. Margins, not numbers."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from recombine.families.base import Family
from recombine.families.lookup_preferences import LookupPreferences
from recombine.families.preferences import Preferences
from recombine.models.mlp import MLP
from recombine.recipes.fast import Fast
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.trainer import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _optimised() -> Iterator[None]:
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def scores(family: Family) -> tuple[dict[str, float], dict[str, float]]:
    """Before learning much, and after."""
    config = RunConfig(
        space=SubsetSpace(modules=6, max_active=2),
        support=Random(number=14),
        family=family,
        objective="classification",  # type: ignore[arg-type]
        model=MLP(width=128, depth=2),
        recipe=Fast(steps=600, tasks=128, samples=8),
        eval_every=10,
    )
    curves = train(config).curves
    return curves[0], curves[-1]


def test_preferences_are_recombined_and_the_control_is_not():
    sizes = {"features": 6, "objects": 2}
    first, last = scores(Preferences(**sizes))
    assert last["score_in"] > first["score_in"] + 0.2
    assert last["score_held_out"] > first["score_held_out"] + 0.1
    _, control = scores(LookupPreferences(**sizes))
    assert control["score_in"] > control["score_held_out"] + 0.1, "it can be memorised"
    assert last["score_held_out"] > control["score_held_out"] + 0.1, "and not recombined"
