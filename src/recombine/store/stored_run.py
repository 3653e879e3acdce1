"""A run as the store gives it back: its configuration, what was drawn for it, and the trained model."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recombine.errors import StoreError
from recombine.models.base import Network
from recombine.training.checkpoint import load_tree
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


@dataclasses.dataclass(frozen=True)
class StoredRun:
    """A run in the store."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def run_id(self) -> str:
        return self.folder.name

    @functools.cached_property
    def config(self) -> RunConfig:
        try:
            return RunConfig.model_validate(self.manifest["config"])
        except (ValidationError, KeyError) as error:
            raise StoreError(f"The configuration of run {self.run_id} is not understood: {error}") from error

    @functools.cached_property
    def setting(self) -> Setting:
        """The run's support, teacher and encoding, drawn again from its configuration."""
        return Setting(self.config)

    @functools.cached_property
    def model(self) -> Network:
        """The trained network."""
        if self.manifest["status"] != "complete":
            raise StoreError(
                f"Run {self.run_id} failed at step {self.manifest['failed_at']}: it has no weights."
            )
        return load_tree(self.folder / "weights.safetensors", self.setting.form())[0]
