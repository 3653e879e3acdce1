"""The page of one run: how it ended, its scores and settings, its line of parents, and its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recombine.errors import BadInput, did_you_mean
from recombine.figures.base import Figure
from recombine.store.manifest import ENDING
from recombine.store.requests import requests
from recombine.store.store import Store
from recombine.store.stored_run import StoredRun
from recombine.store.tables import settings_of, with_headline
from recombine.store.tags import tags
from recombine.view.run_figures import FIGURES, NothingToDraw
from recombine.view.viewer import Viewer


def record(viewer: Viewer, run: str) -> dict[str, Any]:
    """All that is known of a run without drawing its tasks again."""
    store = viewer.store
    found = store.load(_name(run))
    manifest = found.manifest
    scores = with_headline(manifest["config"]["family"]["kind"], store.summaries(found.run_id))
    return {
        "run": found.run_id,
        "ending": {name: manifest[name] for name in ENDING if name != "run"},
        "scores": scores,
        "settings": [{"name": name, "value": value} for name, value in settings_of(manifest).items()],
        "line": _line(store, found),
        "children": _children(viewer, found.run_id),
        "tags": sorted(tag for tag, runs in tags(store).items() if found.run_id in runs),
        "requests": [
            {"kind": request["request"], "name": request["name"]}
            for request in requests(store)
            if found.run_id in request["runs"]
        ],
        "measurements": [each["measurement"]["kind"] for _, each in store.measured(found.run_id)],
        "figures": [{"name": name, "title": title} for name, (title, _) in FIGURES.items()],
        "provenance": manifest.get("provenance", {}),
    }


def figure(viewer: Viewer, run: str, figure: str) -> dict[str, Any]:
    """One figure of a run as a Vega-Lite specification, or the reason why there is none."""
    if figure not in FIGURES:
        raise BadInput(f"A run has no figure {figure[:50]!r}.", fix=did_you_mean(figure, FIGURES))
    store = viewer.store
    found = store.load(_name(run))
    measured = tuple(sorted(path.name for path, _ in store.measured(found.run_id)))
    return viewer.kept(("run", found.run_id, figure, measured), lambda: _drawn(FIGURES[figure][1], store, found))


def _drawn(draw: Callable[[Store, StoredRun], Figure], store: Store, run: StoredRun) -> dict[str, Any]:
    from recombine.figures.embed import chart_json

    try:
        made = draw(store, run)
    except NothingToDraw as reason:
        return {"nothing": str(reason)}
    spec = json.loads(chart_json(made.chart))
    return {"name": made.name, "title": made.title, "caption": made.caption, "spec": spec}


def _name(run: str) -> str:
    """A name of a run: hexadecimal digits only, so it is never a path."""
    if not run or not run.isalnum():
        raise BadInput(f"{run[:50]!r} is not the name of a run.")
    return run


def _line(store: Store, run: StoredRun) -> dict[str, Any]:
    """The runs that a run starts from, as a tree."""

    def grow(config: Any) -> dict[str, Any]:
        trained = f"trains {', '.join(config.trained)}" if config.trained else "trains all weights"
        return {
            "run": config.run_id,
            "words": f"{config.model.kind}, {config.recipe.steps:,} steps, {trained}",
            "status": store.status(config.run_id) or "not in the store",
            "parents": [grow(parent) for parent in config.parents],
        }

    return grow(run.config)


def _children(viewer: Viewer, run: str) -> list[str]:
    """The runs that start from a run."""
    index = viewer.index()
    if "parents" not in index.columns:
        return []
    frame = index.frame(where=f"contains(parents, '{run}')", columns=["run"], refresh=False)
    return [str(name) for name in frame["run"]][:50]
