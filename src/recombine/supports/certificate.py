"""What can be said of a support before training: completeness, connection, usage, coverage, spectrum."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.sparse import csgraph

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.supports.base import Support
from recombine.supports.within import alike

EXACT_LIMIT = 200_000
"""Up to so many interactions are checked one by one; beyond that a sample is, and the answer says so."""

SAMPLES = 4000


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The share of t-way interactions of the space that occur in training."""

    strength: int
    share: float
    exact: bool
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Computed from the support alone. Equal to brute force where exact, an interval where sampled."""

    size: int
    space_size: int
    complete: bool
    """Every constituent occurs in training."""
    connected: bool
    """The graph of constituents that occur together is connected (over all constituents)."""
    balanced: bool
    """Constituents that can stand for each other (all modules; the values of a factor) are in equally many
    training combinations, or in one more."""
    groups: int
    """Number of connected groups of constituents; constituents that are never seen are groups of their own."""
    unseen: tuple[int, ...]
    """Constituents that never occur in training."""
    usage: tuple[float, ...]
    """The share of training tasks that hold each constituent."""
    coverage: tuple[Coverage, ...]
    spectrum: tuple[float, ...]
    """Eigenvalues of E[z z'], largest first, with z the indicator vector of a training combination."""

    def coverage_of(self, strength: int) -> Coverage:
        """The coverage at one strength."""
        for coverage in self.coverage:
            if coverage.strength == strength:
                return coverage
        raise KeyError(f"coverage of strength {strength} was not computed")


def _groups(moment: Float[np.ndarray, "width width"]) -> int:
    count, _ = csgraph.connected_components(sparse.csr_matrix(moment > 0), directed=False)
    return int(count)


def _balanced(space: Space, usage: Float[np.ndarray, " width"], size: int) -> bool:
    # Shares are rounded in their sixteenth digit, and one combination of a long list is in the seventh.
    return all(float(np.ptp(usage[parts])) <= 1 / size + 1e-12 for parts in alike(space))


def certify(support: Support, strengths: tuple[int, ...] = (1, 2, 3), seed: int = 0) -> Certificate:
    """The certificate of a support. Strengths that no combination can have are left out."""
    if any(strength < 1 for strength in strengths):
        raise BadInput(f"Coverage was asked for at strengths {strengths}.", fix="strengths begin at 1")
    moment = support.second_moment()
    usage = np.diag(moment)
    groups = _groups(moment)
    coverage = tuple(
        _coverage(support, moment, strength, seed)
        for strength in strengths
        if support.space.interactions(strength)
    )
    return Certificate(
        size=support.size,
        space_size=support.space.size,
        complete=bool((usage > 0).all()),
        connected=groups == 1,
        balanced=_balanced(support.space, usage, support.size),
        groups=groups,
        unseen=tuple(int(part) for part in np.nonzero(usage == 0)[0]),
        usage=tuple(float(share) for share in usage),
        coverage=coverage,
        spectrum=tuple(float(value) for value in np.linalg.eigvalsh(moment)[::-1]),
    )


def _coverage(
    support: Support, moment: Float[np.ndarray, "width width"], strength: int, seed: int
) -> Coverage:
    space = support.space
    if strength <= 2:
        # Parts and pairs stand in the second moment: exact, whatever the size of the space.
        corner = np.eye(space.width, dtype=bool) if strength == 1 else np.tri(space.width, k=-1, dtype=bool)
        share = float((moment > 0)[(space.second_moment() > 0) & corner].mean())
        return Coverage(strength, share, True, share, share)
    if space.interactions(strength) <= EXACT_LIMIT:
        share = float(support.covers(space.list_interactions(strength)).mean())
        return Coverage(strength, share, True, share, share)
    rng = np.random.default_rng([seed, strength])
    found = support.covers(space.sample_interactions(rng, strength, SAMPLES))
    from scipy import stats  # Takes half a second to import, and most certificates are exact.

    interval = stats.binomtest(int(found.sum()), SAMPLES).proportion_ci(method="wilson")
    return Coverage(strength, float(found.mean()), False, float(interval.low), float(interval.high))
