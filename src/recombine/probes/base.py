"""Measurements: numbers that are computed from a trained run and stored beside it, so that none needs retraining."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from recombine.component import Component
from recombine.models.base import Network
from recombine.training import RunConfig, Setting


@dataclasses.dataclass(frozen=True)
class Measured:
    """The result of a measurement: summary numbers and a table."""

    summary: dict[str, float]
    """Numbers that appear beside the run in tables, by name."""
    columns: dict[str, list[Any]]
    """The table, column by column; all columns have one length."""
    refused: str = ""
    """Why this run does not allow the measurement; there are then no numbers."""

    @classmethod
    def from_records(cls, summary: dict[str, float], records: Sequence[dict[str, Any]]) -> Measured:
        """Make the table from its rows, which all have the same keys."""
        return cls(summary, {name: [record[name] for record in records] for name in records[0]})


class Measurement(Component, abc.ABC):
    """The configuration of a measurement.

    Subclass it and implement `measure` to add one; `kind` is the name of its file.

    Example:
        ```python
        measured = Scores(draws=2).measure(Setting(config), network)
        measured.summary["r2_held_out"]
        ```
    """

    @abc.abstractmethod
    def measure(self, setting: Setting, network: Network) -> Measured:
        """Measure one network.

        Args:
            setting: The run's configuration with its drawn support, teacher and encoder.
            network: The network, trained or not.

        Returns:
            Summary numbers and a table.
        """

    summary_names: ClassVar[tuple[str, ...]] = ()
    """The names of the summary numbers, where they are the same for every run."""

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        """The names of the summary numbers for runs like this one.

        Studies check the columns of their claims against them before anything trains.

        Args:
            config: A run of the arm; names may depend on its family and space.

        Returns:
            The names, or None where they are not known before measuring.
        """
        return frozenset(self.summary_names) or None

    def check_summary(self, measured: Measured, config: RunConfig) -> None:
        """Raise TypeError where a measurement gave summary numbers that it does not declare: a mistake in its code."""
        declared = self.summary_columns(config)
        if declared is not None and (unknown := sorted(measured.summary.keys() - declared)):
            raise TypeError(f"The measurement {self.kind!r} does not declare {', '.join(unknown)} in summary_columns.")

    @property
    def name(self) -> str:
        """A unique name of the measurement with its parameters and version."""
        text = json.dumps([self.meaning(), self.version], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
