"""An autoencoder whose bottleneck is slots: each slot paints an image and a mask, and the masks compete for pixels."""

from __future__ import annotations

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
from recombine.models.layers import Linear, depth_to_space
from recombine.models.slot_attention import PATCH, ImageEncoder, SlotAttentionLayer, Slots, image_shape


class SlotAutoencoderNetwork(Network):
    """An encoder, slots, and a decoder that sees one slot and one position at a time (spatial broadcast). Site: `slots`."""

    encoder: ImageEncoder
    layer: SlotAttentionLayer
    of_code: Float[Array, "code unit"]
    of_slot: Linear
    places: Float[Array, "position unit"]
    hidden: Linear
    readout: Linear
    channels: int = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self._paint(jnp.broadcast_to(code @ self.of_code, (len(inputs), self.of_code.shape[1])), inputs, edit)

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        # The images of all tasks are one batch: with a task axis there would be many small products.
        of_code = jnp.repeat(codes @ self.of_code, inputs.shape[1], axis=0)
        outputs, _ = self._paint(of_code, inputs.reshape(-1, inputs.shape[-1]), unedited)
        return outputs.reshape(*inputs.shape[:2], -1)

    def masks(self, code: Code, inputs: Inputs) -> Float[Array, "sample slot pixel"]:
        """The share of each pixel that each slot paints. Shares add up to one."""
        slots, _ = self.layer(self.encoder(inputs))
        return self._decode(jnp.broadcast_to(code @ self.of_code, (len(inputs), self.of_code.shape[1])), slots)[1]

    def _paint(self, of_code: Float[Array, "sample unit"], inputs: Inputs, edit: Edit) -> Traced:
        slots, _ = self.layer(self.encoder(inputs))
        flat = edit("slots", slots.reshape(len(slots), -1))
        images, masks = self._decode(of_code, flat.reshape(slots.shape))
        return jnp.sum(masks[..., None] * images, axis=1).reshape(len(inputs), -1), {"slots": flat}

    def _decode(
        self, of_code: Float[Array, "sample unit"], slots: Slots
    ) -> tuple[Float[Array, "sample slot pixel channel"], Float[Array, "sample slot pixel"]]:
        """The image and the mask of each slot."""
        seen = (self.of_slot(slots) + of_code[:, None])[:, :, None] + self.places
        patches = self.readout(jax.nn.relu(self.hidden(jax.nn.relu(seen))))
        side = self.encoder.pixels // PATCH
        pixels = depth_to_space(patches.reshape(-1, side, side, patches.shape[-1]), PATCH)
        pixels = pixels.reshape(*slots.shape[:2], -1, self.channels + 1)
        return pixels[..., :-1], jax.nn.softmax(pixels[..., -1], axis=1)


class SlotAutoencoder(Model):
    """Restores an image from `slots` vectors of `width` numbers; the masks of the slots divide the scene.

    For families whose targets are square images like their inputs.
    """

    kind: Literal["slot-autoencoder"] = "slot-autoencoder"
    slots: PositiveInt = 5
    """Number of slots."""
    width: PositiveInt = 16
    """Numbers of each slot."""
    channels: PositiveInt = 32
    """Channels of the encoder."""
    rounds: PositiveInt = 3
    """Iterations of attention."""
    hidden: PositiveInt = 48
    """Units of the decoder's hidden layers."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        self._shape(family.input_size, family.output_size)

    def _shape(self, input_size: int, output_size: int) -> tuple[int, int]:
        if input_size != output_size:
            raise BadInput(
                f"The slot autoencoder restores its input; the family has {input_size} inputs and {output_size} outputs.",
                fix="family=silhouettes, or model=slot-attention",
            )
        return image_shape(input_size, self.kind)

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> SlotAutoencoderNetwork:
        pixels, channels = self._shape(input_size, output_size)
        by_encoder, by_layer, by_code, by_slot, by_places, by_hidden, by_readout = jax.random.split(key, 7)
        return SlotAutoencoderNetwork(
            ImageEncoder.draw(pixels, channels, self.channels, by_encoder),
            SlotAttentionLayer.draw(self.slots, self.width, self.channels, self.rounds, by_layer),
            Linear.draw(code_size, self.hidden, by_code).weight,
            Linear.draw(self.width, self.hidden, by_slot),
            jax.random.normal(by_places, ((pixels // PATCH) ** 2, self.hidden)),
            Linear.draw(self.hidden, self.hidden, by_hidden),
            Linear.draw(self.hidden, PATCH**2 * (channels + 1), by_readout),
            channels,
        )
