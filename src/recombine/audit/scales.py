"""What the values of a score mean: their worst and best value, the direction, and the level of chance."""

from __future__ import annotations

import dataclasses
import math

from recombine.errors import BadInput

EXAMPLE = "write the lowest and the highest possible score: --scale 0,100"


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale of a score.

    Without `low` and `high` the score can only be compared with itself: an audit says which combinations are worse,
    but not whether a score is good.
    """

    low: float | None = None
    """The lowest possible value; None if it is unknown."""
    high: float | None = None
    lower_is_better: bool = False
    """Whether low values are good, as for errors, losses and distances."""
    chance: float | None = None
    """The score of guessing; None if it is the worst value."""
    percent: bool = False
    """Whether the values were written as percentages."""

    def __post_init__(self) -> None:
        """Check the ends, and that chance lies between them."""
        if (self.low is None) != (self.high is None):
            raise BadInput("A scale has two ends.", fix=EXAMPLE)
        if self.low is not None and self.high is not None:
            if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
                raise BadInput(f"The scale {self.low:g},{self.high:g} does not ascend.", fix=EXAMPLE)
            if self.chance is not None and not self.low <= self.chance <= self.high:
                raise BadInput(
                    f"Chance is {self.chance:g}, which is not on the scale from {self.low:g} to {self.high:g}.",
                    fix="give chance in the unit of the score, for example --chance 0.1",
                )
            if self.chance is not None and self.chance == self.best:
                raise BadInput(f"Chance is {self.chance:g}, the best score.", fix="give the score of guessing")

    @property
    def known(self) -> bool:
        """Whether the worst and the best value are known."""
        return self.low is not None

    @property
    def sign(self) -> float:
        """1 if high values are good, -1 if low ones are."""
        return -1.0 if self.lower_is_better else 1.0

    @property
    def worst(self) -> float:
        """The worst possible value; NaN if it is unknown."""
        return math.nan if self.low is None or self.high is None else self.high if self.lower_is_better else self.low

    @property
    def best(self) -> float:
        """The best possible value; NaN if it is unknown."""
        return math.nan if self.low is None or self.high is None else self.low if self.lower_is_better else self.high

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest possible value; 0 and 1 if they are unknown."""
        return (0.0, 1.0) if self.low is None or self.high is None else (self.low, self.high)


UNKNOWN = Scale()
SHARE = Scale(0.0, 1.0)
PERCENT = (0.0, 100.0)


def parse_scale(given: str | None) -> tuple[float, float] | None:
    """A scale that is written as `0,100`."""
    if given is None:
        return None
    pieces = given.split(",")
    try:
        low, high = (float(piece) for piece in pieces)
    except ValueError:
        raise BadInput(f"The scale {given[:40]!r} is not two numbers.", fix=EXAMPLE) from None
    return low, high
