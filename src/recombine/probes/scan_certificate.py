"""What could be said of a split of SCAN before training, beside the run: divergences, unmet pairs, lengths."""

from __future__ import annotations

from typing import Literal

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.spaces.scan import ScanSpace
from recombine.supports.listed import Listed
from recombine.supports.scan_certificate import scan_certificate
from recombine.training.prepare import Setting

SUMMARY = ("pairs_unmet", "compounds_unseen", "atom_divergence", "compound_divergence")


class ScanCertificateMeasurement(Measurement):
    """Of the support alone: the network is not looked at."""

    kind: Literal["scan-certificate"] = "scan-certificate"

    def measure(self, setting: Setting, network: Network) -> Measured:
        support = setting.support
        if not (isinstance(setting.config.space, ScanSpace) and isinstance(support, Listed)):
            raise BadInput(
                f"A certificate of SCAN needs a list of its commands, got {setting.config.space.title}.",
                fix="space=scan",
            )
        found = scan_certificate(support)
        summary = {name: float(getattr(found, name)) for name in SUMMARY}
        summary |= {f"share_{name}": share for name, share in found.shares.items()}
        return Measured(summary, {})
