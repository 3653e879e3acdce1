"""It learns; more combinations bring it to recombine; the control cannot be recombined. Margins, not numbers."""

from __future__ import annotations

from typing import Any

from recombine.families.base import Family
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.base import Network
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.outcome import Outcome
from recombine.training.trainer import Trainer

SIZES = {"inputs": 4, "hidden": 4, "outputs": 4}


def run(family: Family, number: int, **changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "space": SubsetSpace(modules=8, max_active=2),
        "support": Random(number=number, reserve=10),
        "family": family,
        "model": MLP(width=48, depth=2),
        "recipe": Paper(learning_rate=8e-3, steps=500, tasks=32, samples=8, weight_decay=0.0),
        "eval_every": 250,
        "validation_tasks": 64,
    }
    return RunConfig(**{**fields, **changes})


def r2(outcome: Outcome, network: Network | None = None) -> dict[str, float]:
    """The headline scores of the trained network, or of another in its place."""
    measured = Scores(draws=8, samples=32).measure(outcome.setting, network or outcome.network).summary
    return {name: measured[name] for name in ("r2_in", "r2_held_out")}


def test_more_combinations_help_on_held_out_ones():
    """And in distribution a network beats its untrained self, after few as after many. Two replicates."""
    sizes = (9, 26)
    configs = [run(Hyperteacher(**SIZES), size, seeds=Seeds.replicate(seed)) for seed in (0, 1) for size in sizes]
    outcomes = list(Trainer().train(configs, stack_size=4))
    for fewer, more in (outcomes[:2], outcomes[2:]):
        few, many, before = r2(fewer), r2(more), r2(more, more.setting.network())
        assert min(few["r2_in"], many["r2_in"]) > max(before["r2_in"] + 0.5, 0.6)
        assert many["r2_held_out"] > few["r2_held_out"] + 0.05
        assert many["r2_held_out"] > before["r2_held_out"] + 0.5


def test_the_control_is_memorised_and_not_recombined():
    """As many combinations as the hyperteacher needed to be recombined."""
    (outcome,) = Trainer().train([run(Lookup(**SIZES), 26)], stack_size=1)
    found = r2(outcome)
    assert found["r2_in"] > 0.3
    assert found["r2_held_out"] <= 0.05
