"""Weights & Biases: runs in a project, online or in a folder for `wandb sync`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from recombine.trackers.base import TrackedRun, Tracker, Values

if TYPE_CHECKING:
    import pandas as pd


class WandBRun(TrackedRun):
    """One run of Weights & Biases."""

    def __init__(self, run: Any) -> None:
        self._run = run
        # Late points are kept: W&B's own step may only rise.
        run.define_metric("step")
        run.define_metric("*", step_metric="step")

    def curve(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({"step": step, **values})

    def summary(self, step: int, values: Values) -> None:
        self._run.summary.update(dict(values))

    def table(self, name: str, frame: pd.DataFrame) -> None:
        import wandb

        # As text, so that a column has one type.
        rows: list[Any] = [[str(value) for value in row] for row in frame.itertuples(index=False)]
        self._run.log({name: wandb.Table(columns=[str(column) for column in frame.columns], data=rows)})

    def figure(self, name: str, path: Path) -> None:
        import wandb

        self._run.log({f"figures/{name}": wandb.Image(str(path))})

    def close(self) -> None:
        self._run.finish()


class WandB(Tracker):
    """Weights & Biases: one run each, grouped by study or sweep. Runs stay open until they are measured."""

    kind: Literal["wandb"] = "wandb"
    package: ClassVar[str] = "wandb"
    install: ClassVar[str] = "recombine[wandb]"

    project: str = "recombine"
    """The project."""
    mode: Literal["auto", "online", "offline"] = "auto"
    """Auto: WANDB_MODE where it is set; else online with an API key, and offline without one. Nobody is asked for a key."""
    folder: str = "."
    """Where the folder `wandb` is made."""

    def check(self) -> None:
        # Only what the user asked to send is sent.
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        super().check()

    def open(self, group: str, name: str, settings: Mapping[str, Any]) -> WandBRun:
        import wandb

        quiet = wandb.Settings(silent=True, console="off", x_disable_stats=True, disable_git=True)
        mode: Any = self._mode()
        run = wandb.init(
            project=self.project,
            group=group,
            name=name,
            config=dict(settings),
            mode=mode,
            dir=self.folder,
            reinit="create_new",
            settings=quiet,
        )
        return WandBRun(run)

    def _mode(self) -> str:
        import wandb

        if self.mode != "auto":
            return self.mode
        return os.environ.get("WANDB_MODE") or ("online" if wandb.login(prompt=False, verify=False) else "offline")
