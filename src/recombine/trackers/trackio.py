"""Trackio: runs in a local project that `trackio show` shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from recombine.trackers.base import TrackedRun, Tracker, Values

if TYPE_CHECKING:
    import pandas as pd


class TrackioRun(TrackedRun):
    """One run of Trackio."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def curve(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def summary(self, step: int, values: Values) -> None:
        self._run.log({f"summary/{name}": value for name, value in values.items()}, step=step)

    def table(self, name: str, frame: pd.DataFrame) -> None:
        import trackio

        self._run.log({name: trackio.Table(dataframe=frame.astype(str))}, step=0)

    def figure(self, name: str, path: Path) -> None:
        import trackio

        self._run.log({f"figures/{name}": trackio.Image(path)}, step=0)

    def close(self) -> None:
        self._run.finish()


class Trackio(Tracker):
    """Trackio: one run each, grouped by study or sweep, on this machine."""

    kind: Literal["trackio"] = "trackio"
    package: ClassVar[str] = "trackio"
    install: ClassVar[str] = "recombine[trackio]"

    project: str = "recombine"
    """The project."""
    folder: str | None = None
    """Where projects are kept. By default TRACKIO_DIR, or Trackio's own folder. It counts until trackio is imported."""

    def check(self) -> None:
        if self.folder is not None:
            os.environ.setdefault("TRACKIO_DIR", str(Path(self.folder).resolve()))
        super().check()

    def open(self, group: str, name: str, settings: Mapping[str, Any]) -> TrackioRun:
        import trackio.run

        # Trackio prints on standard output, where a command's answer goes. `trackio.init` prints even more.
        setattr(trackio.run, "print", lambda *_, **__: None)  # noqa: B010
        run = trackio.run.Run(
            url=None, project=self.project, client=None, name=name, group=group, config=dict(settings)
        )
        return TrackioRun(run)
