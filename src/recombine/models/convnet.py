"""A small convolutional network for grey images."""

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
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.layers import Images, Linear, convolve, draw_convolution, space_to_depth


def max_pool(images: Images) -> Images:
    """Max pooling over squares of 2 x 2 positions."""
    squares = space_to_depth(images, 2)
    return jnp.max(squares.reshape(*squares.shape[:3], 4, -1), axis=3)


class ConvnetNetwork(Network):
    """Convolutions, each followed by max pooling, then a dense layer and an affine readout.

    The site of a convolution is the mean of its output over positions; an edit of the mean is added at every position.
    """

    convolutions: tuple[Linear, ...]
    of_code: Float[Array, "code unit"]
    dense: Linear
    readout: Linear
    pixels: int = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self._forward(code @ self.of_code, inputs, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The images of all tasks are one batch: with a task axis there would be many small products.
        of_code = jnp.repeat(codes @ self.of_code, inputs.shape[1], axis=0)
        outputs, _ = self._forward(of_code, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def _forward(self, of_code: Float[Array, "*sample unit"], inputs: Inputs, edit: Edit) -> Traced:
        sites: dict[str, Array] = {}
        images = inputs.reshape(-1, self.pixels, self.pixels, 1)
        for number, layer in enumerate(self.convolutions, start=1):
            images = jax.nn.relu(convolve(images, layer))
            site, mean = f"convolution {number}", jnp.mean(images, axis=(1, 2))
            sites[site] = edit(site, mean)
            if edit is not unedited:
                images = images + (sites[site] - mean)[:, None, None]
            images = max_pool(images)
        flat = images.reshape(len(images), -1)
        hidden = edit("dense", jax.nn.relu(self.dense(flat) + of_code))
        sites["dense"] = hidden
        return self.readout(hidden), sites


class Convnet(Model):
    """`levels` convolutions of 3 x 3, each with half the rows and twice the channels of the one before, and a dense layer.

    For families whose inputs are square grey images. The code enters at the dense layer.
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
        """Rows of an image, from the size of an input."""
        pixels = math.isqrt(input_size)
        if pixels**2 != input_size:
            raise BadInput(
                f"The convolutional network is for square grey images; the family has {input_size} inputs.",
                fix="family=sprites, or another model",
            )
        if pixels % 2**self.levels:
            raise BadInput(
                f"The convolutional network halves the rows of an image {self.levels} times, so they must be a multiple of "
                f"{2**self.levels}; they are {pixels}.",
                fix="fewer levels",
            )
        return pixels

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> ConvnetNetwork:
        pixels = self._pixels(input_size)
        by_code, by_dense, by_readout, *keys = jax.random.split(key, 3 + self.levels)
        units = [self.width * 2**level for level in range(self.levels)]
        features = (pixels // 2**self.levels) ** 2 * units[-1]
        return ConvnetNetwork(
            convolutions=tuple(
                draw_convolution(before, after, layer_key)
                for before, after, layer_key in zip([1, *units[:-1]], units, keys, strict=True)
            ),
            of_code=Linear.draw(code_size, self.hidden, by_code).weight,
            dense=Linear.draw(features, self.hidden, by_dense),
            readout=Linear.draw(self.hidden, output_size, by_readout),
            pixels=pixels,
        )
