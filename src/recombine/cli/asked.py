"""The studies and sweeps that were asked of a store, and how far they are."""

from __future__ import annotations

from typing import Any

from recombine.cli.output import console, table
from recombine.store.requests import requests, standing
from recombine.store.store import Store


def asked_rows(store: Store, kind: str | None = None) -> list[dict[str, Any]]:
    """The studies and sweeps that were asked of a store, and how far they are."""
    rows = []
    for request in requests(store, kind):
        how = standing(store, request)
        row = {"name": request["name"], "kind": request["request"], "cells": len(request.get("cells", ()))}
        row |= {"runs": how.runs, "done": how.done, "failed": how.failed}
        row |= {"measured": how.measured, "measurements": how.measurements, "complete": how.complete}
        rows.append(row | {"time": request["time"]})
    return rows


def print_asked(rows: list[dict[str, Any]], nothing: str | None = None) -> None:
    """Studies and sweeps, a line each."""
    if rows:
        lines = [
            (
                row["name"],
                row["kind"],
                row["cells"] or "",
                f"{row['done']} of {row['runs']}",
                row["failed"],
                f"{row['measured']} of {row['measurements']}",
                row["complete"],
            )
            for row in rows
        ]
        columns = ["asked", "", "cells", "runs done", "failed", "measured", "complete"]
        console().print(table("studies and sweeps", columns, lines, left=2))
        if not all(row["complete"] for row in rows):
            console().print("`recombine resume` finishes what is not.", highlight=False, markup=False)
    elif nothing is not None:
        console().print(nothing, highlight=False, markup=False)
