"""Certificates: what is known about a support before training. Also what each kind of support promises."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.sparse import csgraph

from recombine import _html
from recombine._show import text_table
from recombine.errors import BadInput
from recombine.spaces.base import in_words
from recombine.spaces.subspace import interchangeable
from recombine.supports.base import Support

EXACT_LIMIT = 200_000
"""The most interactions that are checked one by one. Beyond it a sample is checked, and the result says so."""

SAMPLES = 4000


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The share of interactions of `strength` constituents that occur in training."""

    strength: int
    share: float
    exact: bool
    """Whether all interactions were checked. If not, the share is estimated from a sample."""
    low: float
    """The lower end of the 95 % interval; the share itself where it is exact."""
    high: float

    def __str__(self) -> str:
        digits = 1
        # More digits where rounding would show all or nothing.
        while digits < 6 and 0 < self.share < 1 and round(self.share * 100, digits) in (0.0, 100.0):
            digits += 1
        text = f"{self.share * 100:.{digits}f}".rstrip("0").rstrip(".") + " %"
        return text if self.exact else f"{text} ({self.low * 100:.1f} to {self.high * 100:.1f}, sampled)"


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What is known about a support before training, computed from its combinations alone.

    Coverage is exact where the interactions can be listed. Otherwise it is a sampled share with an interval.
    """

    size: int
    """The number of training combinations."""
    space_size: int
    """The number of combinations of the space."""
    complete: bool
    """Every constituent occurs in training."""
    connected: bool
    """The graph of constituents that occur together is connected, over all constituents."""
    balanced: bool
    """Interchangeable constituents (all modules; the values of one factor) occur in equally many training combinations,
    up to a difference of one."""
    groups: int
    """The number of connected groups of constituents. Each constituent that never occurs is a group by itself."""
    unseen: tuple[int, ...]
    """Constituents that never occur in training."""
    usage: tuple[float, ...]
    """The share of training tasks that contain each constituent."""
    coverage: tuple[Coverage, ...]
    """The share of interactions that occur in training, for each strength."""
    spectrum: tuple[float, ...]
    """Eigenvalues of E[z z'], largest first, with z the indicator vector of a training combination."""

    def coverage_of(self, strength: int) -> Coverage:
        """The coverage at one strength."""
        return {coverage.strength: coverage for coverage in self.coverage}[strength]

    def _facts(self) -> list[tuple[str, str]]:
        unseen = f"no: {len(self.unseen)} of {len(self.usage)} never occur"
        pairs = {1: "constituents", 2: "pairs"}
        return [
            ("training combinations", f"{in_words(self.size)} of {in_words(self.space_size)}"),
            ("every constituent occurs", "yes" if self.complete else unseen),
            ("constituents are connected", "yes" if self.connected else f"no: {self.groups} separate groups"),
            ("constituents are used evenly", "yes" if self.balanced else "no"),
            *(
                (f"{pairs.get(cover.strength, f'sets of {cover.strength}')} that occur", str(cover))
                for cover in self.coverage
            ),
        ]

    def __repr__(self) -> str:
        return f"Certificate\n{text_table(self._facts())}"

    def _repr_html_(self) -> str:
        return _html.card("Certificate: what is known before training", _html.table(("", ""), self._facts()))


@dataclasses.dataclass(frozen=True)
class Promise:
    """What the certificate of every support of a kind shows, known before anything is drawn. None: no promise."""

    complete: bool | None = None
    """True: every constituent occurs in training. False: some constituent never does."""
    connected: bool | None = None
    balanced: bool | None = None
    groups: int | None = None
    unseen: int | None = None
    """The number of constituents that never occur in training."""
    size: int | None = None
    """The number of training combinations."""

    def broken(self, certificate: Certificate) -> tuple[str, ...]:
        """The promises that the certificate does not keep, as text; empty if it keeps all of them."""
        shown = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(self)}
        shown["unseen"] = len(certificate.unseen)
        return tuple(
            f"{name} is {value}, but {getattr(self, name)} was promised"
            for name, value in shown.items()
            if getattr(self, name) not in (None, value)
        )


def whole(size: int) -> Promise:
    """The promise of a support that is complete and connected."""
    return Promise(complete=True, connected=True, groups=1, unseen=0, size=size)


def certify(support: Support, strengths: tuple[int, ...] = (1, 2, 3), seed: int = 0) -> Certificate:
    """Compute the certificate of a support. Strengths that no combination has are left out.

    The seed is that of the sample, where there are too many interactions to check all.
    """
    if any(strength < 1 for strength in strengths):
        raise BadInput(f"strengths={strengths}: a strength is at least 1.", fix="give strengths from 1 on")
    moment = support.second_moment()
    usage = np.diag(moment)
    groups = int(csgraph.connected_components(sparse.csr_matrix(moment > 0), directed=False)[0])
    # Shares have rounding errors of about 1e-16; one combination of the longest list is a share of 2e-7.
    even = 1 / support.size + 1e-12
    coverage = tuple(
        _coverage(support, moment, strength, seed) for strength in strengths if support.space.interactions(strength)
    )
    return Certificate(
        size=support.size,
        space_size=support.space.size,
        complete=bool((usage > 0).all()),
        connected=groups == 1,
        balanced=all(float(np.ptp(usage[parts])) <= even for parts in interchangeable(support.space)),
        groups=groups,
        unseen=tuple(int(part) for part in np.nonzero(usage == 0)[0]),
        usage=tuple(float(share) for share in usage),
        coverage=coverage,
        spectrum=tuple(float(value) for value in np.linalg.eigvalsh(moment)[::-1]),
    )


def _coverage(support: Support, moment: Float[np.ndarray, "width width"], strength: int, seed: int) -> Coverage:
    space = support.space
    if strength <= 2:
        # The second moment has all constituents and pairs: this is exact for spaces of any size.
        corner = np.eye(space.width, dtype=bool) if strength == 1 else np.tri(space.width, k=-1, dtype=bool)
        share = float((moment > 0)[(space.second_moment() > 0) & corner].mean())
        return Coverage(strength, share, True, share, share)
    if space.interactions(strength) <= EXACT_LIMIT:
        share = float(support.covers(space.list_interactions(strength)).mean())
        return Coverage(strength, share, True, share, share)
    rng = np.random.default_rng([seed, strength])
    covered = support.covers(space.sample_interactions(rng, strength, SAMPLES))
    from scipy import stats  # The import takes half a second, and most certificates are exact.

    interval = stats.binomtest(int(covered.sum()), SAMPLES).proportion_ci(method="wilson")
    return Coverage(strength, float(covered.mean()), False, float(interval.low), float(interval.high))
