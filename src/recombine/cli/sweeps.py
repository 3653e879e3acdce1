"""The commands that train many runs and no claims: sweep, and resume, which finishes what was begun."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recombine.cli.commands import existing_store, plan_document, use_cache, what_is_left
from recombine.cli.engines import EngineOptions
from recombine.cli.output import Told, console, errors, message, print_json, table
from recombine.cli.progress import TerminalProgress
from recombine.cli.tables import check_table, write_table
from recombine.engines.base import Engine, plan
from recombine.errors import BadInput, StoreError
from recombine.store.requests import requests
from recombine.store.store import Store
from recombine.studies.resume import Task, understood, wanted
from recombine.studies.sweep_file import SweepFile
from recombine.studies.sweep_yaml import read_sweep
from recombine.studies.sweeps import run_sweep


def sweep_command(
    file: Path,
    overrides: Sequence[str],
    out: Path | None,
    store_path: Path,
    engines: EngineOptions,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run a sweep from its file."""
    sweep = _read(file, overrides)
    configs = [config for config, _ in sweep.runs()]
    if out is not None:
        check_table(out)
    engine = engines.make()
    if dry_run:
        ahead = plan(existing_store(store_path), configs, sweep.measurements())
        if not as_json:
            console().print(_cells_ahead(sweep))
        document = plan_document(ahead, configs, as_json)
        if as_json:
            print_json(document | {"cells": [cell.labels for cell in sweep.cells]})
        return
    store = Store(store_path)
    use_cache()
    if not as_json:
        ahead = plan(store, configs, sweep.measurements())
        errors().print(what_is_left(ahead), highlight=False)
    with TerminalProgress(quiet=as_json) as progress:
        result = run_sweep(sweep, store, engine, progress, overrides)
    if out is not None:
        write_table(result.runs, out)
    if as_json:
        print_json(
            {
                "name": result.name,
                "cells": result.cells.to_dict("records"),
                "sweep": dataclasses.asdict(result.sweep),
                "store": str(store_path),
                "out": None if out is None else str(out),
                "problems": store.problems,
            }
        )
    else:
        title = f"{result.name}: means over {sweep.replicates} replicates"
        rows, left = result.cells.itertuples(index=False), max(1, len(sweep.cells[0].labels))
        console().print(table(title, list(result.cells.columns), rows, left=left))
        if out is not None:
            console().print(f"runs: {out}", highlight=False, markup=False)
    _tell_failed(result.sweep.failed)


def _read(file: Path, overrides: Sequence[str]) -> SweepFile:
    """The sweep of a file; errors in its cells name the file too."""
    sweep = read_sweep(file)
    try:
        sweep = sweep.changed(overrides)
        _ = sweep.cells
    except BadInput as error:
        raise BadInput(f"{file}: {error.message}", fix=error.fix) from error
    return sweep


def _cells_ahead(sweep: SweepFile) -> Any:
    names = list(sweep.cells[0].labels)
    rows = [(*cell.labels.values(), len(cell.runs)) for cell in sweep.cells]
    return table(f"{sweep.name}: {len(rows)} cells", [*names, "runs"], rows, left=max(1, len(names)))


def _tell_failed(failed: Sequence[str]) -> None:
    if failed:
        raise Told(
            f"{len(failed)} runs failed: {', '.join(failed[:5])}.",
            fix="`recombine show RUN` says at which step; a lower rate often helps",
        )


def resume_command(
    names: Sequence[str], store_path: Path, engines: EngineOptions, *, as_json: bool, dry_run: bool
) -> None:
    """Finish what was begun."""
    engine = engines.make()
    Store(store_path, create=False)  # There must be one: nothing is resumed in a new folder.
    store = Store(store_path, create=not dry_run)
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
        use_cache()
        resumed = []
        for task in left:
            try:
                resumed.append(_finish(task, store, engine, as_json))
            except StoreError:
                raise  # A full disk, for one: the others would fare no better.
            except BadInput as error:
                strange.append(f"{task.name} cannot be finished: {error}")
                message(f"warning: {strange[-1]}", style="yellow")
        document["resumed"] = resumed
        document["problems"] = [*strange, *store.problems]
        failed = [run_id for one in resumed for run_id in one["failed"]]
    if as_json:
        print_json(document)
    _tell_failed(list(dict.fromkeys(failed)))
    if strange:
        raise Told(
            f"{len(strange)} of what was asked cannot be resumed.",
            fix="ask again with this version: `recombine run` or `recombine sweep`",
        )


def _tasks(store: Store, names: Sequence[str]) -> tuple[list[Task], list[str]]:
    """What was asked and is understood, and why the rest is not."""
    tasks, strange = [], []
    for request in wanted(store, names):
        try:
            tasks.append(understood(store, request))
        except BadInput as error:
            strange.append(error.message)
    return tasks, strange


def _say_what_is_left(
    store: Store, tasks: Sequence[Task], left: Sequence[Task], strange: Sequence[str]
) -> None:
    for reason in strange:
        message(f"warning: {reason}", style="yellow")
    if not requests(store):
        console().print(
            f"Nothing was asked of {store.path} yet: nothing to resume.", highlight=False, markup=False
        )
    elif tasks and not left:
        what = f"{tasks[0].name} is" if len(tasks) == 1 else f"all {len(tasks)} studies and sweeps are"
        console().print(f"Nothing to resume: {what} complete.", highlight=False, markup=False)
    elif left:
        rows = [
            (
                task.name,
                task.request["request"],
                f"{task.ahead.done + task.ahead.failed} of {task.ahead.runs}",
                task.ahead.measurements,
            )
            for task in left
        ]
        columns = ["incomplete", "", "runs in the store", "measurements left"]
        console().print(table(f"To be finished in {store.path}", columns, rows, left=2))


def _finish(task: Task, store: Store, engine: Engine, as_json: bool) -> dict[str, Any]:
    if not as_json:
        errors().print(f"\n{task.name}", style="bold", highlight=False, markup=False)
    with TerminalProgress(quiet=as_json) as progress:
        done = task.finish(store, engine, progress)
    if not as_json:
        console().print(
            f"{task.name} is done: {done.trained} runs trained, {done.measured} measurements made.",
            highlight=False,
            markup=False,
        )
    return {"name": task.name, "request": task.request["request"]} | dataclasses.asdict(done)
