"""The arithmetic of a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recombine.families.puzzles.einstein import Einstein
from recombine.models.mlp import MLP
from recombine.training.config import RunConfig
from recombine.training.estimate import flops_per_step, machine_flops


def test_operations_of_a_step(tiny: Callable[..., RunConfig]):
    """6 = multiply and add, forward once and backward twice; 6 + 4 inputs, 3 outputs."""
    matrices = 10 * 7 + 7 * 5 + 5 * 3
    assert flops_per_step(tiny(model=MLP(widths=(7, 5)))) == 6 * matrices * 8 * 4


def test_this_machine_computes():
    assert machine_flops() > 1e6


def test_every_token_passes_through_the_matrices():
    config = RunConfig.model_validate({"family": "maximum-sum", "recipe": {"kind": "fast", "tasks": 2, "samples": 1}})
    width, vocabulary = 128, config.family.vocabulary.size  # type: ignore[attr-defined]
    matrices = 2 * 12 * width**2 + vocabulary * width
    assert flops_per_step(config) == 6 * matrices * 2 * (8 + 17)


def test_puzzles_are_not_drawn_for_an_estimate(monkeypatch: pytest.MonkeyPatch):
    config = RunConfig.model_validate({"family": "einstein"})
    monkeypatch.setattr(Einstein, "draw", lambda *_: pytest.fail("drawn"))
    assert flops_per_step(config) > 0
