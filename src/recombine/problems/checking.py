"""The share of constraints that answers satisfy: by type, in total and all at once, for any tolerances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

Values = Any
"""An array of NumPy, or of JAX inside compiled code, where `xp` is `jax.numpy`."""

Questions = Float[np.ndarray, "n question"]
Answers = Float[np.ndarray, "n answer"]
QuestionValues = Float[Values, "n question"]
AnswerValues = Float[Values, "n answer"]


@dataclass(frozen=True)
class ConstraintType:
    """Constraints of one type. Every instance has the same number of them."""

    name: str
    number: int
    easy: bool
    """Whether they are the same for every instance, so that one fixed answer can satisfy them all."""


@dataclass(frozen=True)
class Check:
    """The rates of satisfied constraints, one number per tolerance, and the gap to the optimum."""

    tolerances: Float[np.ndarray, " tolerance"]
    by_type: dict[str, Float[np.ndarray, " tolerance"]]
    """The share of the constraints of a type that hold, over all instances."""
    total: Float[np.ndarray, " tolerance"]
    """The share of all constraints that hold. It depends on the number of each type, including easy ones."""
    every: Float[np.ndarray, " tolerance"]
    """The share of instances in which every constraint holds."""
    gap: float
    """The mean gap to the optimum, as a share of it, over answers that are numbers throughout, feasible or not. It can be
    negative, because an infeasible answer can be better than the optimum."""
    feasible_gap: Float[np.ndarray, " tolerance"]
    """The same over answers that satisfy every constraint; NaN if there is none."""
    malformed: float
    """The share of answers that are not numbers throughout."""
    numbers: dict[str, int]
    """The number of constraints of each type in an instance."""

    def pooled(self, names: Iterable[str]) -> Float[np.ndarray, " tolerance"]:
        """The share of the constraints of several types, taken together, that hold."""
        chosen = list(names)
        weights = [self.numbers[name] for name in chosen]
        return np.average([self.by_type[name] for name in chosen], axis=0, weights=weights)
