"""What is known about a split of SCAN before training: unseen words and pairs, divergences, lengths, strata."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.spaces.rows import Rows
from recombine.spaces.scan import ScanSpace, language
from recombine.supports.compound_divergence import divergence as apart
from recombine.supports.listed import Listed
from recombine.supports.regions import STRATA, stratum


@dataclasses.dataclass(frozen=True)
class ScanCertificate:
    """Computed from the lists alone. Training commands count by their weights, test commands once each."""

    train_size: int
    test_size: int
    atoms_unseen: tuple[str, ...]
    """Words of the test that never occur in training."""
    pairs_unmet: float
    """The share of the test's pairs of constituents that never occur together in training."""
    compounds_unseen: float
    """The share of the test's compound occurrences whose compound never occurs in training."""
    atom_divergence: float
    compound_divergence: float
    longest_train: int
    """The most actions of a training command."""
    longest_test: int
    test: Rows = dataclasses.field(repr=False, compare=False)
    """The commands of the test."""
    strata: np.ndarray = dataclasses.field(repr=False, compare=False)
    """The coverage stratum of each test command: all_pairs_met, some_pairs_unmet or part_unseen."""
    lengths: Int[np.ndarray, " n"] = dataclasses.field(repr=False, compare=False)
    """The number of actions of each test command."""

    @property
    def shares(self) -> dict[str, float]:
        """The share of the test in each stratum."""
        return {name: float(np.mean(self.strata == name)) for name in STRATA}


def scan_certificate(support: Listed) -> ScanCertificate:
    """Compute the certificate of a list of SCAN commands.

    The test is what the support reserves, or every other command where it reserves nothing.
    """
    if not isinstance(support.space, ScanSpace):
        raise BadInput(
            f"A SCAN certificate needs a support of SCAN, got the space {support.space.title}.",
            fix="use support.certificate()",
        )
    test = support.reserved
    if not len(test):
        every = support.space.enumerate()
        test = every[~support.contains(every)]
    moment = support.second_moment()
    met = np.triu(Listed(support.space, test).second_moment() > 0, k=1)
    trained, tested = apart.usage(support.rows, support.shares), apart.usage(test)
    atoms = apart.atom_counts(trained), apart.atom_counts(tested)
    compounds = apart.compound_counts(trained), apart.compound_counts(tested)
    lengths = np.asarray(language.action_counts(test))
    return ScanCertificate(
        train_size=support.size,
        test_size=len(test),
        atoms_unseen=tuple(word for word, p, q in zip(apart.ATOMS, *atoms, strict=True) if q > 0 and not p > 0),
        pairs_unmet=float(np.mean(moment[met] == 0)) if met.any() else 0.0,
        compounds_unseen=float(compounds[1][compounds[0] == 0].sum() / max(1, compounds[1].sum())),
        atom_divergence=apart.atom_divergence(trained, tested),
        compound_divergence=apart.compound_divergence(trained, tested),
        longest_train=int(language.action_counts(support.rows).max()),
        longest_test=int(lengths.max()),
        test=test,
        strata=stratum(test, moment),
        lengths=lengths,
    )
