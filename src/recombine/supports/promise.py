"""What a kind of support promises of every support it draws, to be held against the certificate."""

from __future__ import annotations

import dataclasses

from recombine.supports.certificate import Certificate


@dataclasses.dataclass(frozen=True)
class Promise:
    """What the certificate must show, known before anything is drawn. None: nothing is promised."""

    complete: bool | None = None
    """Every constituent occurs in training, or surely not every one does."""
    connected: bool | None = None
    balanced: bool | None = None
    groups: int | None = None
    unseen: int | None = None
    """How many constituents never occur in training."""
    size: int | None = None
    """How many combinations are trained on."""

    def broken(self, certificate: Certificate) -> tuple[str, ...]:
        """What the certificate shows otherwise, in words; empty if every promise is kept."""
        shown = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(self)}
        shown["unseen"] = len(certificate.unseen)
        return tuple(
            f"{name} is {found}, promised was {getattr(self, name)}"
            for name, found in shown.items()
            if getattr(self, name) not in (None, found)
        )


def whole(size: int) -> Promise:
    """The promise of a support that is complete and connected."""
    return Promise(complete=True, connected=True, groups=1, unseen=0, size=size)
