"""Targets of zeros and ones: cross-entropy of each output."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from recombine.families.base import Batch, TargetKind
from recombine.models.base import TaskOutputs
from recombine.objectives.base import Objective, check_targets


class Binary(Objective):
    """Mean cross-entropy over tasks, samples and outputs, for targets between 0 and 1. The network's outputs are logits.

    The family scores probabilities, so its metrics are the same as with `regression`.
    """

    kind: Literal["binary"] = "binary"
    serves: ClassVar[TargetKind] = "numbers"

    def loss(self, predictions: TaskOutputs, batch: Batch) -> Float[Array, ""]:
        check_targets(predictions, batch.targets)
        cross_entropy = optax.sigmoid_binary_cross_entropy(predictions, batch.targets)
        weight = batch.mask[..., None]
        return jnp.sum(weight * cross_entropy) / (jnp.sum(weight) * cross_entropy.shape[-1])

    def answer(self, outputs: Array) -> Array:
        return jax.nn.sigmoid(outputs)
