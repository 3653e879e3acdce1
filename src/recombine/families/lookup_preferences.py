"""The control of preferences that must fail: independent preferences for each combination."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Float

from recombine.families.base import Task, combination_key
from recombine.families.preferences import Preferences, PreferringTeacher
from recombine.spaces.base import Space


class LookupPreferencesTeacher(PreferringTeacher):
    """Each combination has separate preferences, drawn from a hash of the combination.

    Within a combination the values of objects have the same distribution as in `preferences`. Combinations share nothing.
    """

    key: Array

    def worth(self, task: Task) -> Float[Array, " feature"]:
        key = combination_key(self.key, task.combination)
        return task.coefficients @ jax.random.normal(key, (self.space.slots, self.shape.features))


class LookupPreferences(Preferences):
    """Preferences that are independent between combinations."""

    kind: Literal["lookup-preferences"] = "lookup-preferences"

    def draw(self, space: Space, key: Array) -> LookupPreferencesTeacher:
        self.check(space)
        return LookupPreferencesTeacher(space=space, shape=self, key=key)
