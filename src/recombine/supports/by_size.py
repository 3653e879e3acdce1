"""A random list whose length grows with the space: constant, linear or quadratic in the number of constituents."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import PositiveFloat

from recombine.spaces.base import Space
from recombine.supports.random_list import RandomList


class BySize(RandomList):
    """`factor` times 1, M, M*K or M^2 combinations: M constituents, of which up to K make a combination."""

    kind: Literal["by-size"] = "by-size"
    rule: Literal["constant", "linear", "linear-in-product", "quadratic"] = "linear"
    """What `factor` is multiplied with: 1, M, M*K or M^2."""
    factor: PositiveFloat = 2.0
    """Combinations for each unit of the rule; their number is rounded."""

    def length(self, space: Space) -> int:
        units = {
            "constant": 1,
            "linear": space.width,
            "linear-in-product": space.width * space.slots,
            "quadratic": space.width**2,
        }
        # By way of text, so that 0.1 means a tenth.
        return round(Fraction(str(self.factor)) * units[self.rule])
