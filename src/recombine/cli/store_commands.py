"""The commands that look after a store: ls, rm, archive, merge, tag, untag."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recombine.cli.asked import asked_rows, print_asked
from recombine.cli.output import Told, console, errors, message, print_json, table
from recombine.cli.steps import steps
from recombine.errors import BadInput
from recombine.store.archive import Archived, archive
from recombine.store.merge import Merged, merge
from recombine.store.removal import remove, size
from recombine.store.requests import forget, requests
from recombine.store.selection import Selection, asked, named, used_by_others
from recombine.store.store import Store
from recombine.store.tags import add_tag, drop_tag, tags

SHOWN = 20
"""So many runs are shown one by one; of the rest the number."""


def _say(text: str) -> None:
    console().print(text, highlight=False, markup=False, soft_wrap=True)


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def megabytes(count: int) -> str:
    """A size as people read it."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"


def _opened(path: Path, *, writing: bool) -> Store:
    """A store that must be there: these commands make none."""
    store = Store(path, create=False)
    return Store(path) if writing else store


def overview_command(store_path: Path, *, as_json: bool) -> None:
    """What a store holds."""
    store = Store(store_path, create=False)
    words = {run_id: store.status(run_id) for run_id in store.names()}
    counts = {
        "complete": sum(word == "complete" for word in words.values()),
        "failed": sum(word == "failed" for word in words.values()),
        "damaged": sum(word is None for word in words.values()),
    }
    held = sum(size(store, run_id) for run_id in words)
    labels = {name: len(set(runs) & words.keys()) for name, runs in tags(store).items()}
    rows = asked_rows(store)
    if as_json:
        found = {"store": str(store_path), "runs": counts, "bytes": held, "asked": rows, "tags": labels}
        print_json(found | {"problems": store.problems})
        return
    facts = [*counts.items(), ("size", megabytes(held)), *((f"tag {name}", n) for name, n in labels.items())]
    console().print(table(f"runs in {store_path}", ["", ""], facts))
    print_asked(rows)


