"""A run as the store gives it back: its configuration, what was drawn for it, and the trained model."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recombine import _html
from recombine._show import text_table
from recombine.errors import StoreError
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.store.manifest import read_manifest
from recombine.store.measurements import names_of, oldest_first, read_measurement
from recombine.training import RunConfig, Setting
from recombine.training.checkpoint import load_tree
from recombine.training.outcome import setting_rows


@dataclasses.dataclass(frozen=True, repr=False)
class StoredRun:
    """A run in the store: its configuration, what was drawn for it, and the trained network.

    Example:
        ```python
        run = rc.load_store("runs").load("64bb9895")
        run.measure(rc.probes.Scores()).summary
        ```
    """

    folder: Path
    manifest: dict[str, Any]
    """What is stored of the run besides arrays."""

    @property
    def run_id(self) -> str:
        """The run's name: the hash of its configuration."""
        return self.folder.name

    @functools.cached_property
    def config(self) -> RunConfig:
        """The run's configuration."""
        try:
            return RunConfig.model_validate(self.manifest["config"])
        except (ValidationError, KeyError) as error:
            raise StoreError(f"The configuration of run {self.run_id} is not understood: {error}") from error

    @functools.cached_property
    def setting(self) -> Setting:
        """The run's support, teacher and encoding, drawn again from its configuration."""
        return Setting(self.config, self._parent)

    def _parent(self, config: RunConfig) -> Network:
        """The trained network of a parent, which is in the same store."""
        folder = self.folder.parent / config.run_id
        if not folder.is_dir():
            fix = "recombine resume trains it again"
            raise StoreError(f"The run {self.run_id} starts from {config.run_id}, which is not in the store.", fix=fix)
        return StoredRun(folder, read_manifest(folder)).network

    @property
    def parents(self) -> list[str]:
        """The names of the runs that it started from."""
        return list(self.manifest.get("parents", ()))

    @functools.cached_property
    def network(self) -> Network:
        """The trained network."""
        if self.manifest["status"] != "complete":
            raise StoreError(f"Run {self.run_id} failed at step {self.manifest['failed_at']}: it has no weights.")
        return load_tree(self.folder / "weights.safetensors", self.setting.network_shapes())[0]

    def measure(self, measurement: Measurement) -> Measured:
        """Measure the trained network. Nothing is stored.

        Args:
            measurement: A component of `recombine.probes`, such as `Scores()`.

        Returns:
            A table and a summary.
        """
        return measurement.measure(self.setting, self.network)

    def _scores(self) -> dict[str, Any]:
        """The scores of the stored measurements."""
        folder = self.folder / "measurements"
        records: dict[str, dict[str, Any]] = {}
        for name in names_of(folder, None):
            with contextlib.suppress(StoreError):
                if (record := read_measurement(folder, name)) is not None:
                    records[name] = record
        scores: dict[str, Any] = {}
        for record in oldest_first(records).values():
            scores |= record["summary"]
        headline = [f"{self.config.family.metric}_{region}" for region in ("in", "held_out")]
        return {name: scores[name] for name in headline if isinstance(scores.get(name), float)}

    def _title(self) -> str:
        steps, seconds = self.manifest["steps"], self.manifest["seconds"]
        ending = f"{steps:,} steps" if self.manifest["status"] == "complete" else "failed"
        return f"run {self.run_id}: {ending} in {seconds or 0:.1f} s"

    def _rows(self) -> list[tuple[str, str]]:
        return [*setting_rows(self.config), *((name, f"{value:.3f}") for name, value in self._scores().items())]

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(self._rows())}"

    def _repr_html_(self) -> str:
        return _html.card(self._title(), _html.table(("", ""), self._rows()))
