"""An objective with an inner loop, two phases and a state of its own: trained, stacked, killed and resumed like any other.

It is the one of docs/extending.md, so what that page says is what is tested here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from recombine.objectives import Regression
from recombine.recipes.paper import Paper
from recombine.training.config import RunConfig, Seeds
from recombine.training.progress import Progress
from recombine.training.trainer import Trainer

STEPS = 6


PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
(CODE,) = re.findall(r"^```python\n((?:(?!```).)*?^class Averaged.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
NAMES: dict[str, Any] = {"__name__": "averaged"}
exec(compile(CODE, str(PAGE), "exec", dont_inherit=True), NAMES)
Averaged: Any = NAMES["Averaged"]


@pytest.fixture(scope="module")
def made(tiny: Callable[..., RunConfig]) -> Callable[..., RunConfig]:
    def make(objective: Any = None, steps: int = STEPS, **changes: Any) -> RunConfig:
        recipe = Paper(learning_rate=0.01, steps=steps, tasks=8, samples=4)
        return tiny(objective=objective or Averaged(), recipe=recipe, eval_every=2, **changes)

    return make


def leaves(network: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))]


def test_the_network_is_the_mean_of_the_second_phase(made: Callable[..., RunConfig], trainer: Trainer) -> None:
    # A constant learning rate: a shorter plain run has the weights that a longer one had then.
    (averaged,) = trainer.train([made()], stack_size=1)
    plain = trainer.train([made(Regression(), steps) for steps in (4, 5, 6)], stack_size=1)
    expected = zip(*(leaves(outcome.network) for outcome in plain), strict=True)
    for found, three in zip(leaves(averaged.network), expected, strict=True):
        np.testing.assert_allclose(found, np.mean(three, axis=0), rtol=1e-4, atol=1e-6)


def test_stacked_equals_alone(made: Callable[..., RunConfig], trainer: Trainer) -> None:
    configs = [made(seeds=Seeds.replicate(number), steps=steps) for number, steps in enumerate((STEPS, 3))]
    alone = list(trainer.train(configs, stack_size=1))
    for one, two in zip(alone, trainer.train(configs, stack_size=2), strict=True):
        for mine, other in zip(leaves(one.network), leaves(two.network), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


class Killed(BaseException):
    """As Ctrl-C would be."""


class Bomb(Progress):
    def __init__(self, after: int) -> None:
        self.left = after

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


@pytest.mark.parametrize("stack_size", [1, 2])
def test_a_killed_run_ends_as_an_undisturbed_one_in_either_phase(
    made: Callable[..., RunConfig],
    trainer: Trainer,
    same_run: Callable[[Any, Any], bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack_size: int,
) -> None:
    monkeypatch.setattr("recombine.training.trainer.CHECKPOINT_SECONDS", -1.0)
    configs = [made(seeds=Seeds.replicate(number)) for number in range(stack_size)]
    whole = {outcome.config.run_id: outcome for outcome in trainer.train(configs, stack_size=stack_size)}
    for after in (1, 2):  # Killed after step 2, in phase one, and after step 4, in phase two.
        folder = tmp_path / str(after)
        first = Trainer(folder, Bomb(after * stack_size))
        again = Trainer(folder)
        first.compiler = again.compiler = trainer.compiler
        with pytest.raises(Killed):
            list(first.train(configs, stack_size=stack_size))
        assert list(folder.iterdir())
        for outcome in again.train(configs, stack_size=stack_size):
            assert same_run(outcome, whole[outcome.config.run_id])


def test_an_inner_loop_makes_more_updates_per_step(made: Callable[..., RunConfig], trainer: Trainer) -> None:
    (once,) = trainer.train([made(steps=2)], stack_size=1)
    (twice,) = trainer.train([made(Averaged(inner=2), steps=2)], stack_size=1)
    assert once.config.run_id != twice.config.run_id
    assert twice.curves[-1]["loss"] < once.curves[-1]["loss"]