def remove_command(
    selection: Selection, store_path: Path, *, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Delete runs."""
    if not selection:
        raise BadInput(
            "Nothing says which runs to delete.",
            fix="name runs, or use --tag, --study, --sweep, --failed, --where",
        )
    store = _opened(store_path, writing=not dry_run)
    run_ids, kept = _removable(store, selection)
    document = {"removed": run_ids, "kept": kept, "bytes": sum(size(store, run_id) for run_id in run_ids)}
    if not as_json:
        _show_removal(store, run_ids, kept, selection)
    if dry_run:
        if as_json:
            print_json(document | {"removed": [], "would_remove": run_ids})
        return
    if run_ids and not yes and not _agreed(len(run_ids), as_json):
        _say("Nothing was deleted.")
        return
    with steps("deleting", quiet=as_json) as step:
        document["removed"] = remove(store, run_ids, step)
    forgotten = _forget(store, selection)
    if as_json:
        print_json(document | {"forgotten": forgotten})
    else:
        _say(
            f"{_runs(len(document['removed']))} deleted."
            if run_ids
            else "There is no such run: nothing to delete."
        )


def _removable(store: Store, selection: Selection) -> tuple[list[str], dict[str, str]]:
    """The runs to delete; and those that stay, as another study or sweep uses them (unless they were named)."""
    run_ids = selection.run_ids(store)
    by_user = (selection.study or selection.sweep) and not selection.runs
    kept = used_by_others(store, run_ids, selection) if by_user else {}
    return [run_id for run_id in run_ids if run_id not in kept], kept


def _forget(store: Store, selection: Selection) -> list[str]:
    """A study or sweep that was deleted as a whole is not to be resumed. What a study found is kept."""
    if selection != Selection(study=selection.study, sweep=selection.sweep):
        return []
    gone = [
        request
        for kind, name in (("study", selection.study), ("sweep", selection.sweep))
        if name is not None
        for request in asked(store, name, kind)
    ]
    for request in gone:
        forget(store, request)
    return [request["name"] for request in gone]


def _show_removal(store: Store, run_ids: Sequence[str], kept: dict[str, str], selection: Selection) -> None:
    users = used_by_others(store, run_ids, selection)
    rows = [
        (run_id, store.status(run_id) or "damaged", megabytes(size(store, run_id)), users.get(run_id, ""))
        for run_id in run_ids[:SHOWN]
    ]
    if run_ids:
        title = f"To delete from {store.path}: {_runs(len(run_ids))}"
        console().print(table(title, ["run", "", "size", "used by"], rows, left=2))
    if len(run_ids) > SHOWN:
        _say(f"... and {len(run_ids) - SHOWN} more")
    if kept:
        names = sorted({name for users in kept.values() for name in users.split(", ")})
        _say(
            f"{_runs(len(kept))} will stay, used by {', '.join(names)} too. Name them to delete them all the same."
        )


def _agreed(number: int, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise BadInput(
            "Deleting asks first, and nobody can answer here.", fix="add --yes, or --dry-run to look"
        )
    errors().print(f"Delete {_runs(number)} for good? [y/N] ", end="", highlight=False, markup=False)
    return input().strip().lower() in ("y", "yes")


def archive_command(
    file: Path, selection: Selection, store_path: Path, *, remove: bool, dry_run: bool, as_json: bool
) -> None:
    """Write runs to one file."""
    store = _opened(store_path, writing=remove and not dry_run)
    run_ids = selection.run_ids(store)
    if dry_run:
        document = {"would_archive": run_ids, "bytes": sum(size(store, run_id) for run_id in run_ids)}
        if as_json:
            print_json(document)
        else:
            _say(f"{_runs(len(run_ids))} would be archived, {megabytes(document['bytes'])} before packing.")
        return
    with steps("packing and checking", quiet=as_json) as step:
        made = archive(store, file, run_ids, step)
    document = dataclasses.asdict(made) | {"path": str(file), "removed": [], "problems": store.problems}
    if remove:
        document["removed"] = _remove_archived(store, selection, made, as_json)
    if as_json:
        print_json(document)
    else:
        names = ", ".join(name for _, name in made.asked)
        records = f" with the records of {names}" if names else ""
        _say(f"{_runs(len(made.runs))}{records} in {file} ({megabytes(made.bytes)}), read back and checked.")
        if remove:
            _say(f"{len(document['removed'])} of them were deleted from {store_path}.")
    if made.left_out or (remove and made.changed):
        what = [f"{len(made.left_out)} damaged runs were left out"] if made.left_out else []
        what += [f"{len(made.changed)} runs changed meanwhile and were not deleted"] if made.changed else []
        raise Told(f"{'; '.join(what)}.", fix="`recombine doctor --store DIR` says what is damaged")


def _remove_archived(store: Store, selection: Selection, made: Archived, as_json: bool) -> list[str]:
    """Delete what is safely in the archive. Runs that another study or sweep uses stay, as when deleting."""
    removable, kept = _removable(store, selection)
    safe = [run_id for run_id in made.runs if run_id in set(removable) - set(made.changed)]
    with steps("deleting", quiet=as_json) as step:
        gone = remove(store, safe, step)
    if not made.changed:
        # They are in the archive as a whole: not to be resumed here.
        for request in requests(store):
            if (request["request"], request["name"]) in made.asked:
                forget(store, request)
    if kept and not as_json:
        message(f"{_runs(len(kept))} will stay in the store: other studies or sweeps use them.")
    return gone


def merge_command(others: Sequence[Path], store_path: Path, *, as_json: bool) -> None:
    """Take in other stores and archives."""
    if not others:
        raise BadInput("Nothing says what to take in.", fix="name stores (folders) or archives")
    for other in others:
        if not other.exists():
            raise BadInput(
                f"There is no store or archive {other}.", fix="name a folder, a .zip or a .tar.gz file"
            )
    store = Store(store_path)
    results: dict[str, Merged] = {}
    for other in others:
        with steps(f"taking in {other.name}", quiet=as_json) as step:
            results[str(other)] = merge(store, other, step)
    conflicts = [text for one in results.values() for text in one.conflicts]
    if as_json:
        merged: dict[str, Any] = {name: dataclasses.asdict(one) for name, one in results.items()}
        print_json({"store": str(store_path), "merged": merged, "conflicts": conflicts})
    else:
        columns = ["", "new runs", "known runs", "measured", "records", "tags", "conflicts"]
        rows = [
            (name, len(one.runs), one.known, one.measurements, len(one.records), one.tags, len(one.conflicts))
            for name, one in results.items()
        ]
        console().print(table(f"Taken into {store_path}", columns, rows))
    for text in conflicts:
        message(f"conflict: {text}", style="yellow")
    if conflicts:
        raise Told(
            f"{len(conflicts)} conflicts.", fix="everything else was taken in; look at both and delete one"
        )


def tag_command(name: str, selection: Selection, store_path: Path, *, as_json: bool) -> None:
    """Tag runs."""
    store = _opened(store_path, writing=True)
    if not selection:
        raise BadInput(
            f"Nothing says which runs to tag {name!r}.",
            fix="name runs, or use --study, --sweep, --failed, --where",
        )
    run_ids = selection.run_ids(store)
    new = add_tag(store, name, run_ids)
    if as_json:
        print_json({"tag": name, "runs": tags(store).get(name, []), "new": new})
    else:
        _say(f"{_runs(len(new))} tagged {name!r}; {len(run_ids) - len(new)} had it already.")


def untag_command(name: str, runs: Sequence[str], store_path: Path, *, as_json: bool) -> None:
    """Take a tag away."""
    store = _opened(store_path, writing=True)
    held = tags(store).get(name, [])
    # A run that is gone from the store can still be named in full.
    chosen = [run if run in held else named(store, run) for run in runs] if runs else None
    gone = drop_tag(store, name, chosen)
    if as_json:
        print_json({"tag": name, "runs": tags(store).get(name, []), "removed": gone})
    else:
        _say(f"The tag {name!r} was taken from {_runs(len(gone))}.")
