"""Confidence intervals over replicates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special  # scipy.stats would do, but takes half a second to import

from recombine.errors import BadInput

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], npt.ArrayLike]
"""Maps samples of shape (samples, n) or (samples, n, columns) to one number for each sample."""

LEVEL = 0.95
MOST_UNDEFINED = 0.05


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it."""

    estimate: float
    low: float
    high: float
    replicates: int
    level: float
    method: str


def mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    """The mean and its standard error over the last axis."""
    mean = values.mean(-1)
    error = values.std(-1, ddof=1) / math.sqrt(values.shape[-1])
    # The mean of equal values is off by a rounding, which would make a false, tiny error of it.
    equal = np.ptp(values, axis=-1) == 0
    return np.where(equal, values[..., 0], mean), np.where(equal, 0.0, error)


def t_bounds(
    mean: npt.ArrayLike, error: npt.ArrayLike, replicates: npt.ArrayLike, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """The ends of the t interval of a mean with a given standard error. Arrays broadcast."""
    half = special.stdtrit(np.asarray(replicates) - 1, (1 + level) / 2) * np.asarray(error)
    return np.asarray(mean - half), np.asarray(mean + half)


def t_interval(values: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """The t interval of the mean of `values`, one for each replicate."""
    sample = _checked(values, level)
    if sample.ndim != 1:
        raise BadInput(
            f"A t interval needs one value for each replicate, but the values have shape {sample.shape}.",
            fix="average within each replicate first",
        )
    mean, error = mean_and_error(sample)
    low, high = t_bounds(mean, error, len(sample), level)
    return Interval(float(mean), float(low), float(high), len(sample), level, "t")


def bootstrap_interval(
    values: npt.ArrayLike, statistic: Statistic, level: float = LEVEL, seed: int = 0, resamples: int = 5000
) -> Interval:
    """A bootstrap interval of a statistic that is not a mean: a median, a slope, a ratio of sums.

    `values` has a number, or a row of numbers such as (x, y), for each replicate; replicates are resampled
    whole. `statistic` is called on many samples at once, e.g. `lambda samples: np.median(samples, axis=1)`.

    The method is the expanded percentile interval (Hesterberg 2015): percentiles further out than the nominal
    ones, by as much as a t interval with n - 1 degrees of freedom is wider than a normal one that divides by n.
    Simulated coverage at .95: medians and slopes .94 to .97 from 8 replicates on; a ratio of sums .93 at 12 and
    .945 from 20 on; BCa was lower at 8 to 12 (.87 to .93). Measures of spread are not covered (a standard
    deviation of 12 normal values: .85).
    """
    sample = _checked(values, level)
    count = len(sample)
    estimate = float(_evaluated(statistic, sample[None])[0])
    if not math.isfinite(estimate):
        raise BadInput(f"The statistic of the {count} values is {estimate}, not a finite number.")
    drawn = np.random.default_rng(seed).integers(count, size=(resamples, count))
    found = _evaluated(statistic, sample[drawn])
    # A slope has no value where all replicates drawn are the same one. Rare is harmless, often is not.
    defined = found[np.isfinite(found)]
    if len(defined) < (1 - MOST_UNDEFINED) * resamples:
        raise BadInput(
            f"The statistic is not finite in {resamples - len(defined)} of {resamples} resamples.",
            fix="use more replicates, or a statistic that is defined when replicates are repeated",
        )
    tail = special.ndtr(math.sqrt(count / (count - 1)) * special.stdtrit(count - 1, (1 - level) / 2))
    low, high = np.quantile(defined, [tail, 1 - tail], method="weibull")
    return Interval(estimate, float(low), float(high), count, level, "bootstrap")


def _evaluated(statistic: Statistic, samples: Floats) -> Floats:
    """The statistic of each sample."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.asarray(statistic(samples), dtype=float)
    if found.shape != (len(samples),):
        raise BadInput(
            f"The statistic turned samples of shape {samples.shape} into an array of shape {found.shape}.",
            fix="it must give one number for each sample, e.g. lambda samples: np.median(samples, axis=1)",
        )
    return found


def _checked(values: npt.ArrayLike, level: float) -> Floats:
    """The values as an array with replicates first, or an error that says what is wrong."""
    sample = np.asarray(values, dtype=float)
    count = len(sample) if sample.ndim else 0
    if count < 2:
        raise BadInput(
            f"An interval needs at least 2 replicates, got {count}.",
            fix="run more replicates, 12 for a verdict",
        )
    if not np.isfinite(sample).all():
        bad = int((~np.isfinite(sample)).reshape(count, -1).any(1).sum())
        raise BadInput(
            f"{bad} of {count} replicates are not finite.", fix="leave failed runs out, and say how many"
        )
    if not 0 < level < 1:
        raise BadInput(f"The level of an interval lies between 0 and 1, got {level}.", fix="0.95 is usual")
    return sample
