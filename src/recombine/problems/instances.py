"""Instances of a problem, with their best answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Instances:
    """Questions with their best answers, one row per instance."""

    questions: Float[np.ndarray, "instance question"]
    answers: Float[np.ndarray, "instance answer"]
    costs: Float[np.ndarray, " instance"]
    """The cost of each best answer; negative values where the problem maximises."""
    numbers: Int[np.ndarray, " instance"]
    """The index of each instance among the draws of the seed; draws without an answer are missing."""
    dropped: int
    """The number of draws that were left out because the solver found no answer."""

    def __len__(self) -> int:
        return len(self.questions)


def together(parts: Sequence[Instances]) -> Instances:
    """Join instances that were drawn in parts."""
    columns = ("questions", "answers", "costs", "numbers")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    return Instances(**joined, dropped=sum(part.dropped for part in parts))
