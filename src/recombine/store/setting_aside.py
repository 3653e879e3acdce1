"""Moving what is damaged out of the way, with a note of what it was. Nothing is ever deleted."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from recombine.store.files import write_json
from recombine.store.provenance import now

FOLDER, NOTE = "set-aside", ".note.json"


def set_aside(store: Path, damaged: Path, name: str, why: str) -> Path:
    """Move a file or folder to `set-aside/` under a name that nothing there has; a note beside it says why."""
    folder = store / FOLDER
    folder.mkdir(exist_ok=True)
    place = folder / f"{name}-{uuid.uuid4().hex[:8]}"
    while os.path.lexists(place):
        place = folder / f"{name}-{uuid.uuid4().hex}"
    note = place.with_name(place.name + NOTE)
    what = os.path.relpath(damaged, store)
    # First: where it cannot be written, nothing is moved.
    write_json(note, {"what": what, "when": now(), "why": why}, store / "temporary")
    try:
        os.rename(damaged, place)
    except FileNotFoundError:
        note.unlink(missing_ok=True)  # It was not there, or another process was quicker.
    return place


def moved(store: Path) -> list[Path]:
    """All that was set aside."""
    folder = store / FOLDER
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.endswith(NOTE))
