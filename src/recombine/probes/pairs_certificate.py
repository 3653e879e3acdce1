"""The certificate of a table's split: unseen words and compounds, divergences and strata, computed before training."""

from __future__ import annotations

from typing import ClassVar, Literal

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.spaces.pairs import PairSpace
from recombine.supports.listed import Listed
from recombine.supports.regions import STRATA
from recombine.supports.table_split.certificate import pair_certificate
from recombine.training.prepare import Setting

SUMMARY = (
    *("inputs_trained", "words_unseen", "output_words_unseen", "compounds_unseen"),
    *("pairs_unmet", "atom_divergence", "compound_divergence"),
)


class PairsCertificate(Measurement):
    """The certificate of the run's training pairs. The network is not used."""

    kind: Literal["pairs-certificate"] = "pairs-certificate"

    summary_names: ClassVar[tuple[str, ...]] = (*SUMMARY, *(f"share_{stratum}" for stratum in STRATA))

    def measure(self, setting: Setting, network: Network) -> Measured:
        support = setting.support
        if not (isinstance(setting.config.space, PairSpace) and isinstance(support, Listed)):
            raise BadInput(
                f"This certificate needs the pairs of a table; this run has {setting.config.space.title}.",
                fix="family=pairs",
            )
        return Measured(pair_certificate(support), {})
