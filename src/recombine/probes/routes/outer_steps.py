"""Accuracy of a recursive model after each outer step, also beyond those of training, and where its halting head would stop."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.models.base import Network
from recombine.models.recursive import RecursiveNetwork
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import at_once, over_tasks
from recombine.training import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream


@dataclasses.dataclass(frozen=True)
class StepByStep:
    """The answers to one grid after each step. Only scores are kept, so memory does not grow with the number of steps."""

    steps: int
    samples: int

    def __call__(self, network: RecursiveNetwork, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, self.samples)
        inputs, wanted = batch.inputs[None], jnp.argmax(batch.targets, axis=-1)
        puzzle = network.embed(inputs, code[None])

        def once(state: Any, _: None) -> tuple[Any, dict[str, Array]]:
            after = network.step(puzzle, state)
            right = (jnp.argmax(network.logits(after)[0], axis=-1) == wanted) | (batch.mask == 0)
            return after, {"whole": jnp.all(right), "cells": jnp.mean(right), "stops": network.halting(after)[0] > 0}

        return jax.lax.scan(once, network.initial(1, self.samples), length=self.steps)[1]


class OuterSteps(Measurement):
    """The share of held-out grids that are right after each outer step (test side).

    The summary has it after the first step (`accuracy_first`), after the model's `steps` (`accuracy_last`) and after `times` as
    many (`accuracy_beyond`). `accuracy_halted` reads each answer when the halting head first says that it is right, at the
    latest after `steps`; `steps_halted` is the mean number of steps that this takes. The table has one row per step.
    """

    kind: Literal["outer-steps"] = "outer-steps"
    summary_names: ClassVar[tuple[str, ...]] = (
        "accuracy_first",
        "accuracy_last",
        "accuracy_beyond",
        "accuracy_halted",
        "steps_halted",
    )
    times: PositiveInt = 2
    """How many times the model's `steps` are taken."""
    combinations: PositiveInt = 512
    """The largest number of held-out combinations."""
    draws: PositiveInt = 1
    """Examples of each combination."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        if not isinstance(network, RecursiveNetwork) or network.steps == 1:
            return Measured(
                {}, {}, refused=f"The model {setting.config.model.kind!r} takes no outer steps, or only one."
            )
        rows = np.repeat(setting.regions.require("held_out", self.combinations, "test"), self.draws, axis=0)
        steps, most = network.steps, self.times * network.steps
        compute = StepByStep(most, setting.config.family.validation_samples)
        found = over_tasks(compute, setting, network, rows, Stream.TEST, "held_out", at_once(setting))
        whole, cells, stops = (found[name].astype(float) for name in ("whole", "cells", "stops"))
        limited = stops[:, :steps].astype(bool)
        # A grid that the head never calls right is read after the last step.
        limited[:, -1] = True
        stopped = limited.argmax(axis=1)
        summary = {
            "accuracy_first": whole[:, 0].mean(),
            "accuracy_last": whole[:, steps - 1].mean(),
            "accuracy_beyond": whole[:, -1].mean(),
            "accuracy_halted": whole[np.arange(len(whole)), stopped].mean(),
            "steps_halted": 1 + stopped.mean(),
        }
        columns: dict[str, list[Any]] = {
            "step": list(range(1, most + 1)),
            "accuracy": whole.mean(axis=0).tolist(),
            "cell_accuracy": cells.mean(axis=0).tolist(),
            "stops": stops.mean(axis=0).tolist(),
        }
        return Measured({name: float(value) for name, value in summary.items()}, columns)
