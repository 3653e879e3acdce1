"""A small U-Net that generates an image, conditioned on a code and a time."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field, PositiveInt

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.layers import (
    Images,
    Linear,
    convolve,
    depth_to_space,
    draw_convolution,
    pointwise,
    rms_norm,
    space_to_depth,
)

COLOURS = 3
"""Channels of an image."""

LATEST = 0.95
"""Later times count as this one in the velocity, which divides by the remaining time."""

WAVES = 16
"""Frequencies of the time embedding: one sine and one cosine each."""


def time_embedding(time: Float[Array, " image"]) -> Float[Array, "image wave"]:
    """Sines and cosines of a time between 0 and 1, from half a turn to 32 turns."""
    speeds = jnp.asarray(np.pi * np.geomspace(1, 64, WAVES), time.dtype)
    angles = time[:, None] * speeds
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def velocity(
    image: Float[Array, "image pixel"], points: Float[Array, "image pixel"], time: Float[Array, " image"]
) -> Float[Array, "image pixel"]:
    """The velocity of points on a straight line to an image, given the time at which they are there."""
    return (image - points) / (1 - jnp.minimum(time, LATEST))[:, None]


class Block(eqx.Module):
    """A residual block of two convolutions. The condition scales and shifts the channels before the first (FiLM)."""

    film: Linear
    first: Linear
    second: Linear

    @staticmethod
    def draw(channels: int, condition: int, key: Array) -> Block:
        """Fresh weights."""
        by_film, by_first, by_second = jax.random.split(key, 3)
        return Block(
            film=Linear.draw(condition, 2 * channels, by_film),
            first=draw_convolution(channels, channels, by_first),
            second=draw_convolution(channels, channels, by_second),
        )

    def __call__(self, images: Images, condition: Float[Array, "image condition"]) -> Images:
        scale, shift = jnp.split((self.film(condition))[:, None, None], 2, axis=-1)
        hidden = convolve(jax.nn.silu(rms_norm(images) * (1 + scale) + shift), self.first)
        return images + convolve(jax.nn.silu(rms_norm(hidden)), self.second)


class UNetNetwork(Network):
    """Down to the coarsest resolution and up again, with a skip connection at every other resolution.

    Inputs are the pixels of a noisy image and the time. Patches of pixels are embedded first, so that no convolution is as
    fine as the image. The network predicts the final image, and the velocity follows from it: a small network can draw
    images, but could not reproduce the noise. A site is the mean of a block's output over positions; an edit of the mean is
    added at every position.
    """

    of_code: Linear
    of_time: Float[Array, "wave condition"]
    of_image: Linear
    places: Float[Array, "position channel"]
    """A learned vector for each position, added before the first block."""
    down: tuple[tuple[Block, ...], ...]
    """Blocks of each resolution except the coarsest, finest first."""
    shrink: tuple[Linear, ...]
    middle: tuple[Block, ...]
    grow: tuple[Linear, ...]
    """Maps to each resolution except the coarsest, finest first; `across` and `up` have the same order."""
    across: tuple[Linear, ...]
    up: tuple[tuple[Block, ...], ...]
    readout: Linear
    pixels: int = eqx.field(static=True)
    patch_size: int = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        condition = self._condition(code)
        return self._generate(jnp.broadcast_to(condition, (len(inputs), len(condition))), inputs, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The images of all tasks are one batch: with a task axis there would be many small products.
        condition = jnp.repeat(self._condition(codes), inputs.shape[1], axis=0)
        outputs, _ = self._generate(condition, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def _condition(self, code: Float[Array, "*task code"]) -> Float[Array, "*task condition"]:
        # A text encoder's mean over many words is short: the norm makes all codes equally long.
        return self.of_code(rms_norm(code))

    def _generate(self, condition: Float[Array, "sample condition"], inputs: Inputs, edit: Edit) -> Traced:
        """One image for each row of conditions."""
        condition = jax.nn.silu(condition + time_embedding(inputs[:, -1]) @ self.of_time)
        sites: dict[str, Array] = {}

        def run(blocks: tuple[Block, ...], stage: str, images: Images) -> Images:
            for block in blocks:
                images = block(images, condition)
                number = 1 + sum(site.startswith(stage) for site in sites)
                site = f"{stage} {number}" if stage != "middle" or len(blocks) > 1 else stage
                mean = jnp.mean(images, axis=(1, 2))
                sites[site] = edit(site, mean)
                if edit is not unedited:
                    images = images + (sites[site] - mean)[:, None, None]
            return images

        images = inputs[:, :-1].reshape(-1, self.pixels, self.pixels, COLOURS)
        images = convolve(space_to_depth(images, self.patch_size), self.of_image)
        images = images + self.places.reshape(images.shape[1:])
        skips: list[Images] = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            skips.append(run(blocks, "down", images))
            images = pointwise(space_to_depth(skips[-1], 2), shrink)
        images = run(self.middle, "middle", images)
        for level in reversed(range(len(self.up))):
            images = depth_to_space(pointwise(images, self.grow[level]), 2) + pointwise(
                skips[level], self.across[level]
            )
            images = run(self.up[level], "up", images)
        outputs = depth_to_space(convolve(jax.nn.silu(rms_norm(images)), self.readout), self.patch_size)
        image = outputs.reshape(len(inputs), -1)
        return velocity(image, inputs[:, :-1], inputs[:, -1]), sites


class UNet(Model):
    """A U-Net: each of its `levels` has half the rows and twice the channels of the level before.

    For families of square colour images. Inputs are the pixels and a time; outputs are as many pixels.
    """

    kind: Literal["unet"] = "unet"
    width: PositiveInt = 32
    """Channels of the finest resolution."""
    levels: PositiveInt = 2
    """Resolutions."""
    blocks: PositiveInt = Field(default=1, le=100)
    """Blocks per resolution on the way down, and the same number on the way up."""
    patch_size: PositiveInt = 2
    """Rows and columns of a patch of pixels, which is one position of the finest resolution."""
    condition: PositiveInt = 128
    """Size of the vector that conditions every block on code and time."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        self._pixels(family.input_size, family.output_size)

    def _pixels(self, input_size: int, output_size: int) -> int:
        """Rows of an image, from the sizes of inputs and outputs."""
        pixels = math.isqrt(output_size // COLOURS)
        if (input_size, output_size) != (COLOURS * pixels**2 + 1, COLOURS * pixels**2):
            raise BadInput(
                f"The U-Net is for square images of {COLOURS} colours and a time; the family has {input_size} inputs "
                f"and {output_size} outputs.",
                fix="family=scenes, or another model",
            )
        unit = self.patch_size * 2 ** (self.levels - 1)
        if pixels % unit:
            raise BadInput(
                f"The U-Net halves an image of patches of {self.patch_size} pixels {self.levels - 1} times, so the rows of an image "
                f"must be a multiple of {unit}; they are {pixels}.",
                fix="fewer levels, or a smaller patch_size",
            )
        return pixels

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> UNetNetwork:
        pixels = self._pixels(input_size, output_size)
        keys = iter(jax.random.split(key, 5 + (2 * self.levels - 1) * self.blocks + 3 * (self.levels - 1)))
        channels = [self.width * 2**level for level in range(self.levels)]
        pairs = list(itertools.pairwise(channels))

        def blocks(width: int) -> tuple[Block, ...]:
            return tuple(Block.draw(width, self.condition, next(keys)) for _ in range(self.blocks))

        inside = COLOURS * self.patch_size**2
        return UNetNetwork(
            of_code=Linear.draw(code_size, self.condition, next(keys)),
            of_time=Linear.draw(2 * WAVES, self.condition, next(keys)).weight,
            of_image=draw_convolution(inside, self.width, next(keys)),
            places=0.1 * jax.random.normal(next(keys), ((pixels // self.patch_size) ** 2, self.width)),
            down=tuple(blocks(fine) for fine, _ in pairs),
            shrink=tuple(Linear.draw(4 * fine, coarse, next(keys)) for fine, coarse in pairs),
            middle=blocks(channels[-1]),
            grow=tuple(Linear.draw(coarse, 4 * fine, next(keys)) for fine, coarse in pairs),
            across=tuple(Linear.draw(fine, fine, next(keys)) for fine, _ in pairs),
            up=tuple(blocks(fine) for fine, _ in pairs),
            readout=draw_convolution(self.width, inside, next(keys)),
            pixels=pixels,
            patch_size=self.patch_size,
        )
