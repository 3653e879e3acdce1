"""What could be said of a run's support before training, so that it stands beside the scores."""

from __future__ import annotations

from typing import Literal

from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.training.prepare import Setting


class CertificateOfSupport(Measurement):
    """The certificate of the support that was drawn for the run. The network has no part in it."""

    kind: Literal["certificate"] = "certificate"

    def measure(self, setting: Setting, network: Network) -> Measured:
        certificate = setting.support.certificate((1, 2))
        # Where no two constituents can meet, none are unmet.
        pairs = [one.share for one in certificate.coverage if one.strength == 2]
        summary = {
            "complete": float(certificate.complete),
            "connected": float(certificate.connected),
            "balanced": float(certificate.balanced),
            "groups": float(certificate.groups),
            "unseen": float(len(certificate.unseen)),
            "pairs_met": pairs[0] if pairs else 1.0,
            "usage_min": min(certificate.usage),
            "usage_max": max(certificate.usage),
            "size": float(certificate.size),
        }
        constituents = list(range(len(certificate.usage)))
        return Measured(summary, {"constituent": constituents, "usage": list(certificate.usage)})
