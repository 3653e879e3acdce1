"""A sweep as a store has it: its cells with means and intervals, figures, a page, and files."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recombine import _html, _show
from recombine.design.run import missing_runs
from recombine.errors import BadInput, did_you_mean
from recombine.figures.base import Figure
from recombine.figures.study import of_runs
from recombine.figures.wording import count_of
from recombine.report.html import Report, Table, write_report
from recombine.stats.intervals import t_interval
from recombine.store.requests import Request, Standing, requests, standing
from recombine.store.store import Store

SCORES = {"score_held_out": "held out", "score_in": "in distribution"}
"""The headline scores of every family, with their names."""

MOST_COLOURS = 12
"""A setting with more values is no colour of a figure."""


@dataclasses.dataclass(frozen=True, repr=False)
class RecordedSweep:
    """A sweep that was asked of a store, with the runs that are there.

    Example:
        ```python
        sweep = recorded_sweep(rc.load_store("runs"), "width-by-data")
        sweep.cells
        sweep.report("report.html")
        ```
    """

    store: Store
    request: Request

    @property
    def name(self) -> str:
        """The name of the sweep."""
        return self.request["name"]

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The settings that vary, with their values in the order of the file."""
        labels = [cell["labels"] for cell in self.request["cells"]]
        names = dict.fromkeys(name for own in labels for name in own)
        return {name: list({str(own.get(name)): own.get(name) for own in labels}.values()) for name in names}

    @functools.cached_property
    def standing(self) -> Standing:
        """How much of it is done."""
        return standing(self.store, self.request)

    @functools.cached_property
    def missing(self) -> tuple[str, ...]:
        """Runs that the store does not have, sound."""
        return missing_runs(self.store, self.request["runs"])

    @functools.cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: its labels, its settings, how it ended, and its summary numbers."""
        rows = [{"run": run} | cell["labels"] for cell in self.request["cells"] for run in cell["runs"]]
        labels = pd.DataFrame(rows)
        own = [name for name in labels.columns if name != "run"]
        frame = self.store.runs_df(list(labels["run"]))
        # A label wins over a column of the same name: it is what the file says.
        return labels.merge(frame.drop(columns=[name for name in own if name in frame.columns]), on="run")

    @functools.cached_property
    def cells(self) -> pd.DataFrame:
        """One row per cell: its labels, runs with scores (`n`), failed runs, and means with 95 % intervals."""
        runs = self.runs.set_index("run").reindex(columns=[*dict.fromkeys([*self.runs.columns, "status", *SCORES])])
        rows = []
        for cell in self.request["cells"]:
            own = runs.loc[[run for run in cell["runs"] if run in runs.index]]
            row = dict(cell["labels"]) | {"n": 0, "failed": int((own["status"] == "failed").sum())}
            for name in SCORES:
                scores = pd.to_numeric(own[name]).to_numpy(float)
                scores = scores[np.isfinite(scores)]
                interval = t_interval(scores) if len(scores) > 1 else None
                ends = (np.nan, np.nan) if interval is None else (interval.low, interval.high)
                row |= {"n": max(row["n"], len(scores)), name: float(scores.mean()) if len(scores) else np.nan}
                row |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
            rows.append(row)
        return pd.DataFrame(rows)

    @functools.cached_property
    def figures(self) -> list[Figure]:
        """Each score against the longest axis of numbers, coloured by another axis; none without scores."""
        axes = {name: values for name, values in self.axes.items() if len(values) > 1}
        numeric = [name for name, values in axes.items() if all(_is_number(value) for value in values)]
        x = max(numeric, key=lambda name: len(axes[name])) if numeric else next(iter(axes), None)
        frame = self.runs
        if x is None:
            x, frame = "sweep", frame.assign(sweep=self.name)
        colours = [name for name, values in axes.items() if name != x and len(values) <= MOST_COLOURS]
        by = max(colours, key=lambda name: len(axes[name])) if colours else None
        rest = [name for name in axes if name not in (x, by)]
        note = f" Runs are averaged over {', '.join(rest)}." if rest else ""
        drawn = []
        for score, words in SCORES.items():
            if score in frame and frame[score].notna().any():
                title = f"Score {words} against {x}" + ("" if by is None else f", by {by}")
                made = of_runs(frame, x, score, by=by, title=title)
                drawn.append(dataclasses.replace(made, name=score, caption=made.caption + note))
        return drawn

    def report(self, path: str | Path) -> Path:
        """Write the sweep's page: one HTML file that opens from disk and needs no network.

        Args:
            path: The file, e.g. `report.html`. Its folder must exist.

        Returns:
            The path of the page.
        """
        how, count = self.standing, len(self.request["cells"])
        facts = {name: ", ".join(map(str, values)) for name, values in self.axes.items()} | {
            "asked": self.request["time"],
            "cells": str(count),
            "runs": f"{how.done} of {how.runs} done, {how.failed} failed",
            "measurements": ", ".join(self.request["measurements"]),
            "store": str(self.store.path),
        }
        lacking = f"Incomplete: {len(self.missing)} of {how.runs} runs are not in the store." if self.missing else ""
        report = Report(
            title=f"recombine: sweep {self.name}",
            question=f"How do scores depend on {_listed(list(self.axes))}?" if self.axes else f"Sweep {self.name}",
            answer=self._best(),
            figures=self.figures,
            tables=[_table("Means over replicates, with 95 % t intervals", self.cells)],
            facts=facts,
            warning=lacking,
        )
        return write_report(report, path)

    def _best(self) -> str:
        """The cell with the highest score on held-out combinations, in words. It is no claim."""
        found = self.cells.dropna(subset=["score_held_out"])
        if found.empty:
            return "No run has a score yet."
        best = found.to_dict("records")[int(found["score_held_out"].to_numpy().argmax())]
        labels = ", ".join(f"{name} = {best[name]}" for name in self.axes) or "the only cell"
        interval = (
            ""
            if np.isnan(best["score_held_out_low"])
            else (f" [{best['score_held_out_low']:.3f}, {best['score_held_out_high']:.3f}]")
        )
        score = f"{best['score_held_out']:.3f}{interval} over {count_of(int(best['n']), 'replicate')}"
        return f"The highest mean score on held-out combinations: {labels}, {score}. A sweep decides no claim."

    def export(self, folder: str | Path) -> list[Path]:
        """Write cells.csv, runs.csv and a PNG for each figure into a folder.

        Args:
            folder: The folder; it is made where it does not exist.

        Returns:
            The paths of the files.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, frame in (("cells", self.cells), ("runs", self.runs)):
            paths.append(folder / f"{name}.csv")
            frame.to_csv(paths[-1], index=False, float_format="%.6g")
        return paths + [figure.save(folder / f"{figure.name}.png") for figure in self.figures]

    def record(self) -> dict[str, Any]:
        """The sweep as plain values."""
        cells = self.cells.astype(object).where(self.cells.notna(), None).to_dict("records")
        kept = {name: self.request[name] for name in ("name", "time", "measurements")}
        how = dataclasses.asdict(self.standing) | {"complete": self.standing.complete}
        return {"sweep": self.name} | kept | {"axes": self.axes} | how | {"cells": cells, "missing": list(self.missing)}

    def __repr__(self) -> str:
        rows = [(str(name), str(value)) for name, value in self.standing.__dict__.items()]
        return f"sweep {self.name}\n{_show.text_table(rows)}"

    def _repr_html_(self) -> str:
        rows = self.cells.head(20).itertuples(index=False)
        return _html.card(f"sweep {self.name}", _html.table(list(self.cells.columns), rows))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _table(title: str, frame: pd.DataFrame) -> Table:
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return Table(title, [str(name) for name in frame.columns], [[_plain(value) for value in row] for row in rows])


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (int, float, str, bool)) else str(value)


def sweep_names(store: Store) -> list[str]:
    """The names of all sweeps that were asked of a store."""
    return [request["name"] for request in requests(store, "sweep") if _understood(request)]


def recorded_sweep(store: Store, name: str) -> RecordedSweep:
    """A sweep of a store.

    Args:
        store: The store.
        name: The name of the sweep.

    Returns:
        The sweep. If there is none of this name, `BadInput` says which there are.

    Example:
        ```python
        recorded_sweep(rc.load_store("runs"), "width-by-data").report("report.html")
        ```
    """
    asked: Sequence[Request] = [request for request in requests(store, "sweep") if _understood(request)]
    for request in asked:
        if request["name"] == name:
            return RecordedSweep(store, request)
    raise BadInput(f"There is no sweep {name!r} in {store.path}.", fix=did_you_mean(name, sweep_names(store)))


def _understood(request: Request) -> bool:
    """Whether the record says what its cells are. Records may come from other stores."""
    cells = request.get("cells")
    return (
        isinstance(cells, list)
        and bool(cells)
        and all(
            isinstance(cell, dict) and isinstance(cell.get("labels"), dict) and isinstance(cell.get("runs"), list)
            for cell in cells
        )
    )
