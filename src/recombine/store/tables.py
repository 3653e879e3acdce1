"""The store as tables."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd

from recombine.probes.base import Measurement

if TYPE_CHECKING:
    from recombine.store.store import Store


def flatten(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested names joined by dots; a component's kind stands under the component's own name."""
    for name, item in value.items():
        place = f"{prefix}{name}"
        if isinstance(item, dict):
            yield from flatten(item, f"{place}.")
        elif name == "kind" and prefix:
            yield prefix[:-1], item
        else:
            yield place, item


def run_records(
    store: Store, run_ids: Sequence[str] | None = None, chosen: Sequence[Measurement] | None = None
) -> list[dict[str, Any]]:
    """One flat record a run."""
    kept = ("run", "status", "failed_at", "steps", "seconds", "compile_seconds", "reached")
    return [
        {name: run.manifest[name] for name in kept}
        | dict(flatten(run.manifest["config"]))
        | store.summaries(run.run_id, chosen)
        for run in store.runs(run_ids)
    ]


def runs_frame(
    store: Store, run_ids: Sequence[str] | None, chosen: Sequence[Measurement] | None = None
) -> pd.DataFrame:
    """One row a run."""
    records = run_records(store, run_ids, chosen)
    return pd.DataFrame.from_records(records) if records else _nothing()


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({"run": pd.Series(dtype="object")})


def _read(store: Store, files: dict[str, Path]) -> pd.DataFrame:
    """Parquet files of several runs as one frame with a `run` column. Damaged ones are reported and left out."""
    if not files:
        return _nothing()
    names = {str(path): run for run, path in files.items()}
    # A name may hold signs that would be taken for a pattern.
    patterns = [glob.escape(name) for name in names]
    query = "select * from read_parquet(?, filename = true, union_by_name = true)"
    with duckdb.connect() as connection:
        try:
            frame = connection.execute(query, [patterns]).df()
        except duckdb.Error:
            parts = []
            for path, pattern in zip(names, patterns, strict=True):
                try:
                    parts.append(connection.execute(query, [[pattern]]).df())
                except duckdb.Error as error:
                    store.report(f"{path} cannot be read: {error}")
            if not parts:
                return _nothing()
            frame = pd.concat(parts, ignore_index=True)
    frame.insert(0, "run", frame.pop("filename").map(names))
    return frame


def curves_frame(store: Store, run_ids: Sequence[str] | None) -> pd.DataFrame:
    """One row an evaluation."""
    return _read(
        store, {run.run_id: store.folder(run.run_id) / "curves.parquet" for run in store.runs(run_ids)}
    )


def measurement_frame(
    store: Store, kind: str, run_ids: Sequence[str] | None, chosen: Sequence[Measurement] | None = None
) -> pd.DataFrame:
    """The tables of all measurements of a kind; where a run has several, the newest."""
    files = {}
    for run in store.runs(run_ids):
        for table, record in store.measured(run.run_id, chosen):
            if record["measurement"]["kind"] == kind:
                files[run.run_id] = table
    return _read(store, files)


def combinations_frame(
    store: Store, run_ids: Sequence[str] | None, chosen: Sequence[Measurement] | None = None
) -> pd.DataFrame:
    """Scores of each combination, pooled over its tasks."""
    tasks = measurement_frame(store, "scores", run_ids, chosen)
    if tasks.empty:
        return tasks
    labels = ["run", "combination", "region", "stratum"]
    sums = [name for name in tasks.columns if name not in (*labels, "constituents", "draw")]
    grouped = tasks.groupby(labels, sort=False, observed=True)
    frame = grouped[sums].sum().join(grouped["constituents"].first()).reset_index()
    if {"error", "spread", "ratio"} <= set(sums):
        single = (1 - tasks["error"] / tasks["spread"]).groupby([tasks[name] for name in labels], sort=False)
        frame["r2"] = 1 - frame["error"] / frame["spread"]
        frame["r2_ratio"] = 1 - grouped["ratio"].mean().to_numpy()
        frame["r2_median"] = single.median().to_numpy()
    frame["parts"] = frame["constituents"].map(len)
    return frame


def by_constituent(tasks: pd.DataFrame) -> pd.DataFrame:
    """Scores of all combinations that hold a constituent, by run, region and constituent: the three forms."""
    if tasks.empty:
        return tasks
    return pooled(
        tasks.explode("constituents").rename(columns={"constituents": "constituent"}), ["constituent"]
    )


def pooled(tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The three forms of R2, and the correlation, over groups of tasks (a frame of the `scores` measurement), by run and region."""
    if tasks.empty:
        return tasks
    labels = ["run", "region", *by]
    grouped = tasks.assign(single=1 - tasks["error"] / tasks["spread"]).groupby(
        labels, sort=False, observed=True
    )
    sums = [name for name in ("error", "spread", "agreement", "power") if name in tasks.columns]
    frame = grouped[sums].sum()
    frame["r2"] = 1 - frame["error"] / frame["spread"]
    frame["r2_ratio"] = 1 - grouped["ratio"].mean()
    frame["r2_median"] = grouped["single"].median()
    if "power" in sums:
        frame["correlation"] = frame["agreement"] / (frame["spread"] * frame["power"]) ** 0.5
    return frame.reset_index()
