"""Families whose targets are actions: accuracy of whole trajectories and of single steps."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.families.base import Batch, ExactMatchFamily, TargetKind, TaskScores


class ClassificationFamily(ExactMatchFamily, abc.ABC):
    """Targets are one-hot. An episode is `horizon` consecutive examples; those after its end are masked.

    A batch whose size is not a multiple of the horizon ends with the beginning of an episode.
    """

    targets: ClassVar[TargetKind] = "classes"
    defaults: ClassVar[Mapping[str, Any]] = {"objective": "classification"}

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """Steps of the longest episode."""

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        right = jnp.argmax(predictions, axis=-1) == jnp.argmax(batch.targets, axis=-1)
        extra = -len(right) % self.horizon
        # Padded and masked steps cannot be wrong.
        correct = jnp.pad(right | (batch.mask == 0), (0, extra), constant_values=True)
        whole = correct.reshape(-1, self.horizon).all(axis=1)
        return {
            "right": jnp.sum(batch.mask * right),
            "steps": jnp.sum(batch.mask),
            "whole": jnp.sum(whole).astype(jnp.float32),
            "episodes": jnp.asarray(len(whole), jnp.float32),
        }
