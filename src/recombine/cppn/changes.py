"""Changed pictures: one part of a picture recoloured (alone or with its mirror image), moved or mirrored."""

from __future__ import annotations

from typing import Literal, cast, get_args

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from recombine.cppn.scores import axis_of, mirrored
from recombine.errors import BadInput

Change = Literal["recoloured", "both-recoloured", "moved", "mirrored"]
CHANGES: tuple[Change, ...] = get_args(Change)

Picture = Float[np.ndarray, "row column output"]

PART = 0.1
"""The share of the picture that its part should have."""
STEP = 0.2
"""The share of a side by which the part is moved."""
SHADE = 0.5
"""The brightness that a recoloured part loses or gains."""


def part(picture: Picture) -> Bool[np.ndarray, "row column"]:
    """One part of a picture: the connected bright or dark region whose size is nearest to a tenth of the picture.

    Args:
        picture: Outputs by row and column; the last one is the brightness.

    Returns:
        The pixels of the part. A picture without contrast raises `BadInput`.
    """
    shown = np.clip(np.abs(picture[..., -1]), 0, 1)
    if np.ptp(shown) == 0:
        raise BadInput("A picture of one brightness has no parts.", fix="use another genome")
    bright = shown > (shown.min() + shown.max()) / 2
    regions = []
    for some in (bright, ~bright):
        labels, number = cast("tuple[np.ndarray, int]", ndimage.label(some))
        regions += [labels == label for label in range(1, number + 1)]
    return min(regions, key=lambda region: abs(np.log(region.mean() / PART)))


def changed(picture: Picture, change: Change) -> Picture:
    """The picture with one part changed.

    Args:
        picture: Outputs by row and column; the last one is the brightness.
        change: `recoloured` makes a bright part darker and a dark one brighter; `both-recoloured` does so with the part and its
            mirror image, about the axis about which the picture is more symmetric, such as both eyes; `moved` shifts the part sideways; `mirrored`
            turns it over in its bounding box, about the axis that changes the picture more. What the part leaves is filled with
            the mean around it.
    """
    region = part(picture)
    if change in ("recoloured", "both-recoloured"):
        value = picture[..., -1]
        if change == "both-recoloured":
            mirror, _ = axis_of(np.clip(np.abs(value), 0, 1).reshape(-1, 1).astype(float))
            region = region | mirrored(region.reshape(-1, 1), mirror).reshape(region.shape)
        shown = np.clip(np.abs(value), 0, 1)
        towards = -SHADE if shown[region].mean() > shown[~region].mean() else SHADE
        shade = np.where(value < 0, -1, 1) * np.clip(shown + towards, 0, 1)
        return np.concatenate([picture[..., :-1], np.where(region, shade, value)[..., None]], axis=-1)
    if change == "moved":
        columns = np.flatnonzero(region.any(axis=0))
        step = max(1, round(STEP * region.shape[1]))
        # Towards the side with more room. What leaves the picture is cut off.
        left = columns[0] > region.shape[1] - 1 - columns[-1]
        return _placed(picture, region, *(_shifted(each, -step if left else step) for each in (region, picture)))
    (top, bottom), (first, last) = (
        (found[0], found[-1] + 1) for found in (np.flatnonzero(region.any(axis=a)) for a in (1, 0))
    )
    candidates = []
    for axis in (0, 1):
        mask, values = region.copy(), picture.copy()
        for each in (mask, values):
            each[top:bottom, first:last] = np.flip(each[top:bottom, first:last], axis=axis)
        candidates.append(_placed(picture, region, mask, values))
    return max(candidates, key=lambda candidate: float(((candidate - picture) ** 2).sum()))


def _shifted(values: np.ndarray, step: int) -> np.ndarray:
    moved = np.zeros_like(values)
    if step > 0:
        moved[:, step:] = values[:, :-step]
    else:
        moved[:, :step] = values[:, -step:]
    return moved


def _placed(picture: Picture, old: np.ndarray, new: np.ndarray, values: Picture) -> Picture:
    """The picture with its part taken out and put in again elsewhere."""
    around = ndimage.binary_dilation(old, iterations=2) & ~old
    empty = np.where(old[..., None], picture[around if around.any() else ~old].mean(axis=0), picture)
    return np.where(new[..., None], values, empty)
