"""The tables of a store, as pandas DataFrames: methods of `Store`. pandas and DuckDB are imported on first use."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from recombine.component import find, kinds
from recombine.families.base import Family
from recombine.probes.base import Measurement
from recombine.store.files import sha256_of
from recombine.store.manifest import CURVES, ENDING
from recombine.supports.regions import STRATA

if TYPE_CHECKING:
    import pandas as pd

    from recombine.store.store import Store

Names = Sequence[str] | None
"""The runs of a table; None for all."""

Chosen = Sequence[Measurement] | None
"""The measurements to use; None for the newest of each kind."""


def flatten(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Join nested names by dots. A component's kind gets the component's name."""
    for name, item in value.items():
        place = f"{prefix}{name}"
        if isinstance(item, dict):
            yield from flatten(item, f"{place}.")
        elif name == "kind" and prefix:
            yield prefix[:-1], item
        else:
            yield place, item


def run_records(store: Store, run_ids: Names = None, chosen: Chosen = None) -> list[dict[str, Any]]:
    """One flat record per run."""
    return [_record(run.manifest, store.measured(run.run_id, chosen)) for run in store.runs(run_ids)]


def _record(manifest: dict[str, Any], measured: Iterable[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for _, record in measured:
        summary |= record["summary"]
    ending = {name: manifest[name] for name in ENDING}
    return ending | settings_of(manifest) | with_headline(manifest["config"]["family"]["kind"], summary)


def index_records(store: Store, run_ids: Names = None) -> list[dict[str, Any]]:
    """The records of an index: those of `run_records` with the time of storing and the kinds of measurements."""
    records = []
    for run in store.runs(run_ids):
        measured = store.measured(run.run_id)
        kinds_of = sorted({record["measurement"]["kind"] for _, record in measured})
        origin = run.manifest.get("provenance")
        made = origin.get("time") if isinstance(origin, dict) else None
        records.append(_record(run.manifest, measured) | {"made": made, "measured": " ".join(kinds_of)})
    return records


def settings_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run by their full names. Parents are given by their names."""
    config = {name: value for name, value in manifest["config"].items() if name != "parents"}
    parents = manifest.get("parents")
    return dict(flatten(config)) | ({"parents": " ".join(parents)} if parents else {})


def with_headline(family: str, summary: dict[str, Any]) -> dict[str, Any]:
    """Add the family's headline metric as `score_...`, so that tables can mix families."""
    metric = metric_of(family)
    if metric is None:
        return summary  # The family's package is not installed here.
    named = {f"score_{place}": f"{metric}_{place}" for place in ("in", "held_out", *STRATA)}
    return {"metric": metric} | {to: summary[name] for to, name in named.items() if name in summary} | summary


def metric_of(family: str) -> str | None:
    """The headline metric of a family; None if its package is not installed here."""
    return _family(family).metric if family in kinds("families") else None


def _family(kind: str) -> type[Family]:
    family = find("families", kind)
    assert issubclass(family, Family)
    return family


def runs_df(store: Store, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
    """One row per run: its configuration (`support.number`, ...), how it ended, and its summary numbers."""
    import pandas as pd

    records = run_records(store, run_ids, chosen)
    return pd.DataFrame.from_records(records) if records else _nothing()


def _nothing() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"run": pd.Series(dtype="object")})


def _read(store: Store, files: dict[str, tuple[Path, str | None]]) -> pd.DataFrame:
    """Read Parquet files of several runs as one table with a `run` column. Damaged files are reported and left out.

    Each file comes with its expected hash; older ones have none.
    """
    import duckdb
    import pandas as pd

    names = {str(path): run for run, (path, digest) in files.items() if _sound(store, path, digest)}
    if not names:
        return _nothing()
    # A path may contain characters of a pattern.
    patterns = [glob.escape(name) for name in names]
    query = "select * from read_parquet(?, filename = true, union_by_name = true)"
    with duckdb.connect() as connection:
        try:
            frame = connection.execute(query, [patterns]).df()
        except (duckdb.Error, OSError, ValueError, OverflowError):
            parts = []
            for path, pattern in zip(names, patterns, strict=True):
                try:
                    parts.append(connection.execute(query, [[pattern]]).df())
                except (duckdb.Error, OSError, ValueError, OverflowError) as error:
                    if not _empty(path):
                        store.report(f"{path} cannot be read: {error}")
            if not parts:
                return _nothing()
            frame = pd.concat(parts, ignore_index=True)
    frame.insert(0, "run", frame.pop("filename").map(names))
    return frame


def _empty(path: str) -> bool:
    """Whether a table has no columns, as for a measurement with only a summary. DuckDB cannot read it."""
    try:
        return not pq.read_schema(path).names
    except (OSError, ValueError):  # pa.ArrowInvalid is a ValueError.
        return False


def _sound(store: Store, path: Path, digest: str | None) -> bool:
    """Whether a file is unchanged. Changed bits could be read as other numbers."""
    try:
        sound = digest is None or sha256_of(path) == digest
    except OSError:
        sound = False
    if not sound:
        store.report(f"{path} is damaged: it is not the table that was written.")
    return sound


def curves_df(store: Store, run_ids: Names = None) -> pd.DataFrame:
    """One row an evaluation: run, step, loss, score_in, score_held_out."""
    files = {
        run.run_id: (run.folder / CURVES, run.manifest.get("sha256", {}).get(CURVES)) for run in store.runs(run_ids)
    }
    return _read(store, files)


def probes_df(store: Store, run_ids: Names = None, chosen: Chosen = None, kind: str = "decodability") -> pd.DataFrame:
    """The table of a probe. For decodability: one row per run, site, network, form and strength.

    Of several measurements of a kind of one run, the newest counts.
    """
    files = {}
    for run in store.runs(run_ids):
        for table, record in store.measured(run.run_id, chosen):
            if record["measurement"]["kind"] == kind and "refused" not in record:
                files[run.run_id] = table, record.get("sha256")
    return _read(store, files)


def combinations_df(store: Store, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
    """One row per run and combination: region, stratum, and the family's metrics, pooled over its tasks."""
    tasks = probes_df(store, run_ids, chosen, "scores")
    if tasks.empty:
        return tasks
    labels = ["run", "combination", "region", "stratum"]
    frame = _pooled(store, tasks, labels)
    first = tasks.drop_duplicates(labels)[[*labels, "constituents"]]
    frame = frame.merge(first, on=labels, how="left")
    frame["parts"] = frame["constituents"].map(len)
    return frame


def constituents_df(store: Store, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
    """One row per run, region and constituent: the metrics over combinations with this constituent."""
    tasks = probes_df(store, run_ids, chosen, "scores")
    if tasks.empty:
        return tasks
    alone = tasks.explode("constituents").rename(columns={"constituents": "constituent"})
    return _pooled(store, alone, ["run", "region", "constituent"])


def strata_df(store: Store, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
    """One row per run, region and coverage stratum: its metrics."""
    return _pooled(store, probes_df(store, run_ids, chosen, "scores"), ["run", "region", "stratum"])


def _pooled(store: Store, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The metrics of each run's family over groups of tasks (a frame of the `scores` measurement).

    `score` is the family's headline metric, whatever its name.
    """
    import pandas as pd

    if tasks.empty:
        return tasks
    families = {run.run_id: run.manifest["config"]["family"] for run in store.runs(list(tasks["run"].unique()))}
    parts = []
    for kind in dict.fromkeys(family["kind"] for family in families.values()):
        runs = [run for run, family in families.items() if family["kind"] == kind]
        family = _family(kind).model_validate(families[runs[0]])
        frame = family.pooled(tasks[tasks["run"].isin(runs)], by)
        parts.append(frame.assign(score=frame[family.metric]))
    return pd.concat(parts, ignore_index=True)
