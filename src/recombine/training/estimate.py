"""Estimating the time of a run: the arithmetic of its steps, divided by the measured speed of this machine."""

from __future__ import annotations

import dataclasses
import functools
import time

import jax
import jax.numpy as jnp

from recombine.training.config import RunConfig
from recombine.training.prepare import network_shapes

EFFICIENCY = 0.4
"""The speed of a training step relative to a bare matrix product, roughly."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The estimated time of a sweep in one process on this machine, in seconds."""

    compiling: float
    """Preparing and compiling the programs of training, or loading them from disk."""
    training: float
    """The steps, and the preparation of every further run."""
    measuring: float
    """The measurements, with the programs that they compile."""
    new_programs: int
    """Programs that this machine has not compiled yet."""
    kept_programs: int
    """Programs that this machine compiled before: they are loaded from disk."""
    guessed_programs: int
    """Programs whose steps have no measured time here, not even those of the same kind of model."""
    starts: dict[str, float] = dataclasses.field(repr=False)
    """The seconds before the first step of each run that is left, by its name."""
    steps: dict[str, float] = dataclasses.field(repr=False)
    """The seconds of one step of each run that is left, by its name."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compiling + self.training + self.measuring

    @property
    def basis(self) -> str:
        """In words, what the times rest on."""
        programs = self.new_programs + self.kept_programs
        if not self.guessed_programs:
            return "times measured on this machine"
        some = "" if self.guessed_programs == programs else f" for {self.guessed_programs} of {programs} programs"
        return f"arithmetic{some}: no run of this kind of model was timed on this machine yet"


def flops_per_step(config: RunConfig) -> float:
    """Operations of one training step: products with the weight matrices, forward and backward.

    Correct to a factor of two, except for convolutions, which use their weights many times. `flops.py` counts exactly.
    """
    rows = config.recipe.tasks * config.recipe.samples
    # Every token passes through every matrix.
    if config.model.autoregressive:
        rows *= config.encoding.size(config.space, config.family) + config.family.input_size
    elif config.family.targets == "text":
        rows *= config.family.input_size
    leaves = jax.tree.leaves(network_shapes(config.model, config.encoding, config.space, config.family))
    shapes = [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    return (
        6.0
        * rows
        * config.model.reuse()
        * config.objective.passes()
        * sum(shape.size for shape in shapes if len(shape.shape) > 1)
    )


@functools.cache
def machine_flops() -> float:
    """Operations per second in a training step on this machine, from a short measurement."""
    square = jnp.ones((512, 512))
    product = jax.jit(lambda left: left @ left)
    product(square).block_until_ready()
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        product(square).block_until_ready()
        times.append(time.perf_counter() - begin)
    # The best one: other work on the machine only makes it slower.
    return EFFICIENCY * 2 * 512**3 / min(times)
