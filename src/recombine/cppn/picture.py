"""Pictures: the places at which a CPPN is asked, and its outputs as colours."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

CHANNELS = ("hue", "saturation", "brightness")


def places(side: int) -> Float[np.ndarray, "place 4"]:
    """The inputs y, x, d and bias at every pixel of a square picture over [-1, 1]^2, row by row.

    Args:
        side: Pixels of a side.
    """
    along = np.linspace(-1, 1, side)
    y, x = (values.ravel() for values in np.meshgrid(along, along, indexing="ij"))
    return np.stack([y, x, 1.4 * np.hypot(x, y), np.ones_like(x)], axis=1)


def channels(outputs: Float[np.ndarray, "place output"]) -> Float[np.ndarray, "place 3"]:
    """Hue, saturation and brightness of outputs; with one output, hue and saturation are zero."""
    if outputs.shape[-1] == len(CHANNELS):
        return outputs
    return np.concatenate([np.zeros((*outputs.shape[:-1], 2), outputs.dtype), outputs], axis=-1)


def colours(outputs: Float[np.ndarray, "place output"]) -> Float[np.ndarray, "place 3"]:
    """Red, green and blue, from 0 to 1. The hue is a circle; saturation is clipped, brightness is its size, clipped."""
    hue, saturation, brightness = np.moveaxis(channels(np.asarray(outputs, float)), -1, 0)
    saturation, brightness = np.clip(saturation, 0, 1), np.clip(np.abs(brightness), 0, 1)
    sextant = (hue % 1)[..., None] * 6
    part = (np.array([5.0, 3.0, 1.0]) + sextant) % 6
    shade = np.clip(np.minimum(part, 4 - part), 0, 1)
    return brightness[..., None] * (1 - saturation[..., None] * shade)
