"""Running a sweep: its runs through an engine, then its table. What was asked is written down first."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recombine import _html
from recombine.design.run import missing_runs
from recombine.design.sweeps.grid import SweepFile
from recombine.engines.base import Engine, Sweep
from recombine.store.provenance import now
from recombine.store.requests import Request, parents_of, remember, requests, standing
from recombine.store.store import Store
from recombine.trackers.base import Tracker
from recombine.trackers.tracking import Tracking
from recombine.training.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("score_in", "score_held_out")
"""The headline metric of each family, in the table of cells."""


@dataclasses.dataclass(frozen=True, repr=False)
class SweepResult:
    """The result of a sweep."""

    name: str
    sweep: Sweep
    """What was trained and measured."""
    runs: pd.DataFrame
    """One row per run: its labels, its configuration, how it ended, its summary numbers."""
    cells: pd.DataFrame
    """One row per cell: means over the replicates."""
    missing: tuple[str, ...] = ()
    """Runs that the store does not have, sound, although the sweep ended: somebody removed them meanwhile."""

    def __repr__(self) -> str:
        return f"sweep {self.name}: {len(self.runs)} runs in {len(self.cells)} cells\n{self.cells.head(20)}"

    def _repr_html_(self) -> str:
        rows = self.cells.head(20).itertuples(index=False)
        return _html.card(f"sweep {self.name}: {len(self.runs)} runs", _html.table(list(self.cells.columns), rows))


def _digest(file: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(file, sort_keys=True).encode()).hexdigest()[:8]


def request_of(sweep: SweepFile, overrides: Sequence[str] = ()) -> Request:
    """What the store keeps of a sweep: enough to finish it, and to know its cells without it."""
    cells = sweep.cells
    file = sweep.model_dump(mode="json")
    # A try with other settings must not take the place of the sweep itself.
    suffix = f"-{_digest(file)}" if overrides else ""
    return {
        "request": "sweep",
        "name": f"{sweep.name}{suffix}",
        "file": file,
        "overrides": list(overrides),
        "cells": [{"labels": cell.labels, "runs": [run.run_id for run, _ in cell.runs]} for cell in cells],
        "runs": [run.run_id for cell in cells for run, _ in cell.runs],
        **parents_of(run for cell in cells for run, _ in cell.runs),
        "measurements": [one.name for one in sweep.measurements()],
        "time": now(),
    }


def keep_unfinished(store: Store, request: Request) -> None:
    """Keep what an earlier sweep of this name left unfinished under a name of its own, as the file was edited since."""
    for old in requests(store, "sweep"):
        if old["name"] != request["name"] or not isinstance(old.get("file"), dict):
            continue
        forgotten = not set(old["runs"]) <= set(request["runs"]) or not set(old["measurements"]) <= set(
            request["measurements"]
        )
        if forgotten and not standing(store, old).complete:
            kept = f"{request['name']}-{_digest(old['file'])}"
            remember(store, old | {"name": kept})
            what = "The sweep file was edited, and what it asked for earlier is not finished"
            store.report(f"{what}: it is kept as {kept}. `recombine resume {kept}` finishes it.")


def run_sweep(
    sweep: SweepFile,
    store: Store,
    engine: Engine,
    progress: Progress | None = None,
    overrides: Sequence[str] = (),
    trackers: Sequence[Tracker] = (),
) -> SweepResult:
    """Bring the store to hold the sweep's runs and measurements. `overrides` are those that are in `sweep` already."""
    request = request_of(sweep, overrides)
    labelled = sweep.runs()
    keep_unfinished(store, request)
    remember(store, request)
    with Tracking(trackers, request["name"], progress) as tracking:
        done = engine.run(store, [config for config, _ in labelled], sweep.measurements(), tracking)
        tracking.scores(store)
        runs = runs_table(sweep, store)
        missing = missing_runs(store, request["runs"])
        result = SweepResult(request["name"], done, runs, cells_table(sweep, runs), missing)
        tracking.group_table("cells", result.cells)
    return result


def runs_table(sweep: SweepFile, store: Store) -> pd.DataFrame:
    """The sweep's runs with their labels. Failed runs are there, with empty scores."""
    import pandas as pd

    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in sweep.runs()])
    own = [name for name in labels.columns if name != "run"]
    frame = store.runs_df(list(labels["run"]), sweep.measurements())
    # A label wins over a column of the same name: it is what the file says.
    return labels.merge(frame.drop(columns=[name for name in own if name in frame.columns]), on="run")


def cells_table(sweep: SweepFile, runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the replicates of each cell, in the order of the file; `n` is how many have scores."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    runs = runs.reindex(columns=[*dict.fromkeys([*runs.columns, "status", *SHOWN])]).set_index("run")
    for cell in sweep.cells:
        own = runs.loc[[config.run_id for config, _ in cell.runs if config.run_id in runs.index]]
        rows.append(
            cell.labels
            | {"n": int(own[SHOWN[0]].count()), "failed": int((own["status"] == "failed").sum())}
            | {name: float(pd.to_numeric(own[name]).mean()) for name in SHOWN}
        )
    return pd.DataFrame(rows)
