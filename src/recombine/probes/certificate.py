"""The certificate of a run's support, computed before training, beside the scores."""

from __future__ import annotations

from typing import ClassVar, Literal

from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.training.prepare import Setting


class CertificateOfSupport(Measurement):
    """Completeness, connectedness, pair coverage and usage of the run's support. The network is not used."""

    kind: Literal["certificate"] = "certificate"

    summary_names: ClassVar[tuple[str, ...]] = (
        *("complete", "connected", "balanced", "groups"),
        *("unseen", "pairs_met", "usage_min", "usage_max", "size"),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        certificate = setting.support.certificate((1, 2))
        # Where combinations have a single constituent, there is no pair to cover.
        pairs = [coverage.share for coverage in certificate.coverage if coverage.strength == 2]
        usage = list(certificate.usage)
        summary = {name: float(getattr(certificate, name)) for name in self.summary_names[:4]} | {
            "unseen": float(len(certificate.unseen)),
            "pairs_met": pairs[0] if pairs else 1.0,
            "usage_min": min(usage),
            "usage_max": max(usage),
            "size": float(certificate.size),
        }
        return Measured(summary, {"constituent": list(range(len(usage))), "usage": usage})
