"""Slot attention: positions of an image compete for a few vectors, which a question then reads one by one."""

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
from recombine.models.layers import EPSILON, Linear, convolve, draw_convolution, pointwise, rms_norm, space_to_depth

PATCH = 4
"""Rows and columns of the pixels of one position. The first convolution is twice as fine."""
SHARE = 1e-6
"""Added to the attention before it is divided by its sum over positions."""

Features = Float[Array, "image position channel"]
Slots = Float[Array, "image slot width"]


def image_shape(input_size: int, model: str) -> tuple[int, int]:
    """Rows and channels of a square image, grey or in colour. Raises BadInput for other inputs."""
    for channels in (1, 3):
        pixels = math.isqrt(input_size // channels)
        if channels * pixels**2 == input_size and pixels % PATCH == 0:
            return pixels, channels
    raise BadInput(
        f"The model {model!r} is for square images whose rows are a multiple of {PATCH}; the family has {input_size} inputs.",
        fix="family=objects or family=silhouettes, or another model",
    )


class ImageEncoder(eqx.Module):
    """Two convolutions, the second half as fine, a learned vector for each position, and a hidden layer at each position."""

    first: Linear
    merge: Linear
    second: Linear
    places: Float[Array, "position channel"]
    up: Linear
    down: Linear
    pixels: int = eqx.field(static=True)

    @staticmethod
    def draw(pixels: int, channels: int, width: int, key: Array) -> ImageEncoder:
        """Fresh weights, for images of `pixels` rows and `channels` channels."""
        by_first, by_merge, by_second, by_places, by_up, by_down = jax.random.split(key, 6)
        return ImageEncoder(
            draw_convolution(channels * (PATCH // 2) ** 2, width, by_first),
            Linear.draw(4 * width, width, by_merge),
            draw_convolution(width, width, by_second),
            0.1 * jax.random.normal(by_places, ((pixels // PATCH) ** 2, width)),
            Linear.draw(width, width, by_up),
            Linear.draw(width, width, by_down),
            pixels,
        )

    def __call__(self, inputs: Inputs) -> Features:
        images = space_to_depth(inputs.reshape(len(inputs), self.pixels, self.pixels, -1), PATCH // 2)
        images = space_to_depth(jax.nn.relu(convolve(images, self.first)), 2)
        images = jax.nn.relu(pointwise(images, self.merge))
        images = images + jax.nn.relu(convolve(images, self.second))
        features = images.reshape(len(inputs), -1, images.shape[-1])
        # What is the same everywhere is background. It covers most of an image and would drown the objects in a mean.
        features = features - jnp.mean(features, axis=1, keepdims=True)
        features = features * jax.lax.rsqrt(jnp.mean(features**2, axis=(1, 2), keepdims=True) + EPSILON)
        return self.down(jax.nn.relu(self.up(features + self.places)))


class SlotAttentionLayer(eqx.Module):
    """Iterated attention in which slots compete for positions (Locatello et al. 2020, arXiv 2006.15055).

    The first slots are learned and not drawn at random, so that a network is a function of its input. With a single slot
    there is no competition: it gets the mean over positions, which is a pooled vector.
    """

    first: Float[Array, "slot width"]
    query: Linear
    key: Linear
    value: Linear
    gate: Linear
    candidate: Linear
    up: Linear
    down: Linear
    rounds: int = eqx.field(static=True)

    @staticmethod
    def draw(slots: int, width: int, channels: int, rounds: int, key: Array) -> SlotAttentionLayer:
        """Fresh weights, for positions with `channels` channels."""
        keys = jax.random.split(key, 8)
        return SlotAttentionLayer(
            jax.random.normal(keys[0], (slots, width)),
            Linear.draw(width, width, keys[1]),
            Linear.draw(channels, width, keys[2]),
            Linear.draw(channels, width, keys[3]),
            Linear.draw(2 * width, 2 * width, keys[4]),
            Linear.draw(2 * width, width, keys[5]),
            Linear.draw(width, 2 * width, keys[6]),
            Linear.draw(2 * width, width, keys[7]),
            rounds,
        )

    def __call__(self, features: Features) -> tuple[Slots, Float[Array, "image position slot"]]:
        """The slots, and how much of each position went to each slot in the last round."""
        keys, values = self.key(rms_norm(features)), self.value(features)
        slots = jnp.broadcast_to(self.first, (len(features), *self.first.shape))
        attention = jnp.zeros((*features.shape[:2], slots.shape[1]))
        for _ in range(self.rounds):
            logits = jnp.einsum("ipd,isd->ips", keys, self.query(rms_norm(slots))) / math.sqrt(keys.shape[-1])
            attention = jax.nn.softmax(logits, axis=-1)
            shares = (attention + SHARE) / jnp.sum(attention + SHARE, axis=1, keepdims=True)
            slots = self.updated(slots, jnp.einsum("ips,ipd->isd", shares, values))
        return slots, attention

    def updated(self, slots: Slots, found: Slots) -> Slots:
        """The slots after a gated recurrent unit and a residual hidden layer."""
        reset, keep = jnp.split(jax.nn.sigmoid(self.gate(jnp.concatenate([found, slots], axis=-1))), 2, axis=-1)
        candidate = jnp.tanh(self.candidate(jnp.concatenate([found, reset * slots], axis=-1)))
        slots = keep * slots + (1 - keep) * candidate
        return slots + self.down(jax.nn.relu(self.up(rms_norm(slots))))


class SlotAttentionNetwork(Network):
    """An encoder, slots, and a head that reads each slot with the question and keeps the largest value of each unit.

    The question scales and shifts the units with which a slot is read (FiLM).
    Sites: `slots` (side by side) and `answer`, the hidden layer before the readout.
    """

    encoder: ImageEncoder
    layer: SlotAttentionLayer
    of_code: Float[Array, "code unit"]
    of_slot: Linear
    hidden: Linear
    readout: Linear

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self._answer(jnp.broadcast_to(code @ self.of_code, (len(inputs), self.of_code.shape[1])), inputs, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The images of all tasks are one batch: with a task axis there would be many small products.
        asked = jnp.repeat(codes @ self.of_code, inputs.shape[1], axis=0)
        outputs, _ = self._answer(asked, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def attention(self, inputs: Inputs) -> Float[Array, "sample position slot"]:
        """How much of each position went to each slot."""
        return self.layer(self.encoder(inputs))[1]

    def _answer(self, asked: Float[Array, "sample unit"], inputs: Inputs, edit: Edit) -> Traced:
        slots, _ = self.layer(self.encoder(inputs))
        flat = edit("slots", slots.reshape(len(slots), -1))
        scale, shift = jnp.split(asked[:, None], 2, axis=-1)
        read = jax.nn.relu(self.of_slot(rms_norm(flat.reshape(slots.shape))) * (1 + scale) + shift)
        answer = edit("answer", jnp.max(jax.nn.relu(self.hidden(read)), axis=1))
        return self.readout(answer), {"slots": flat, "answer": answer}


class SlotAttention(Model):
    """`slots` vectors of `width` numbers read an image by slot attention; a small network answers from each of them.

    With slots=1 it is the control: the same network with one pooled vector.
    """

    kind: Literal["slot-attention"] = "slot-attention"
    slots: PositiveInt = 6
    """Number of slots. With one slot, its vector is the mean over positions."""
    width: PositiveInt = 16
    """Numbers of each slot."""
    channels: PositiveInt = 32
    """Channels of the encoder."""
    rounds: PositiveInt = 3
    """Iterations of attention."""
    hidden: PositiveInt = 64
    """Units of the hidden layers of the head."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        image_shape(family.input_size, self.kind)

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> SlotAttentionNetwork:
        by_encoder, by_layer, by_code, by_slot, by_hidden, by_readout = jax.random.split(key, 6)
        return SlotAttentionNetwork(
            ImageEncoder.draw(*image_shape(input_size, self.kind), self.channels, by_encoder),
            SlotAttentionLayer.draw(self.slots, self.width, self.channels, self.rounds, by_layer),
            Linear.draw(code_size, 2 * self.hidden, by_code).weight,
            Linear.draw(self.width, self.hidden, by_slot),
            Linear.draw(self.hidden, self.hidden, by_hidden),
            Linear.draw(self.hidden, output_size, by_readout),
        )
