"""The commands that train many runs and no claims: sweep, and resume, which finishes what was begun."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import recombine as rc
from recombine.cli.options import (
    DEFAULT_STORE,
    LOCAL,
    DryOption,
    EngineOptions,
    JsonOption,
    Overrides,
    StoreOption,
    TrackOption,
)
from recombine.cli.output import CheckFailed, answer, check_table, errors, message, print_json, say, table, write_table
from recombine.cli.run import check_complete, check_failed, existing_store, plan_document, what_is_left
from recombine.errors import BadInput, StoreError

# Imported in the functions: `--help` does not load JAX.
if TYPE_CHECKING:
    from recombine.design.resume import Task
    from recombine.design.sweeps.grid import SweepFile


def sweep(
    file: Path,
    *overrides: Overrides,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"))] = None,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    dry_run: DryOption = False,
    track: TrackOption = None,
    engines: EngineOptions = LOCAL,
) -> None:
    """Train and measure every cell of a grid over any settings, with replicates.

    Args:
        file: A YAML file: base, grid, cases, replicates, measure.
        out: Also write one row a run: .csv, .parquet or .jsonl.
    """
    from recombine.design.sweeps.run import run_sweep
    from recombine.trackers.tracking import trackers_of

    read = _read(file, overrides)
    configs = [config for config, _ in read.runs()]
    check_table(out)
    engine, trackers = engines.make(), trackers_of(track)
    if dry_run:
        known = existing_store(store_path)
        ahead = rc.engines.plan(known, configs, read.measurements())
        if not as_json:
            names, rows = [*read.cells[0].labels], [(*cell.labels.values(), len(cell.runs)) for cell in read.cells]
            say(table(f"{read.name}: {len(rows)} cells", [*names, "runs"], rows, left=max(1, len(names))))
        document = plan_document(ahead, rc.engines.estimate(known, configs, read.measurements()), as_json)
        if as_json:
            print_json(document | {"cells": [cell.labels for cell in read.cells]})
        return
    store = rc.Store(store_path)
    if not as_json:
        errors().print(what_is_left(rc.engines.plan(store, configs, read.measurements())), highlight=False)
    with rc.training.ProgressDisplay(quiet=as_json) as progress:
        result = run_sweep(read, store, engine, progress, overrides, trackers)
    if out is not None:
        write_table(result.runs, out)
    document = {"name": result.name, "cells": result.cells.to_dict("records")}
    document |= {"sweep": dataclasses.asdict(result.sweep), "store": str(store_path)}
    document |= {"out": None if out is None else str(out), "problems": store.problems}
    document |= {"runs_expected": len(configs), "missing": result.missing}
    title = f"{result.name}: means over {read.replicates} replicates"
    rows, left = result.cells.itertuples(index=False), max(1, len(read.cells[0].labels))
    answer(as_json, document, table(title, list(result.cells.columns), rows, left=left))
    if out is not None and not as_json:
        say(f"runs: {out}")
    check_complete(result.missing, len(configs))
    check_failed(result.sweep.failed)


def _read(file: Path, overrides: Sequence[str]) -> SweepFile:
    """The sweep of a file; errors in its cells name the file too."""
    from recombine.design.sweeps.yaml_file import read_sweep

    sweep = read_sweep(file)
    try:
        sweep = sweep.changed(overrides)
        _ = sweep.cells
    except BadInput as error:
        raise BadInput(f"{file}: {error.message}", fix=error.fix) from error
    return sweep


def resume(
    *names: str,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    dry_run: DryOption = False,
    track: TrackOption = None,
    engines: EngineOptions = LOCAL,
) -> None:
    """Finish the studies and sweeps that were begun in a store.

    Args:
        names: Studies and sweeps; by default all that are not done.
    """
    from recombine.design.resume import wanted
    from recombine.store.repair import mend
    from recombine.trackers.tracking import trackers_of

    engine, trackers = engines.make(), trackers_of(track)
    rc.load_store(store_path)  # There must be one: nothing is resumed in a new folder.
    store = rc.Store(store_path, create=not dry_run)
    if not dry_run:
        mend(store, [run_id for request in wanted(store, names) for run_id in request["runs"]])
    tasks, strange = _tasks(store, names)
    left = [task for task in tasks if not task.complete]
    if not as_json:
        _say_what_is_left(store, tasks, left, strange)
    document: dict[str, Any] = {
        "store": str(store_path),
        "complete": [task.name for task in tasks if task.complete],
        "incomplete": [{"name": task.name} | dataclasses.asdict(task.ahead) for task in left],
        "problems": [*strange, *store.problems],
    }
    failed: list[str] = []
    if not dry_run:
        resumed = []
        for task in left:
            try:
                resumed.append(_finish(task, store, engine, as_json, trackers))
            except StoreError:
                raise  # A full disk, for one: the others would fare no better.
            except BadInput as error:
                strange.append(f"{task.name} cannot be finished: {error}")
                message(f"warning: {strange[-1]}", style="yellow")
        document["resumed"] = resumed
        document["problems"] = [*strange, *store.problems]
        lost = [run_id for task in left for run_id in task.request["runs"] if store.status(run_id) is None]
        document["missing"] = list(dict.fromkeys(lost))
        failed = [run_id for one in resumed for run_id in one["failed"]]
    if as_json:
        print_json(document)
    check_complete(document.get("missing", ()), sum(len(task.request["runs"]) for task in left))
    check_failed(list(dict.fromkeys(failed)))
    if strange:
        fix = "ask again with this version: `recombine run` or `recombine sweep`"
        raise CheckFailed(f"{len(strange)} of what was asked cannot be resumed.", fix=fix)


def _tasks(store: rc.Store, names: Sequence[str]) -> tuple[list[Task], list[str]]:
    """What was asked and is understood, and why the rest is not."""
    from recombine.design.resume import understood, wanted

    tasks, strange = [], []
    for request in wanted(store, names):
        try:
            tasks.append(understood(store, request))
        except BadInput as error:
            strange.append(error.message)
    return tasks, strange


def _say_what_is_left(store: rc.Store, tasks: Sequence[Task], left: Sequence[Task], strange: Sequence[str]) -> None:
    from recombine.store.requests import requests

    for reason in strange:
        message(f"warning: {reason}", style="yellow")
    if not requests(store):
        say(f"Nothing was asked of {store.path} yet: nothing to resume.")
    elif tasks and not left:
        what = f"{tasks[0].name} is" if len(tasks) == 1 else f"all {len(tasks)} studies and sweeps are"
        say(f"Nothing to resume: {what} complete.")
    elif left:
        rows = []
        for task in left:
            stored = f"{task.ahead.done + task.ahead.failed} of {task.ahead.runs}"
            rows.append((task.name, task.request["request"], stored, task.ahead.measurements))
        columns = ["incomplete", "", "runs in the store", "measurements left"]
        say(table(f"To be finished in {store.path}", columns, rows, left=2))


def _finish(
    task: Task, store: rc.Store, engine: rc.engines.Engine, as_json: bool, trackers: Sequence[rc.trackers.Tracker]
) -> dict[str, Any]:
    if not as_json:
        errors().print(f"\n{task.name}", style="bold", highlight=False, markup=False)
    with rc.training.ProgressDisplay(quiet=as_json) as progress:
        done = task.finish(store, engine, progress, trackers)
    if not as_json:
        say(f"{task.name} is done: {done.trained} runs trained, {done.measured} measurements made.")
    return {"name": task.name, "request": task.request["request"]} | dataclasses.asdict(done)
