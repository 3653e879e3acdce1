"""What a model is trained for."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PyTree

from recombine.component import Component
from recombine.families.base import Batch, Family, TargetKind
from recombine.models.base import Network

FLOAT32 = np.dtype("float32")


class TrainState(eqx.Module):
    """Everything that training changes: what a checkpoint holds."""

    network: Network
    optimiser: PyTree
    step: Int[Array, ""]


class Objective(Component, abc.ABC):
    """The configuration of an objective. Batches have a leading task axis here."""

    serves: ClassVar[TargetKind]
    """The kind of targets that it is made for."""

    def check(self, code_size: int, input_size: int) -> None:
        """Raise BadInput if it cannot be trained with codes and inputs of these lengths. Cheap: nothing is drawn."""
        return

    def check_family(self, family: Family) -> None:
        """Raise BadInput if it is made for other tasks than those of the family."""
        return

    @abc.abstractmethod
    def init(self, network: Network, optimiser: optax.GradientTransformation) -> TrainState:
        """The state before the first step."""

    @abc.abstractmethod
    def step(
        self,
        state: TrainState,
        codes: Float[Array, "task code"],
        batch: Batch,
        key: Array,
        optimiser: optax.GradientTransformation,
        rate: Float[Array, ""],
        precision: np.dtype = FLOAT32,
    ) -> tuple[TrainState, Float[Array, ""]]:
        """One update, and the loss before it. `optimiser` has unit rate; its updates are scaled by `rate`.

        Products are computed in `precision`; weights, loss and optimiser stay as they are.
        """

    @abc.abstractmethod
    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        """The network's predictions."""
