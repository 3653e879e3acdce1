"""How many constraints proposed answers satisfy: by type, altogether and all at once, for any tolerances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput

Values = Any
"""Of NumPy, or of JAX where something is computed inside a compiled program: then `xp` is `jax.numpy`."""


@dataclass(frozen=True)
class ConstraintType:
    """Constraints of one type, of which every instance has the same number."""

    name: str
    number: int
    easy: bool
    """Whether they ask the same of every instance, so that one fixed answer can satisfy them all."""


@dataclass(frozen=True)
class Check:
    """What came of holding answers against their constraints. Rates have one number for each tolerance."""

    tolerances: Float[np.ndarray, " tolerance"]
    by_type: dict[str, Float[np.ndarray, " tolerance"]]
    """The share of the constraints of a type that hold, over all instances."""
    whole_by_type: dict[str, Float[np.ndarray, " tolerance"]]
    """The share of instances in which all constraints of a type hold."""
    total: Float[np.ndarray, " tolerance"]
    """The share of all constraints that hold. It depends on how many there are of each type, easy ones included."""
    every: Float[np.ndarray, " tolerance"]
    """The share of instances in which every constraint holds."""
    gap: float
    """The mean gap to the optimum of the answers that are numbers throughout, as a share of it, feasible or not. An
    infeasible answer can be better than the optimum, so it can be negative."""
    feasible_gap: Float[np.ndarray, " tolerance"]
    """The same of the answers for which every constraint holds; NaN where there is none."""
    malformed: float
    """The share of answers that are not numbers throughout."""
    numbers: dict[str, int]
    """How many constraints of each type an instance has."""

    def pooled(self, names: Iterable[str]) -> Float[np.ndarray, " tolerance"]:
        """The share of the constraints of several types together that hold."""
        chosen = list(names)
        weights = [self.numbers[name] for name in chosen]
        return np.average([self.by_type[name] for name in chosen], axis=0, weights=weights)


def check(
    violations: Mapping[str, Float[np.ndarray, "instance _"]],
    gaps: Float[np.ndarray, " instance"],
    malformed: np.ndarray,
    tolerances: Sequence[float] | np.ndarray,
) -> Check:
    """Rates from the violations of each constraint: it holds where its violation is at most the tolerance."""
    limits = np.asarray(tolerances, dtype=float)
    if limits.ndim != 1 or not len(limits) or not np.all(limits >= 0):
        raise BadInput(f"Tolerances must be a list of numbers of at least 0, got {tolerances}.")
    # Whatever is not a number satisfies nothing, however large the tolerance.
    holds = {
        name: (found <= limits[:, None, None]) & np.isfinite(found) for name, found in violations.items()
    }
    each = np.concatenate(list(holds.values()), axis=2)
    every = np.asarray(each.all(axis=2))
    return Check(
        tolerances=limits,
        by_type={name: held.mean(axis=(1, 2)) for name, held in holds.items()},
        whole_by_type={name: held.all(axis=2).mean(axis=1) for name, held in holds.items()},
        total=each.mean(axis=(1, 2)),
        every=every.mean(axis=1),
        gap=_mean(gaps, ~malformed),
        feasible_gap=np.array([_mean(gaps, feasible & ~malformed) for feasible in every]),
        malformed=float(malformed.mean()),
        numbers={name: found.shape[1] for name, found in violations.items()},
    )


def _mean(values: Float[np.ndarray, " instance"], which: np.ndarray) -> float:
    return float(values[which].mean()) if which.any() else float("nan")
