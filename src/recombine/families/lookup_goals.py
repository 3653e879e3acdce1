"""The control of goals that must fail: an independent goal for each combination."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.families.base import Task
from recombine.families.goals import GoalShape, GoalsTeacher
from recombine.spaces.base import Space


class LookupGoalsTeacher(GoalsTeacher):
    """Each combination stands for a goal that has nothing to do with its words, drawn from a hash of the combination."""

    key: Array

    def meant(self, task: Task) -> Int[Array, " slots"]:
        key = self.key
        for slot in range(self.space.slots):
            key = jax.random.fold_in(key, task.combination[slot])
        return jax.random.randint(key, (self.space.slots,), 0, jnp.asarray(self.space.levels))


class LookupGoals(GoalShape):
    """Goals without any law between combinations; no combination is ever listed."""

    kind: Literal["lookup-goals"] = "lookup-goals"

    def draw(self, space: Space, key: Array) -> LookupGoalsTeacher:
        return LookupGoalsTeacher(**self.parts(space), key=key)
