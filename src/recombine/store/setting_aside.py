"""Moving damaged files to set-aside/, with a note. Nothing is ever deleted."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from recombine.store.files import write_json
from recombine.store.provenance import now

FOLDER, NOTE = "set-aside", ".note.json"


def set_aside(store: Path, damaged: Path, name: str, why: str) -> Path:
    """Move a file or folder to `set-aside/` under a new name, with a note that says why."""
    folder = store / FOLDER
    folder.mkdir(exist_ok=True)
    place = folder / f"{name}-{uuid.uuid4().hex[:8]}"
    while os.path.lexists(place):
        place = folder / f"{name}-{uuid.uuid4().hex}"
    note = place.with_name(place.name + NOTE)
    what = os.path.relpath(damaged, store)
    # The note first: if it cannot be written, nothing is moved.
    write_json(note, {"what": what, "when": now(), "why": why}, store / "temporary")
    try:
        os.rename(damaged, place)
    except FileNotFoundError:
        note.unlink(missing_ok=True)  # It did not exist, or another process moved it.
    return place


def moved(store: Path) -> list[Path]:
    """All files and folders in set-aside/."""
    folder = store / FOLDER
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.endswith(NOTE))
