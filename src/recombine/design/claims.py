"""Claims of a study: each carries its words, its effect, its direction and its margin."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.design.column import Column, Test
from recombine.stats.verdicts import Claim, Role, Verdict, judge


@dataclasses.dataclass(frozen=True)
class StudyClaim:
    """A claim with the column that its effect is; made by `claim`, `precondition` and `control`."""

    name: str
    test: Test
    text: str
    role: Role
    primary: bool
    needs: tuple[str, ...]
    version: int

    @property
    def effect(self) -> Column:
        """What is judged: one number per replicate."""
        return self.test.effect

    def of(self, study: str) -> Claim:
        """The claim as it is judged and recorded."""
        return Claim(
            self.name,
            study,
            self.text,
            self.test.direction,
            self.test.margin,
            primary=self.primary,
            role=self.role,
            needs=self.needs,
            version=self.version,
            scales=self.test.scales,
        )


Claims = Iterator[StudyClaim]
"""What `Study.claims` yields."""


def claim(
    name: str,
    test: Test,
    text: str,
    *,
    primary: bool = False,
    needs: str | Sequence[str] = (),
    version: int = 1,
    role: Role = "claim",
) -> StudyClaim:
    """State a claim of a study.

    Args:
        name: A short name in words with dashes; recorded results go by it.
        test: The effect with its direction and margin, e.g. `main["r2_held_out"].rise().greater(0.05)`.
        text: The statement in one sentence, with what is compared.
        primary: Whether it is the study's main claim.
        needs: Names of preconditions or controls without which the claim decides nothing.
        version: Raise it when the meaning of the claim changes.
        role: `claim`, `precondition` or `control`; see the functions of these names.

    Returns:
        The claim, to be yielded by `Study.claims`.
    """
    return StudyClaim(name, test, text, role, primary, (needs,) if isinstance(needs, str) else tuple(needs), version)


def precondition(name: str, test: Test, text: str, *, needs: str | Sequence[str] = (), version: int = 1) -> StudyClaim:
    """State what must hold before the claims that need it mean anything: that a network fits its training tasks."""
    return claim(name, test, text, needs=needs, version=version, role="precondition")


def control(name: str, test: Test, text: str, *, needs: str | Sequence[str] = (), version: int = 1) -> StudyClaim:
    """State what a control must show: that nothing is gained where nothing can be recombined."""
    return claim(name, test, text, needs=needs, version=version, role="control")


@dataclasses.dataclass(frozen=True)
class Effect:
    """A claim with its effect in each replicate."""

    claim: Claim
    values: Float[np.ndarray, " replicate"] | Float[np.ndarray, "scale replicate"]
    """One number per replicate; one row per scale where the claim has scales."""

    def judge(self) -> Verdict:
        """The verdict on this claim alone."""
        return judge(self.claim, self.values)

    def record(self) -> dict[str, Any]:
        """Plain values from which the verdict can be computed again."""
        return {"claim": dataclasses.asdict(self.claim), "values": self.values.tolist()}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Effect:
        """The effect that `record` wrote."""
        claim = dict(record["claim"])
        scales = tuple((name, margin) for name, margin in claim.get("scales", ()))
        values = np.array(record["values"], dtype=float)  # None becomes NaN.
        return cls(Claim(**claim | {"needs": tuple(claim["needs"]), "scales": scales}), values)
