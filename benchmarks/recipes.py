"""`fast` against `paper`: seconds of training until held-out combinations are predicted with R2 .95."""

from __future__ import annotations

from typing import Any

import numpy as np

from measuring import row
from recombine import RunConfig, Seeds
from recombine.models import MLP
from recombine.recipes import Fast, Paper
from recombine.recipes.base import Recipe
from recombine.training.outcome import Outcome
from recombine.training.trainer import train

TARGET = 0.95
SEEDS = (110, 111, 112)
"""Seeds that no study and no tuning used."""


def _run(recipe: Recipe, width: int, depth: int, seed: int, **more: Any) -> Outcome:
    model = MLP(width=width, depth=depth)
    return train(RunConfig(model=model, recipe=recipe, seeds=Seeds.replicate(seed), **more))


def _seconds(recipe: Recipe, width: int, every: int, seeds: tuple[int, ...]) -> tuple[float, list[int], float]:
    """The median time, the steps of each seed, and the share of seeds that arrived."""
    outcomes = [_run(recipe, width, 4, seed, target=TARGET, eval_every=every) for seed in seeds]
    return (
        float(np.median([outcome.seconds for outcome in outcomes])),
        [outcome.steps for outcome in outcomes],
        float(np.mean([bool(outcome.reached) for outcome in outcomes])),
    )


def recipes() -> None:
    """M = 16, K = 3, 25 % held out. `fast` needs a number of steps beforehand: the least that reaches the target with room."""
    for width, steps, every, seeds in ((256, 500, 250, SEEDS), (1024, 300, 100, SEEDS[:1])):
        fast = _seconds(Fast(steps=steps), width, 25, seeds)
        paper = _seconds(Paper(steps=100_000), width, every, seeds)
        row(
            f"to held-out R2 {TARGET}, 4 x {width}",
            f"fast {paper[0] / fast[0]:.1f} x as fast as paper",
            f"{fast[0]:.1f} s, steps {fast[1]}, against {paper[0]:.0f} s, steps {paper[1]}; "
            f"{fast[2]:.0%} and {paper[2]:.0%} arrived",
        )
    _half_precision()


def _half_precision() -> None:
    """What bfloat16 products change of the result."""
    changes = []
    for seed in SEEDS:
        whole, half = (_run(Fast(precision=one), 128, 3, seed) for one in ("float32", "bfloat16"))
        changes.append(half.curves[-1]["score_held_out"] - whole.curves[-1]["score_held_out"])
    row(
        "bfloat16, fast, 3 x 128, 500 steps",
        f"held-out R2 changes by {np.mean(changes):+.4f}",
        f"{len(changes)} seeds: {', '.join(f'{change:+.4f}' for change in changes)}",
    )
