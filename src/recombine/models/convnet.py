"""A small convolution net that sees grey images."""

from __future__ import annotations

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Edit, Model, Network, Trace, unedited
from recombine.models.convolution import Images, coarser, convolved, draw_convolution, draw_layer
from recombine.models.mlp import Layer


def halved(images: Images) -> Images:
    """Half the rows and columns: of each square of four positions the largest value of every channel."""
    squares = coarser(images, 2)
    return jnp.max(squares.reshape(*squares.shape[:3], 4, -1), axis=3)


class ConvnetNetwork(Network):
    """Convolutions, each followed by a halving of rows and columns, then a dense layer and an affine readout.

    The site of a convolution is the mean of its output over positions; what an edit changes of the mean is added at every
    position.
    """

    convolutions: tuple[Layer, ...]
    of_code: Float[Array, "code unit"]
    dense: Layer
    readout: Layer
    pixels: int = eqx.field(static=True)

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        return self._seen(code @ self.of_code, inputs, edit)

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        # The images of all tasks side by side: with a task axis the products would be many small ones.
        told = jnp.repeat(codes @ self.of_code, inputs.shape[1], axis=0)
        outputs, _ = self._seen(told, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def _seen(
        self, told: Float[Array, "*image unit"], inputs: Float[Array, "image feature"], edit: Edit
    ) -> tuple[Float[Array, "image output"], Trace]:
        sites: Trace = {}
        images = inputs.reshape(-1, self.pixels, self.pixels, 1)
        for number, layer in enumerate(self.convolutions, start=1):
            images = jax.nn.relu(convolved(images, layer))
            site, mean = f"convolution {number}", jnp.mean(images, axis=(1, 2))
            sites[site] = edit(site, mean)
            if edit is not unedited:
                images = images + (sites[site] - mean)[:, None, None]
            images = halved(images)
        flat = images.reshape(len(images), -1)
        hidden = edit("dense", jax.nn.relu(flat @ self.dense.weight + self.dense.bias + told))
        sites["dense"] = hidden
        return hidden @ self.readout.weight + self.readout.bias, sites


class Convnet(Model):
    """`levels` convolutions of 3 x 3, each with half the rows and twice the channels of the one before, and a dense layer.

    For families whose inputs are square grey images. A code is added to the dense layer.
    """

    kind: Literal["convnet"] = "convnet"
    width: PositiveInt = 12
    """Channels of the first convolution."""
    levels: PositiveInt = 3
    """Convolutions."""
    hidden: PositiveInt = 64
    """Units of the dense layer."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        self._pixels(family.input_size)

    def _pixels(self, input_size: int) -> int:
        """Rows of the images that inputs of this size hold."""
        pixels = math.isqrt(input_size)
        if pixels**2 != input_size:
            raise BadInput(
                f"The convolution net is for square grey images; the family has {input_size} inputs.",
                fix="family=sprites, or another model",
            )
        if pixels % 2**self.levels:
            raise BadInput(
                f"The convolution net halves the rows of an image {self.levels} times, so they must be a multiple of "
                f"{2**self.levels}; they are {pixels}.",
                fix="fewer levels",
            )
        return pixels

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> ConvnetNetwork:
        pixels = self._pixels(input_size)
        by_code, by_dense, by_readout, *keys = jax.random.split(key, 3 + self.levels)
        units = [self.width * 2**level for level in range(self.levels)]
        left = (pixels // 2**self.levels) ** 2 * units[-1]
        return ConvnetNetwork(
            convolutions=tuple(
                draw_convolution(before, number, one)
                for before, number, one in zip([1, *units[:-1]], units, keys, strict=True)
            ),
            of_code=draw_layer(code_size, self.hidden, by_code).weight,
            dense=draw_layer(left, self.hidden, by_dense),
            readout=draw_layer(self.hidden, output_size, by_readout),
            pixels=pixels,
        )
