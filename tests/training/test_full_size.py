"""Equal plan, equal bits: as users run it, optimised and at a size where products are shared out over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from recombine.families.hyperteacher import Hyperteacher
from recombine.models.mlp import MLP
from recombine.recipes.base import Recipe
from recombine.recipes.fast import Fast
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.progress import Progress
from recombine.training.trainer import Trainer

pytestmark = pytest.mark.slow

Same = Callable[[Any, Any], bool]


@pytest.fixture(scope="module", autouse=True)
def _optimised() -> Iterator[None]:
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def run(recipe: Recipe, seed: int, number: int = 200) -> RunConfig:
    return RunConfig(
        space=SubsetSpace(modules=16, max_active=3),
        support=Random(number=number),
        family=Hyperteacher(),
        model=MLP(width=128, depth=3),
        recipe=recipe,
        seeds=Seeds.replicate(seed),
    )


class Killed(BaseException):
    """As Ctrl-C would be."""


class Bomb(Progress):
    """Goes off at the report after so many."""

    left = 4

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


@pytest.mark.parametrize("recipe", [Paper(steps=60), Fast(steps=60)], ids=["paper", "fast"])
def test_a_run_depends_neither_on_its_neighbours_nor_on_being_killed(
    recipe: Recipe, tmp_path: Path, same_run: Same, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("recombine.training.trainer.CHECKPOINT_SECONDS", -1.0)
    trainer = Trainer()
    mine = run(recipe, 0)
    first, *_ = trainer.train([mine, run(recipe, 1), run(recipe, 2, 300)], stack_size=3)
    *_, last = trainer.train([run(recipe, 3, 40), mine], stack_size=3)
    assert same_run(first, last)
    killed = Trainer(tmp_path, Bomb())
    killed.compiler = trainer.compiler
    with pytest.raises(Killed):
        list(killed.train([mine, run(recipe, 1)], stack_size=3))
    again = Trainer(tmp_path)
    assert same_run(next(again.train([mine, run(recipe, 1)], stack_size=3)), first), (
        "also as compiled by another trainer"
    )
