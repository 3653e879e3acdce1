"""The certificate of a split of SCAN: divergences, unmet pairs and lengths, computed before training."""

from __future__ import annotations

from typing import ClassVar, Literal

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.spaces.scan import ScanSpace
from recombine.supports.listed import Listed
from recombine.supports.regions import STRATA
from recombine.supports.scan_split.certificate import scan_certificate
from recombine.training.prepare import Setting

SUMMARY = ("pairs_unmet", "compounds_unseen", "atom_divergence", "compound_divergence")


class ScanCertificateMeasurement(Measurement):
    """The certificate of the run's training commands. The network is not used."""

    kind: Literal["scan-certificate"] = "scan-certificate"

    summary_names: ClassVar[tuple[str, ...]] = (*SUMMARY, *(f"share_{stratum}" for stratum in STRATA))

    def measure(self, setting: Setting, network: Network) -> Measured:
        support = setting.support
        if not (isinstance(setting.config.space, ScanSpace) and isinstance(support, Listed)):
            raise BadInput(
                f"A certificate of SCAN needs a list of its commands; this run has {setting.config.space.title}.",
                fix="space=scan",
            )
        return Measured(scan_certificate(support), {})
