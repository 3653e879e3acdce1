"""What is computed from a run afterwards, kept apart from it: a new measurement never retrains."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
from typing import Any

from recombine.component import Component
from recombine.models.base import Network
from recombine.training.prepare import Setting


@dataclasses.dataclass(frozen=True)
class Measured:
    """The result of a measurement."""

    summary: dict[str, float]
    """A few numbers that stand beside the run in tables."""
    columns: dict[str, list[Any]]
    """A table, column by column."""
    refused: str = ""
    """Why it cannot be made of this run; then there are no numbers."""


class Measurement(Component, abc.ABC):
    """The configuration of a measurement."""

    @abc.abstractmethod
    def measure(self, setting: Setting, network: Network) -> Measured:
        """Compute it for one trained network."""

    @property
    def name(self) -> str:
        """Unique for this measurement with these parameters and this version."""
        text = json.dumps([self.meaning(), self.version], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
