"""Optimisation problems with hard constraints, whose answers a network writes as text.

`Knapsack` and `PowerFlow` draw instances, solve them, check the constraints of any answer and repair answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.problems.base import (
        Instances as Instances,
        Problem as Problem,
        Repaired as Repaired,
        Texts as Texts,
        Violations as Violations,
        together as together,
    )
    from recombine.problems.checking import Check as Check, ConstraintType as ConstraintType
    from recombine.problems.knapsack import Knapsack as Knapsack
    from recombine.problems.power_flow import PowerFlow as PowerFlow
