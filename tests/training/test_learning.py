"""It learns; more combinations bring it to recombine; the control cannot be recombined. Margins, not numbers."""

from __future__ import annotations

from typing import Any

import pytest

from recombine.families.base import Family
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.train import Outcome, Trainer

SIZES = {"inputs": 4, "hidden": 4, "outputs": 4}


def run(family: Family, number: int, **changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "space": SubsetSpace(modules=8, max_active=2),
        "support": Random(number=number, reserve=10),
        "family": family,
        "model": MLP(width=48, depth=2),
        "recipe": Paper(rate=8e-3, steps=500, tasks=32, samples=8, decay=0.0),
        "every": 250,
        "validation_tasks": 64,
    }
    return RunConfig(**{**fields, **changes})


def r2(outcome: Outcome) -> dict[str, float]:
    measured = Scores(draws=8, samples=32).measure(outcome.setting, outcome.network).summary
    return {name: measured[name] for name in ("r2_in", "r2_held_out")}


@pytest.fixture(scope="module")
def hyperteacher() -> dict[str, dict[str, float]]:
    """Scores of two stacked replicates after few and after many combinations, and before training."""
    family = Hyperteacher(**SIZES)
    made: dict[str, list[dict[str, float]]] = {"few": [], "many": [], "untrained": []}
    configs = [run(family, number, seeds=Seeds.replicate(seed)) for number in (9, 26) for seed in (0, 1)]
    for outcome in Trainer().train(configs, lanes=4):
        made["few" if outcome.config.support.number == 9 else "many"].append(r2(outcome))
        if outcome.config.support.number == 26:
            before = Scores(draws=8, samples=32).measure(outcome.setting, outcome.setting.network()).summary
            made["untrained"].append({name: before[name] for name in ("r2_in", "r2_held_out")})
    return {
        name: {key: sum(one[key] for one in scores) / len(scores) for key in scores[0]}
        for name, scores in made.items()
    }


def test_a_trained_network_beats_its_untrained_self(hyperteacher: dict[str, dict[str, float]]):
    assert hyperteacher["many"]["r2_in"] > hyperteacher["untrained"]["r2_in"] + 0.5
    assert hyperteacher["many"]["r2_in"] > 0.6
    assert hyperteacher["few"]["r2_in"] > 0.6


def test_more_combinations_help_on_held_out_ones(hyperteacher: dict[str, dict[str, float]]):
    assert hyperteacher["many"]["r2_held_out"] > hyperteacher["few"]["r2_held_out"] + 0.1


def test_the_control_is_memorised_and_not_recombined():
    """As many combinations as the hyperteacher needed to be recombined."""
    (outcome,) = Trainer().train([run(Lookup(**SIZES), 26)], lanes=1)
    found = r2(outcome)
    assert found["r2_in"] > 0.3
    assert found["r2_held_out"] <= 0.05
