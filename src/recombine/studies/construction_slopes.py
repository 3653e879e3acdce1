"""How errors and widths grow with a size, in each replicate of the study `construction`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from recombine.stats.threshold import Reached, censored_slope


def log_slope(
    sizes: Sequence[int], values: Float[np.ndarray, "size replicate"]
) -> Float[np.ndarray, " replicate"]:
    """The slope of log value on log size in each replicate, by least squares; not a number where one is missing."""
    place = np.log(sizes) - np.mean(np.log(sizes))
    return place @ np.log(values) / (place @ place)


def growth(smallest: Mapping[int, list[Reached | None]]) -> Float[np.ndarray, " replicate"]:
    """The slope of log smallest width on log number of combinations in each replicate.

    A width that lies beyond those tried is censored, not dropped. Not a number where a run failed, or where fewer than
    three numbers have a width within those tried: a line through less says nothing.
    """
    place = np.log(list(smallest))
    slopes = []
    for found in zip(*smallest.values(), strict=True):
        known = [one for one in found if one is not None]
        if len(known) < len(found) or sum(one.censored == "no" for one in known) < 3:
            slopes.append(math.nan)
            continue
        width = np.log([one.size for one in known])
        slopes.append(censored_slope(place, width, [one.censored for one in known]).slope.estimate)
    return np.array(slopes)
