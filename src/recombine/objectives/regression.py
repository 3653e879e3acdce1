"""Supervised regression: mean squared error on the targets."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.families.base import Batch, TargetKind
from recombine.models.base import TaskOutputs
from recombine.objectives.base import Objective, check_targets


class Regression(Objective):
    """Mean squared error over tasks, samples and outputs."""

    kind: Literal["regression"] = "regression"
    serves: ClassVar[TargetKind] = "numbers"

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        check_targets(predictions, batch.targets)
        weight = batch.mask[..., None]
        error = predictions - batch.targets
        return jnp.sum(weight * error**2) / (jnp.sum(weight) * error.shape[-1])
