"""What runs, how far it is, and whether there is anything new: what every page asks for, every few seconds."""

from __future__ import annotations

from typing import Any

from recombine.store.requests import requests
from recombine.view.viewer import Viewer


def state(viewer: Viewer) -> dict[str, Any]:
    """The store, what was requested of it and is not done, commands that were started here, and problems."""
    there = viewer.has_store
    document: dict[str, Any] = {"store": str(viewer.store_path), "exists": there, "runs": 0, "requests": []}
    if there:
        store = viewer.store
        names = set(store.names())
        viewer.look(len(names))
        training = {path.stem for path in store.checkpoints.glob("*.safetensors")}
        document |= {
            "runs": len(names),
            "requests": [_progress(request, names, training) for request in requests(store)],
            "studies": len(list((store.path / "studies").glob("*.json"))),
            "problems": store.problems[-20:],
            "warning": viewer.warning,
            "reading": viewer.reading,
            "revision": viewer.revision,
        }
    return document | {"jobs": viewer.jobs.records()}


def _progress(request: dict[str, Any], names: set[str], training: set[str]) -> dict[str, Any]:
    """How many runs of a request are in the store. Listing the folder suffices, nothing is read."""
    runs = set(request["runs"])
    return {
        "kind": request["request"],
        "name": request["name"],
        "runs": len(runs),
        "done": len(runs & names),
        "training": len(runs & training),
        "time": request["time"],
    }
