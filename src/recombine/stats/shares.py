"""The interval of a share of right answers, where answers in one group are not independent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput
from recombine.stats.columns import codes, numbers
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.prediction import wilson


def clustered_share(values: npt.ArrayLike, group: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Compute Wilson's interval of a share, for the effective number of independent answers.

    The effective number follows from how much groups differ. It is at most the number of answers. Where all answers are
    equal, it is the number of groups.

    Args:
        values: 0 or 1 for each answer.
        group: The group of each answer, e.g. its text.
        level: The level of the interval.

    Returns:
        The share with its interval.
    """
    (outcome,) = numbers(1, values=values)
    if not np.isin(outcome, (0, 1)).all():
        raise BadInput("A share needs values of 0 or 1.", fix="give 1 for each right answer and 0 for each wrong one")
    grouped, groups = codes(group, len(outcome))
    share, count = float(outcome.mean()), len(outcome)
    effective = count
    if len(groups) < count:
        effective = len(groups)
        if 0 < share < 1 and len(groups) > 1:
            excess = np.bincount(grouped, weights=outcome - share)
            variance = len(groups) / (len(groups) - 1) * float((excess**2).sum()) / count**2
            effective = int(min(count, share * (1 - share) / variance)) if variance > 0 else count
    low, high = wilson(share, max(effective, 1), level)
    return Interval(share, low, high, len(groups), level, "Wilson over texts")
