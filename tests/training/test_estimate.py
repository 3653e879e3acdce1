"""The arithmetic of a step."""

from __future__ import annotations

from collections.abc import Callable

from recombine.models.mlp import MLP
from recombine.training.config import RunConfig
from recombine.training.estimate import flops_per_step, machine_flops


def test_operations_of_a_step(tiny: Callable[..., RunConfig]):
    """6 = multiply and add, forward once and backward twice; 6 + 4 inputs, 3 outputs."""
    matrices = 10 * 7 + 7 * 5 + 5 * 3
    assert flops_per_step(tiny(model=MLP(widths=(7, 5)))) == 6 * matrices * 8 * 4


def test_this_machine_computes():
    assert machine_flops() > 1e6
