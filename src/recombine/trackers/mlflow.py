"""MLflow: runs in an experiment, on a server or in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from recombine.trackers.base import TrackedRun, Tracker, Values, numbers

if TYPE_CHECKING:
    import pandas as pd

LONGEST_PARAMETER = 6000
"""MLflow refuses longer settings."""


class MLflowRun(TrackedRun):
    """One run of MLflow."""

    def __init__(self, client: Any, run_id: str) -> None:
        self._client, self._run_id = client, run_id

    def curve(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._run_id, name, value, step=step)

    def summary(self, step: int, values: Values) -> None:
        measured = numbers(values)
        for name, value in measured.items():
            self._client.log_metric(self._run_id, f"summary/{name}", value, step=step)
        for name in values.keys() - measured.keys():
            self._client.set_tag(self._run_id, name, str(values[name]))

    def table(self, name: str, frame: pd.DataFrame) -> None:
        self._client.log_text(self._run_id, frame.to_csv(index=False), f"{name}.csv")

    def figure(self, name: str, path: Path) -> None:
        self._client.log_artifact(self._run_id, str(path), "figures")

    def close(self) -> None:
        self._client.set_terminated(self._run_id)


class MLflow(Tracker):
    """MLflow: one run each, in an experiment named after the study or sweep."""

    kind: Literal["mlflow"] = "mlflow"
    package: ClassVar[str] = "mlflow"
    install: ClassVar[str] = "recombine[mlflow]"

    uri: str | None = None
    """The tracking server, a database, or a folder. By default MLFLOW_TRACKING_URI, or the folder `mlruns`."""

    def check(self) -> None:
        # Only what the user asked to send is sent. A folder needs no database, and MLflow asks to confirm that choice.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        super().check()

    def open(self, group: str, name: str, settings: Mapping[str, Any]) -> MLflowRun:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI") or "mlruns"
        client = MlflowClient(tracking_uri=uri if "://" in uri else Path(uri).resolve().as_uri())
        experiment = client.get_experiment_by_name(group)
        number = client.create_experiment(group) if experiment is None else experiment.experiment_id
        run_id = client.create_run(number, run_name=name).info.run_id
        values = {setting: str(value)[:LONGEST_PARAMETER] for setting, value in settings.items()}
        client.log_batch(run_id, params=[Param(setting, value) for setting, value in values.items()])
        return MLflowRun(client, run_id)
