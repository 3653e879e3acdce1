"""What is known about a split of SCAN before training: unmet pairs, unseen compounds, divergences and strata."""

from __future__ import annotations

import numpy as np

from recombine.supports.compound_divergence import divergence as apart
from recombine.supports.listed import Listed
from recombine.supports.regions import STRATA, stratum


def scan_certificate(support: Listed) -> dict[str, float]:
    """Compute the certificate of a list of SCAN commands, from the lists alone.

    The test is what the support reserves, or every other command where it reserves nothing. Training commands count by
    their weights, test commands once each.

    Returns:
        `pairs_unmet`: the share of the test's pairs of constituents that never occur together in training.
        `compounds_unseen`: the share of the test's compound occurrences whose compound never occurs in training. Both
        divergences. For each stratum the share of the test in it, as `share_...`.
    """
    test = support.reserved
    if not len(test):
        every = support.space.enumerate()
        test = every[~support.contains(every)]
    moment = support.second_moment()
    met = np.triu(Listed(support.space, test).second_moment() > 0, k=1)
    trained, tested = apart.usage(support.rows, support.shares), apart.usage(test)
    compounds = apart.compound_counts(tested)
    unseen = apart.compound_counts(trained) == 0
    strata = stratum(test, moment)
    return {
        "pairs_unmet": float(np.mean(moment[met] == 0)) if met.any() else 0.0,
        "compounds_unseen": float(compounds[unseen].sum() / max(1, compounds.sum())),
        "atom_divergence": apart.atom_divergence(trained, tested),
        "compound_divergence": apart.compound_divergence(trained, tested),
        **{f"share_{name}": float(np.mean(strata == name)) for name in STRATA},
    }
