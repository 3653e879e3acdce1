"""Notes: what people write about a run. They are not part of the hash.

<store>/notes/<run>.json has the notes of one run, oldest first; it is replaced atomically.
"""

from __future__ import annotations

from typing import Any

from recombine.errors import BadInput
from recombine.store.files import explained, read_record
from recombine.store.provenance import precise_now
from recombine.store.store import Store
from recombine.store.tags import locked

FOLDER = "notes"

LONGEST = 10_000
"""The most characters of a note."""

Note = dict[str, str]
"""A note: its `text` and its `time`."""


def notes(store: Store) -> dict[str, list[Note]]:
    """The notes of every run that has some, oldest first. A damaged record is reported and left out."""
    return {record["run"]: record["notes"] for record in store.records(FOLDER, "the notes of a run", _sound).values()}


def notes_of(store: Store, run_id: str) -> list[Note]:
    """The notes of one run, oldest first. A damaged record raises StoreError."""
    path = store.path / FOLDER / f"{run_id}.json"
    return read_record(path, "the notes of a run", _sound)["notes"] if path.exists() else []


def _sound(file: str, record: dict[str, Any]) -> bool:
    own = record.get("notes")
    return (
        file == f"{record.get('run')}.json"
        and isinstance(own, list)
        and all(
            isinstance(note, dict)
            and all(isinstance(note.get(name), str) for name in ("text", "time"))
            and 0 < len(note["text"].strip()) <= LONGEST
            for note in own
        )
    )


def add_note(store: Store, run_id: str, text: str, time: str | None = None) -> bool:
    """Add a note to a run. Two processes may do so at once, and both notes stay.

    Args:
        store: The store.
        run_id: The full name of the run.
        text: The note.
        time: When it was written; by default now.

    Returns:
        Whether it is new. A note with the same text and time is not added twice.

    Example:
        ```python
        add_note(store, store.full_name("3f2a"), "the loss jumps at step 400")
        ```
    """
    text = text.strip()
    if not text:
        raise BadInput("The note is empty.", fix='write it in quotes: recombine note RUN "text"')
    if len(text) > LONGEST:
        raise BadInput(f"The note has {len(text):,} characters; at most {LONGEST:,} fit.", fix="write less")
    with locked(store, FOLDER):
        held = notes_of(store, run_id)  # Overwriting a damaged record would lose its notes.
        note = {"text": text, "time": precise_now() if time is None else time}
        if time is not None and note in held:
            return False
        own = sorted([*held, note], key=lambda each: each["time"])
        store.write_record(FOLDER, run_id, {"run": run_id, "notes": own})
    return True


def drop_notes(store: Store, run_id: str) -> list[Note]:
    """Delete all notes of a run; returns them."""
    with locked(store, FOLDER):
        held = notes_of(store, run_id)
        with explained(store.path):
            (store.path / FOLDER / f"{run_id}.json").unlink(missing_ok=True)
    return held
