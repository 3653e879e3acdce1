"""A random list whose length grows with the space: constant, linear or quadratic in the number of constituents."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import PositiveFloat

from recombine.spaces.base import Space
from recombine.supports.listed.kinds import RandomList


class BySize(RandomList):
    """`factor` times 1, M, M*K or M^2 combinations, for M constituents and up to K of them in a combination."""

    kind: Literal["by-size"] = "by-size"
    rule: Literal["constant", "linear", "linear-in-product", "quadratic"] = "linear"
    """What `factor` is multiplied by: 1, M, M*K or M^2."""
    factor: PositiveFloat = 2.0
    """The number of combinations per unit of the rule; the product is rounded."""

    def length(self, space: Space) -> int:
        units = {
            "constant": 1,
            "linear": space.width,
            "linear-in-product": space.width * space.slots,
            "quadratic": space.width**2,
        }
        # Through text, so that 0.1 means one tenth.
        return round(Fraction(str(self.factor)) * units[self.rule])
