"""Instances of a problem, with their gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Instances:
    """What is asked, and the best answer to it: a row for each instance."""

    questions: Float[np.ndarray, "instance question"]
    answers: Float[np.ndarray, "instance answer"]
    costs: Float[np.ndarray, " instance"]
    """Of the best answer; what is to be as large as possible has its sign turned."""
    numbers: Int[np.ndarray, " instance"]
    """Which draws of the seed these are: those without an answer are missing."""
    dropped: int
    """How many draws were left out because the solver found no answer."""

    def __len__(self) -> int:
        return len(self.questions)


def together(parts: Sequence[Instances]) -> Instances:
    """Instances that were made in parts, as if they had been made at once."""
    columns = ("questions", "answers", "costs", "numbers")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    return Instances(**joined, dropped=sum(part.dropped for part in parts))
