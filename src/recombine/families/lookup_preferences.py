"""The control of preferences that must fail: independent preferences for each combination."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Float

from recombine.families.base import Task
from recombine.families.preferences import PreferenceShape, PreferringTeacher
from recombine.spaces.base import Space


class LookupPreferencesTeacher(PreferringTeacher):
    """Each combination has preferences of its own, drawn from a hash of the combination.

    Within a combination objects are worth as much, and follow the coefficients, as in `preferences`; between
    combinations nothing is shared.
    """

    key: Array

    def worth(self, task: Task) -> Float[Array, " feature"]:
        key = self.key
        for slot in range(self.space.slots):
            key = jax.random.fold_in(key, task.combination[slot])
        return task.coefficients @ jax.random.normal(key, (self.space.slots, self.shape.features))


class LookupPreferences(PreferenceShape):
    """Preferences without any law between combinations; no combination is ever listed."""

    kind: Literal["lookup-preferences"] = "lookup-preferences"

    def draw(self, space: Space, key: Array) -> LookupPreferencesTeacher:
        self.check(space)
        return LookupPreferencesTeacher(space=space, shape=self, key=key)
