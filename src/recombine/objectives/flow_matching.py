"""Flow matching: a network learns the velocity from noise to images, and images are drawn by following it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.families.base import Batch, TargetKind
from recombine.models.base import Network, Trace
from recombine.objectives.base import FLOAT32, Objective, TrainState
from recombine.objectives.regression import Regression

CENTRE, WIDTH = -0.8, 0.8
"""Mean and standard deviation of the normal numbers behind times of training."""

Velocity = Callable[[Float[Array, "*place pixel"], Float[Array, ""]], Float[Array, "*place pixel"]]
"""From points and a time to how fast they move."""


def integrated(
    velocity: Velocity,
    start: Float[Array, "*place pixel"],
    steps: int,
    solver: Literal["euler", "heun"] = "euler",
) -> Float[Array, "*place pixel"]:
    """Where a velocity brings points between time 0 and time 1, in equal steps."""
    length = 1 / steps

    def step(number: Array, points: Array) -> Array:
        time = number.astype(points.dtype) * length
        here = velocity(points, time)
        if solver == "heun":
            here = (here + velocity(points + length * here, time + length)) / 2
        return points + length * here

    return jax.lax.fori_loop(0, steps, step, start)


def timed(
    points: Float[Array, "*place pixel"], time: Float[Array, "*#place"]
) -> Float[Array, "*place feature"]:
    """The inputs of a network: points, and behind each its time."""
    return jnp.concatenate([points, jnp.broadcast_to(time[..., None], (*points.shape[:-1], 1))], axis=-1)


class FlowMatching(Objective):
    """Mean squared error of the velocity `image - noise` at points of the straight lines between them.

    Inputs of a batch are noise and a time that is not used; targets are images. Now and then a task's code is withheld
    (zeros, which is an empty caption to a reader), so that one network knows the velocity with and without it.
    """

    kind: Literal["flow-matching"] = "flow-matching"
    serves: ClassVar[TargetKind] = "images"
    times: Literal["uniform", "logit-normal"] = "logit-normal"
    """How the times of training are drawn: equally, or as the logistic of a normal number (`CENTRE`, `WIDTH`), most of them
    nearer to the noise, where it is decided what an image shows."""
    drop: float = Field(default=0.1, ge=0, lt=1)
    """The chance that a task's code is withheld in a step of training."""
    guidance: PositiveFloat = 2.0
    """Images follow the velocity without code plus this times what the code changes of it; 1 is the code's own."""
    steps: PositiveInt = 20
    """Steps in which an image is drawn."""
    solver: Literal["euler", "heun"] = "euler"
    """How a step is made; `heun` asks the network twice and errs less."""

    def init(self, network: Network, optimiser: optax.GradientTransformation) -> TrainState:
        return Regression().init(network, optimiser)

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
        by_drop, by_time, by_noise = jax.random.split(key, 3)
        kept = self.withheld(codes, by_drop)
        seen = self.examples(batch, self.drawn_times(batch.mask.shape, by_time), by_noise)
        return Regression().step(state, kept, seen, key, optimiser, rate, precision)

    def withheld(self, codes: Float[Array, "task code"], key: Array) -> Float[Array, "task code"]:
        """The codes, some of them replaced by zeros."""
        gone = jax.random.bernoulli(key, self.drop, (len(codes), 1))
        return jnp.where(gone, 0.0, codes)

    def drawn_times(self, shape: tuple[int, ...], key: Array) -> Float[Array, "*place"]:
        """Times of training, between 0 (noise) and 1 (image)."""
        if self.times == "logit-normal":
            return jax.nn.sigmoid(CENTRE + WIDTH * jax.random.normal(key, shape))
        return jax.random.uniform(key, shape)

    @staticmethod
    def examples(batch: Batch, time: Float[Array, "*time"] | float, key: Array) -> Batch:
        """What is learned: points between noise and image, each with its time, and their velocity."""
        images = batch.targets
        noise = jax.random.normal(key, images.shape)
        share = jnp.broadcast_to(time, images.shape[:-1])[..., None]
        points = (1 - share) * noise + share * images
        return eqx.tree_at(
            lambda one: (one.inputs, one.targets), batch, (timed(points, share[..., 0]), images - noise)
        )

    @staticmethod
    def noised(
        batch: Batch, time: Float[Array, "*time"] | float, key: Array
    ) -> Float[Array, "*place feature"]:
        """A batch's images on their way, as a network is shown them at a time: with fresh noise. For traces."""
        return FlowMatching.examples(batch, time, key).inputs

    def evaluate(
        self, network: Network, codes: Float[Array, "task code"], batch: Batch, key: Array
    ) -> Float[Array, "task sample output"]:
        """Images drawn from the noise of the inputs. The key is not used: equal noise, equal images."""
        found = integrated(
            lambda points, time: self.velocity(network, codes, points, time),
            batch.inputs[..., :-1],
            self.steps,
            self.solver,
        )
        return jnp.clip(found, -1, 1)

    def watched(
        self, network: Network, code: Float[Array, " code"], start: Float[Array, "sample pixel"]
    ) -> tuple[Float[Array, "sample pixel"], dict[str, Float[Array, "step sample _"]]]:
        """One task's images as `evaluate` draws them, and what the network's sites hold at every step, told the code."""

        def step(points: Array, number: Array) -> tuple[Array, Trace]:
            time = number.astype(points.dtype) / self.steps
            inputs = timed(points, time)
            told, sites = network.trace(code, inputs)
            here = self.guided(network, code[None], told[None], inputs[None])[0]
            if self.solver == "heun":
                ahead = points + here / self.steps
                there = self.velocity(network, code[None], ahead[None], time + 1 / self.steps)[0]
                here = (here + there) / 2
            return points + here / self.steps, sites

        found, sites = jax.lax.scan(step, start, jnp.arange(self.steps))
        return jnp.clip(found, -1, 1), sites

    def velocity(
        self,
        network: Network,
        codes: Float[Array, "task code"],
        points: Float[Array, "task sample pixel"],
        time: Float[Array, ""],
    ) -> Float[Array, "task sample pixel"]:
        """The velocity that images are drawn by: with guidance, from the code towards and beyond it."""
        inputs = timed(points, time)
        return self.guided(network, codes, network.tasks(codes, inputs), inputs)

    def guided(
        self,
        network: Network,
        codes: Float[Array, "task code"],
        told: Float[Array, "task sample pixel"],
        inputs: Float[Array, "task sample feature"],
    ) -> Float[Array, "task sample pixel"]:
        """The velocity that a network gives with a code, taken beyond the one without."""
        if self.guidance == 1:
            return told
        untold = network.tasks(jnp.zeros_like(codes), inputs)
        return untold + self.guidance * (told - untold)
