"""The control of goals that must fail: an independent goal for each combination."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from recombine.families.base import Task, combination_key
from recombine.families.goals import Goals, GoalsTeacher
from recombine.spaces.base import Space


class LookupGoalsTeacher(GoalsTeacher):
    """Each combination means a random goal, drawn from a hash of the combination and unrelated to its words."""

    key: Array

    def meant(self, task: Task) -> Int[Array, " slots"]:
        key = combination_key(self.key, task.combination)
        return jax.random.randint(key, (self.space.slots,), 0, jnp.asarray(self.space.levels))


class LookupGoals(Goals):
    """Goals that are independent between combinations."""

    kind: Literal["lookup-goals"] = "lookup-goals"

    def draw(self, space: Space, key: Array) -> LookupGoalsTeacher:
        return LookupGoalsTeacher(**self.parts(space), key=key)
