"""Base class of objectives: what a model is trained for, how a step is made and how predictions are made."""

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
    """Everything that training changes; a checkpoint holds it."""

    network: Network
    optimiser: PyTree
    step: Int[Array, ""]


class Objective(Component, abc.ABC):
    """The configuration of an objective. Batches have a leading task axis."""

    serves: ClassVar[TargetKind]
    """The kind of targets that this objective is for."""

    def check(self, code_size: int, input_size: int) -> None:
        """Raise BadInput if codes and inputs of these lengths do not fit. Cheap: nothing is drawn."""
        return

    def check_family(self, family: Family) -> None:
        """Raise BadInput if the tasks of the family do not fit."""
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
        """One update.

        Args:
            state: Network, state of the optimiser, number of the step.
            codes: The codes of the tasks.
            batch: The examples of the tasks.
            key: Of the random numbers of the step.
            optimiser: At unit learning rate.
            rate: The learning rate of this step; it scales the updates.
            precision: Of matrix products. Weights, loss and optimiser stay in float32.

        Returns:
            The new state, and the loss before the update.
        """

    @abc.abstractmethod
    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        """The network's predictions, as the family scores them.

        Args:
            network: The network.
            codes: The codes of the tasks.
            batch: The examples of the tasks.
            key: For objectives whose evaluation is random.
        """
