"""The Evidence page: the document, and what takes longer to make, one study at a time."""

from __future__ import annotations

import logging
from typing import Any

from recombine.errors import BadInput, RecombineError
from recombine.view import evidence_document as source
from recombine.view.viewer import Viewer

log = logging.getLogger(__name__)


def document(viewer: Viewer) -> dict[str, Any]:
    """Every claim of every study of the store, then of the folders of results. Figures and runs come separately."""
    studies: list[dict[str, Any]] = []
    if viewer.has_store:
        for record in viewer.store.studies():
            try:
                studies.append(source.store_entry(record) | {"origin": "this store"})
            except (BadInput, KeyError, TypeError, ValueError) as error:
                viewer.store.report(f"The effects of the study {record['study']!r} cannot be read: {error}")
    taken = {study["id"] for study in studies}
    for number, folder in enumerate(viewer.results):
        try:
            found = source.evidence(folder, images=f"results/{number}/")["studies"]
        except RecombineError as error:
            log.warning(error.message)
            continue
        for study in found:
            name = f"{study['id']}-recorded" if study["id"] in taken else study["id"]
            studies.append(study | {"id": name, "origin": folder.as_posix()})
    return {"format": source.FORMAT, "studies": studies}


def figures(viewer: Viewer, entry: str) -> list[dict[str, Any]]:
    """The figures of a study of the store, drawn from its tables."""
    record = _record(viewer, entry)
    return viewer.kept(("figures", entry, _version(record)), lambda: source.store_figures(viewer.store, record))


def runs(viewer: Viewer, entry: str) -> dict[str, list[list[str]]]:
    """The names of the runs behind each replicate, by claim."""
    record = _record(viewer, entry)
    return viewer.kept(("behind", entry, _version(record)), lambda: source.runs_behind(record))


def _record(viewer: Viewer, entry: str) -> dict[str, Any]:
    for record in viewer.store.studies():
        if source.entry_id(record["study"], record["profile"]) == entry:
            return record
    raise BadInput(f"The store has no result called {entry[:100]!r}.")


def _version(record: dict[str, Any]) -> str:
    return str(record["provenance"].get("time"))
