"""`recombine note`: what people write about a run."""

from __future__ import annotations

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from recombine.cli.output import answer, table
from recombine.errors import BadInput


def note(
    run: str,
    text: str | None = None,
    *,
    clear: bool = False,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write a note on a run, or show its notes. `recombine ls` and `recombine show` show them too.

    Args:
        run: The (beginning of the) name of a run.
        text: The note, in quotes; without it the notes of the run are shown.
        clear: Delete all notes of the run.
    """
    from recombine.store.notes import add_note, drop_notes, notes_of

    if clear and text is not None:
        raise BadInput("--clear deletes notes and writes none.", fix="leave out the text, or --clear")
    store = rc.load_store(store_path)
    run_id = store.full_name(run)
    if clear or text is not None:
        store = rc.Store(store_path)
    removed = len(drop_notes(store, run_id)) if clear else 0
    if text is not None:
        add_note(store, run_id, text)
    own = notes_of(store, run_id)
    document = {"run": run_id, "notes": own, "removed": removed}
    shown = table(
        f"notes on run {run_id}",
        ["written", "note"],
        [(each["time"][:19].replace("T", " "), each["text"]) for each in own],
        left=2,
    )
    answer(as_json, document, shown if own else f"There are no notes on run {run_id}.")
