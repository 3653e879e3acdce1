"""Supervised classification: cross-entropy with one-hot targets."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.families.base import Batch, TargetKind
from recombine.models.base import TaskOutputs
from recombine.objectives.base import Objective, check_targets


class Classification(Objective):
    """Mean cross-entropy over tasks and samples; predictions are logits."""

    kind: Literal["classification"] = "classification"
    serves: ClassVar[TargetKind] = "classes"

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        check_targets(predictions, batch.targets)
        cross_entropy = -jnp.sum(batch.targets * jax.nn.log_softmax(predictions), axis=-1)
        return jnp.sum(batch.mask * cross_entropy) / jnp.sum(batch.mask)
