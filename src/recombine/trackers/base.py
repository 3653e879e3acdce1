"""Base classes of trackers: the configuration, and one run as the tracker keeps it."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from recombine.component import Component
from recombine.errors import MissingPackage

if TYPE_CHECKING:
    import pandas as pd

Values = Mapping[str, float | str]
"""Numbers and words by name."""


class TrackedRun(abc.ABC):
    """One run in a tracker, or a study or sweep as a whole. Its methods may raise: `Tracking` then says so, once."""

    @abc.abstractmethod
    def curve(self, step: int, values: Mapping[str, float]) -> None:
        """Add a point of the curves. Steps may come out of order: workers report a few of them late.

        Args:
            step: The training step.
            values: Loss and scores by name.
        """

    @abc.abstractmethod
    def summary(self, step: int, values: Values) -> None:
        """Add what is known at the end.

        Args:
            step: The last training step.
            values: Scores, and how the run ended.
        """

    @abc.abstractmethod
    def table(self, name: str, frame: pd.DataFrame) -> None:
        """Add a table, such as the verdicts of a study."""

    @abc.abstractmethod
    def figure(self, name: str, path: Path) -> None:
        """Add a figure.

        Args:
            name: Its short name.
            path: A PNG file, which is removed later.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Write what is left, and end."""


class Tracker(Component, abc.ABC):
    """The configuration of a tracker. Subclass it and implement `open`.

    Example:
        ```python
        rc.run("data-scaling", profile="demo", track=rc.trackers.TensorBoard(folder="tensorboard"))
        ```
    """

    room: ClassVar[str] = "trackers"
    package: ClassVar[str]
    """The package that it imports."""
    install: ClassVar[str]
    """What pip installs for it."""

    def check(self) -> None:
        """Raise `MissingPackage` if its package cannot be imported. Called before training."""
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            raise MissingPackage(
                f"The tracker {self.kind!r} needs {self.package}, which cannot be imported: {error}.",
                fix=f'pip install "{self.install}"',
            ) from error

    @abc.abstractmethod
    def open(self, group: str, name: str, settings: Mapping[str, Any]) -> TrackedRun:
        """Begin a run in the tracker. Called from a thread of the tracker's own.

        Args:
            group: The study or the sweep.
            name: The name of the run, or of the group for what concerns all of its runs.
            settings: The settings of the run by their full names; empty for a group.
        """


def numbers(values: Values) -> dict[str, float]:
    """The numbers among values."""
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
