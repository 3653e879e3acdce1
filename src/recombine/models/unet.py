"""A small U-Net that a code and a time tell what to draw."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Edit, Model, Network, Trace, unedited
from recombine.models.convolution import (
    Images,
    coarser,
    convolved,
    draw_convolution,
    draw_layer,
    finer,
    mixed,
    normed,
)
from recombine.models.mlp import Layer

COLOURS = 3
"""Channels of an image."""

LATEST = 0.95
"""The time from which the rest of the way is taken to be as long as from here: the velocity is a quotient."""

WAVES = 16
"""Sines, and as many cosines, by which a network is told the time."""


def waves(time: Float[Array, " image"]) -> Float[Array, "image wave"]:
    """Sines and cosines of a time between 0 and 1, from half a turn to many: near times look alike, far ones do not."""
    speeds = jnp.asarray(np.pi * np.geomspace(1, 64, WAVES), time.dtype)
    angles = time[:, None] * speeds
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def velocity(
    image: Float[Array, "image pixel"], points: Float[Array, "image pixel"], time: Float[Array, " image"]
) -> Float[Array, "image pixel"]:
    """How fast points move that are on their way to an image, at a time."""
    return (image - points) / (1 - jnp.minimum(time, LATEST))[:, None]


class Block(eqx.Module):
    """Two convolutions, added to what came in. What is told scales and shifts the channels before the first."""

    film: Layer
    first: Layer
    second: Layer

    @staticmethod
    def draw(channels: int, condition: int, key: Array) -> Block:
        """A block with fresh weights."""
        by_film, by_first, by_second = jax.random.split(key, 3)
        return Block(
            film=draw_layer(condition, 2 * channels, by_film),
            first=draw_convolution(channels, channels, by_first),
            second=draw_convolution(channels, channels, by_second),
        )

    def __call__(self, images: Images, told: Float[Array, "image condition"]) -> Images:
        scale, shift = jnp.split((told @ self.film.weight + self.film.bias)[:, None, None], 2, axis=-1)
        hidden = convolved(jax.nn.silu(normed(images) * (1 + scale) + shift), self.first)
        return images + convolved(jax.nn.silu(normed(hidden)), self.second)


class UNetNetwork(Network):
    """Down to the coarsest resolution and up again, with a link across at every other one.

    Inputs are an image, row by row, and the time. The first matrix sees squares of pixels, so that no convolution is
    as fine as the image. What it draws is the image at the end of the way, from which the velocity follows: images are few
    beside all that noise can be, so a small network can draw them where it could not repeat the noise. A site is the mean of a block's output over positions; what an edit changes of the mean is
    added at every position.
    """

    of_code: Layer
    of_time: Float[Array, "wave condition"]
    of_image: Layer
    places: Float[Array, "position channel"]
    """Added to the first channels: a convolution alone hardly knows where it is."""
    down: tuple[tuple[Block, ...], ...]
    """The blocks of each resolution but the coarsest, finest first."""
    shrink: tuple[Layer, ...]
    middle: tuple[Block, ...]
    grow: tuple[Layer, ...]
    """To each resolution but the coarsest, finest first; so are `across` and `up`."""
    across: tuple[Layer, ...]
    up: tuple[tuple[Block, ...], ...]
    readout: Layer
    pixels: int = eqx.field(static=True)
    square: int = eqx.field(static=True)

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        told = self._told(code)
        return self._drawn(jnp.broadcast_to(told, (len(inputs), len(told))), inputs, edit)

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        # The images of all tasks side by side: with a task axis the products would be many small ones.
        told = jnp.repeat(self._told(codes), inputs.shape[1], axis=0)
        outputs, _ = self._drawn(told, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def _told(self, code: Float[Array, "*task code"]) -> Float[Array, "*task condition"]:
        # Of a mean over many words each has a small share: all codes are made equally long.
        return normed(code) @ self.of_code.weight + self.of_code.bias

    def _drawn(
        self, told: Float[Array, "image condition"], inputs: Float[Array, "image feature"], edit: Edit
    ) -> tuple[Float[Array, "image output"], Trace]:
        """One image for each row, by what it is told of its task."""
        told = jax.nn.silu(told + waves(inputs[:, -1]) @ self.of_time)
        sites: Trace = {}

        def passed(blocks: tuple[Block, ...], stage: str, images: Images) -> Images:
            for block in blocks:
                images = block(images, told)
                number = 1 + sum(site.startswith(stage) for site in sites)
                site = f"{stage} {number}" if stage != "middle" or len(blocks) > 1 else stage
                mean = jnp.mean(images, axis=(1, 2))
                sites[site] = edit(site, mean)
                if edit is not unedited:
                    images = images + (sites[site] - mean)[:, None, None]
            return images

        images = inputs[:, :-1].reshape(-1, self.pixels, self.pixels, COLOURS)
        images = convolved(coarser(images, self.square), self.of_image)
        images = images + self.places.reshape(images.shape[1:])
        kept: list[Images] = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            kept.append(passed(blocks, "down", images))
            images = mixed(coarser(kept[-1], 2), shrink)
        images = passed(self.middle, "middle", images)
        for level in reversed(range(len(self.up))):
            images = finer(mixed(images, self.grow[level]), 2) + mixed(kept[level], self.across[level])
            images = passed(self.up[level], "up", images)
        outputs = finer(convolved(jax.nn.silu(normed(images)), self.readout), self.square)
        image = outputs.reshape(len(inputs), -1)
        return velocity(image, inputs[:, :-1], inputs[:, -1]), sites


class UNet(Model):
    """`levels` resolutions, each with half the rows and twice the channels of the one before; `blocks` on each side.

    For families of square colour images (inputs: the pixels and a time; outputs: as many pixels).
    """

    kind: Literal["unet"] = "unet"
    width: PositiveInt = 32
    """Channels of the finest resolution."""
    levels: PositiveInt = 2
    """Resolutions."""
    blocks: PositiveInt = 1
    """Blocks of each resolution on the way down, and as many on the way up."""
    square: PositiveInt = 2
    """Rows and columns of the squares of pixels that are one position of the finest resolution."""
    condition: PositiveInt = 128
    """Numbers by which code and time are told to every block."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        self._pixels(family.input_size, family.output_size)

    def _pixels(self, input_size: int, output_size: int) -> int:
        """Rows of the images that inputs of this size hold."""
        pixels = math.isqrt(output_size // COLOURS)
        if (input_size, output_size) != (COLOURS * pixels**2 + 1, COLOURS * pixels**2):
            raise BadInput(
                f"The U-Net is for square images of {COLOURS} colours and a time; the family has {input_size} inputs "
                f"and {output_size} outputs.",
                fix="family=scenes, or another model",
            )
        unit = self.square * 2 ** (self.levels - 1)
        if pixels % unit:
            raise BadInput(
                f"The U-Net halves squares of {self.square} pixels {self.levels - 1} times, so the rows of an image must be "
                f"a multiple of {unit}; they are {pixels}.",
                fix="fewer levels, or a smaller square",
            )
        return pixels

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> UNetNetwork:
        pixels = self._pixels(input_size, output_size)
        keys = iter(jax.random.split(key, 5 + (2 * self.levels - 1) * self.blocks + 3 * (self.levels - 1)))
        channels = [self.width * 2**level for level in range(self.levels)]
        pairs = list(itertools.pairwise(channels))

        def blocks(width: int) -> tuple[Block, ...]:
            return tuple(Block.draw(width, self.condition, next(keys)) for _ in range(self.blocks))

        inside = COLOURS * self.square**2
        return UNetNetwork(
            of_code=draw_layer(code_size, self.condition, next(keys)),
            of_time=draw_layer(2 * WAVES, self.condition, next(keys)).weight,
            of_image=draw_convolution(inside, self.width, next(keys)),
            places=0.1 * jax.random.normal(next(keys), ((pixels // self.square) ** 2, self.width)),
            down=tuple(blocks(fine) for fine, _ in pairs),
            shrink=tuple(draw_layer(4 * fine, coarse, next(keys)) for fine, coarse in pairs),
            middle=blocks(channels[-1]),
            grow=tuple(draw_layer(coarse, 4 * fine, next(keys)) for fine, coarse in pairs),
            across=tuple(draw_layer(fine, fine, next(keys)) for fine, _ in pairs),
            up=tuple(blocks(fine) for fine, _ in pairs),
            readout=draw_convolution(self.width, inside, next(keys)),
            pixels=pixels,
            square=self.square,
        )
