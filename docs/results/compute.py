"""Writes what a unit of compute buys by each route: held-out score against operations of training, task by task.

    python docs/results/compute.py --profile laptop STORE [STORE ...]

The stores are those of the studies of routes. Nothing is trained: a route whose runs are in no store is left out, and named. compute.md has
one table per task, compute.png one panel per task and one curve per route.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recombine.component import find
from recombine.design import Tables
from recombine.errors import BadInput, StoreError
from recombine.store.store import Store, load_store
from recombine.studies.routes.episodes import by_context, by_kind
from recombine.studies.routes.steps import by_steps

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Route:
    """One curve: the runs of an arm that have these labels, and the column of a table that is their score."""

    task: str
    name: str
    study: str
    arm: str
    column: str
    labels: tuple[tuple[str, Any], ...] = ()
    table: Callable[[Tables], pd.DataFrame] | None = None
    """Makes the table with the score; None for the table of runs."""
    setting: str = ""
    """What tells the arm apart from others of the same route, which are further points of its curve."""


def in_prompt(tables: Tables) -> pd.DataFrame:
    """The accuracy by kind of query, with the study examples of the same grammar in the prompt."""
    return by_kind(tables, context="shown")


HOPS, ADD_JUMP, GRIDS = (
    "chains of four and five functions",
    "SCAN: 'jump' seen only alone",
    "grids: cells that are not shown",
)
GRAMMARS, SUDOKU = "commands of a new grammar", "6 x 6 Sudoku"
SOLVED = "accuracy_held_out"
ROUTES = (
    Route(HOPS, "depth, equally many weights", "depth-or-width", "chains", "composed", table=by_steps),
    Route(HOPS, "more steps, wide", "depth-or-width", "longer", "composed", table=by_steps),
    Route(HOPS, "each layer twice", "depth-or-width", "shared", "composed", table=by_steps),
    Route(ADD_JUMP, "width", "syntactic-attention", "scale", "accuracy_held_out", (("separate", False),)),
    Route(ADD_JUMP, "syntactic attention", "syntactic-attention", "scale", "accuracy_held_out", (("separate", True),)),
    Route(GRIDS, "width, one grid", "metalearning", "one", "accuracy_held_out"),
    Route(GRIDS, "episodes, by width", "metalearning", "width", "blocked", table=by_context),
    Route(GRAMMARS, "one grammar", "few-shot-grammars", "one", "new", table=by_kind),
    Route(GRAMMARS, "episodes", "few-shot-grammars", "main", "new", table=in_prompt),
    Route(SUDOKU, "one pass, by layers", "recursion", "one_pass", SOLVED, setting="as few layers as recursion"),
    Route(SUDOKU, "one pass, by layers", "recursion", "scaled", SOLVED, setting="as much compute as recursion"),
    Route(SUDOKU, "recursion", "recursion", "shallow", SOLVED, setting="T = n = 1"),
    Route(SUDOKU, "recursion", "recursion", "recursive", SOLVED, setting="T = n = 2"),
)


def points(route: Route, study: Any, tables: Tables) -> pd.DataFrame:
    """The runs of a route: task, route, replicate, operations of training, score.

    Args:
        route: The route.
        study: Its study.
        tables: The tables of the study.
    """
    own = study.design.data(tables)[route.arm]
    runs = own.runs.drop_duplicates("run")
    for label, level in route.labels:
        runs = runs[runs[label] == level]
    if route.table is not None:
        runs = runs.merge(route.table(own)[["run", route.column]], on="run")
    axes = [axis for axis in study.design.arms[route.arm].axes if axis in runs and axis not in dict(route.labels)]
    # A label that other runs do not have makes whole numbers floats.
    settings = [", ".join([f"{axis} {row[axis]:g}" for axis in axes] or [route.setting]) for _, row in runs.iterrows()]
    frame = runs.assign(task=route.task, route=route.name, setting=settings, score=runs[route.column])
    return frame[["task", "route", "setting", "replicate", "training_flops", "score"]]


def collected(stores: Sequence[Store], profile: str) -> tuple[pd.DataFrame, list[Route]]:
    """The points of all routes whose runs are recorded, and the routes that are missing."""
    frames, missing = [], []
    for route in ROUTES:
        kind: Any = find("studies", route.study)
        study = kind.profile(profile)
        found = None
        for store in stores:
            try:
                found = points(route, study, study.design.tables(store)).dropna(subset=["score"])
            except (StoreError, KeyError):
                continue
            if len(found):
                break
        if found is None or not len(found):
            missing.append(route)
        else:
            frames.append(found)
    if not frames:
        names = sorted({route.study for route in ROUTES})
        raise BadInput(
            f"No store has runs of {', '.join(names)} in the profile {profile!r}.",
            fix=f"recombine run {names[0]} --profile {profile}, and give its store",
        )
    return pd.concat(frames, ignore_index=True), missing


def page(frame: pd.DataFrame, missing: Sequence[Route], profile: str) -> str:
    """The tables in Markdown: the mean score and operations of each setting of each route."""
    lines = ["# What a unit of compute buys", ""]
    lines += [
        f"Held-out score against the operations of all training steps (profile `{profile}`, means over replicates).",
        "",
        "![One panel per task, one curve per route](compute.png)",
    ]
    for task, rows in frame.groupby("task", sort=False):
        lines += [
            "",
            f"## {str(task)[0].upper()}{str(task)[1:]}",
            "",
            "| route | setting | operations | score |",
            "|---|---|---|---|",
        ]
        means = rows.groupby(["route", "setting"], sort=False)[["training_flops", "score"]].mean().reset_index()
        for row in means.sort_values(["route", "training_flops"]).itertuples():
            lines.append(f"| {row.route} | {row.setting} | {row.training_flops:.2g} | {row.score:.3f} |")
    if missing:
        lines += ["", "Not recorded: " + "; ".join(f"{route.name} ({route.study})" for route in missing) + "."]
    return "\n".join(lines) + "\n"


def figure(frame: pd.DataFrame) -> Any:
    """One panel per task, one curve per route."""
    from recombine.figures.study import lines

    means = frame.groupby(["task", "route", "setting"], sort=False)["training_flops"].transform("mean")
    return lines(
        frame.assign(compute=means / 1e9),
        x="compute",
        x_title="billions of operations of training",
        log=True,
        y="score",
        y_title="held-out score",
        series="route",
        facet="task",
        labels=list(dict.fromkeys(frame["route"])),
        name="compute",
        title="What does a unit of compute buy?",
        caption="Held-out score against the operations of all training steps, as the compiler counts them, one curve per route.",
        floor=0.0,
        ceiling=1.0,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--profile", default="laptop")
    parser.add_argument("--into", type=Path, default=HERE)
    given = parser.parse_args()
    try:
        frame, missing = collected([load_store(path) for path in given.stores], given.profile)
    except BadInput as error:
        parser.error(str(error))
    (given.into / "compute.md").write_text(page(frame, missing, given.profile), encoding="utf-8")
    figure(frame).save(given.into / "compute.png")


if __name__ == "__main__":
    main()
