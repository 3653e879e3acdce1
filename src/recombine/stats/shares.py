"""The interval of a share of right answers, where some of them may belong together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recombine.errors import BadInput
from recombine.stats.columns import codes, numbers
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.prediction import wilson


def clustered_share(values: npt.ArrayLike, group: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Wilson's interval of the mean of zeros and ones, for as many independent answers as those of the groups are worth.

    That number comes from how much groups differ: it is never more than there are answers, and where all answers are
    the same it is the number of groups.
    """
    (outcome,) = numbers(1, values=values)
    if not np.isin(outcome, (0, 1)).all():
        raise BadInput("A share is of zeros and ones.", fix="give whether each answer is right")
    grouped, groups = codes(group, len(outcome))
    share, count = float(outcome.mean()), len(outcome)
    worth = count
    if len(groups) < count:
        worth = len(groups)
        if 0 < share < 1 and len(groups) > 1:
            surplus = np.bincount(grouped, weights=outcome - share)
            variance = len(groups) / (len(groups) - 1) * float((surplus**2).sum()) / count**2
            worth = int(min(count, share * (1 - share) / variance)) if variance > 0 else count
    low, high = wilson(share, max(worth, 1), level)
    return Interval(share, low, high, len(groups), level, "Wilson over texts")
