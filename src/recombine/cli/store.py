"""`recombine store ...`: delete, archive, tag and merge the runs of a store."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from recombine.cli.output import CheckFailed, answer, asked_rows, errors, message, print_asked, print_json, say, table
from recombine.errors import BadInput
from recombine.progress import ProgressBar

# Imported in the functions: `recombine store --help` does not load JAX.
if TYPE_CHECKING:
    from recombine.store.archive import Archived

store_app = App(name="store", help="Look after a store: delete, archive, tag and merge runs.", help_format="plaintext")

Runs = Annotated[str, Parameter(help="The (beginnings of the) names of runs.")]
YesOption = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask.")]
DryOption = Annotated[bool, Parameter(name="--dry-run", help="Say what would be done, and stop.")]


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Conditions:
    """Which runs are meant: all conditions must hold."""

    tag: str | None = None
    """Runs with this tag."""
    study: str | None = None
    """Runs of this study."""
    sweep: str | None = None
    """Runs of this sweep."""
    failed: bool = False
    """Runs whose loss did not stay finite."""
    where: tuple[str, ...] = ()
    """Runs with this setting, e.g. model.width=64; may be repeated."""

    def selection(self, runs: tuple[str, ...]) -> rc.store.Selection:
        """These conditions, on the runs of these names."""
        return rc.store.Selection(runs, **vars(self))


ALL = Conditions()
"""No condition."""

SHOWN = 20
"""The number of runs that are shown one by one."""


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def megabytes(count: int) -> str:
    """A size as people read it."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"


def _opened(path: Path, *, writing: bool) -> rc.Store:
    """A store that must be there: these commands make none."""
    store = rc.load_store(path)
    return rc.Store(path) if writing else store


@store_app.command(name="ls")
def list_store(*, store_path: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """What a store holds: runs, studies and sweeps with how far they are, tags."""
    from recombine.store.tags import tags

    store = rc.load_store(store_path)
    states = {run_id: store.status(run_id) or "damaged" for run_id in store.names()}
    counts = {state: list(states.values()).count(state) for state in ("complete", "failed", "damaged")}
    held = sum(map(store.size, states))
    labels = {name: len(set(runs) & states.keys()) for name, runs in tags(store).items()}
    rows = asked_rows(store)
    if as_json:
        document = {"store": str(store_path), "runs": counts, "bytes": held, "asked": rows, "tags": labels}
        print_json(document | {"problems": store.problems})
        return
    facts = [*counts.items(), ("size", megabytes(held)), *((f"tag {name}", n) for name, n in labels.items())]
    say(table(f"runs in {store_path}", ["", ""], facts))
    print_asked(rows)


@store_app.command
def rm(
    *runs: Runs,
    conditions: Conditions = ALL,
    yes: YesOption = False,
    dry_run: DryOption = False,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Delete runs. Shows which, and asks first."""
    from recombine.store.selection import remove

    selection = conditions.selection(runs)
    if not selection:
        fix = "name runs, or use --tag, --study, --sweep, --failed, --where"
        raise BadInput("Name the runs to delete, or a condition.", fix=fix)
    store = _opened(store_path, writing=not dry_run)
    run_ids, kept = _removable(store, selection)
    document = {"removed": run_ids, "kept": kept, "bytes": sum(map(store.size, run_ids))}
    if not as_json:
        _show_removal(store, run_ids, kept, selection)
    if dry_run:
        if as_json:
            print_json(document | {"removed": [], "would_remove": run_ids})
        return
    if run_ids and not yes and not _agreed(len(run_ids), as_json):
        say("Nothing was deleted.")
        return
    with ProgressBar("deleting", unit="runs", quiet=as_json) as bar:
        document["removed"] = remove(store, run_ids, bar.update)
    forgotten = _forget(store, selection)
    deleted = f"{_runs(len(document['removed']))} deleted." if run_ids else "There is no such run: nothing to delete."
    answer(as_json, document | {"forgotten": forgotten}, deleted)


def _removable(store: rc.Store, selection: rc.store.Selection) -> tuple[list[str], dict[str, str]]:
    """The runs to delete; and those that stay, as another study or sweep uses them (unless they were named)."""
    from recombine.store.selection import used_by_others

    run_ids = selection.run_ids(store)
    by_user = (selection.study or selection.sweep) and not selection.runs
    kept = used_by_others(store, run_ids, selection) if by_user else {}
    return [run_id for run_id in run_ids if run_id not in kept], kept


def _forget(store: rc.Store, selection: rc.store.Selection) -> list[str]:
    """A study or sweep that was deleted as a whole is not to be resumed. What a study found is kept."""
    from recombine.store.requests import forget
    from recombine.store.selection import asked

    if selection != rc.store.Selection(study=selection.study, sweep=selection.sweep):
        return []
    chosen = (("study", selection.study), ("sweep", selection.sweep))
    gone = [request for kind, name in chosen if name is not None for request in asked(store, name, kind)]
    for request in gone:
        forget(store, request)
    return [request["name"] for request in gone]


def _show_removal(store: rc.Store, run_ids: Sequence[str], kept: dict[str, str], selection: rc.store.Selection) -> None:
    from recombine.store.selection import used_by_others

    users = used_by_others(store, run_ids, selection)
    rows = []
    for run_id in run_ids[:SHOWN]:
        status, size = store.status(run_id) or "damaged", megabytes(store.size(run_id))
        rows.append((run_id, status, size, users.get(run_id, "")))
    if run_ids:
        title = f"To delete from {store.path}: {_runs(len(run_ids))}"
        say(table(title, ["run", "", "size", "used by"], rows, left=2))
    if len(run_ids) > SHOWN:
        say(f"... and {len(run_ids) - SHOWN} more")
    if kept:
        names = sorted({name for users in kept.values() for name in users.split(", ")})
        used = f"used by {', '.join(names)} too"
        say(f"{_runs(len(kept))} will stay, {used}. Name them to delete them all the same.", soft_wrap=True)


def _agreed(number: int, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise BadInput("Cannot ask for confirmation: this is not a terminal.", fix="use --yes, or --dry-run to look")
    errors().print(f"Delete {_runs(number)} for good? [y/N] ", end="", highlight=False, markup=False)
    return input().strip().lower() in ("y", "yes")


@store_app.command
def archive(
    file: Path,
    *runs: Runs,
    conditions: Conditions = ALL,
    remove: bool = False,
    dry_run: DryOption = False,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write runs (all, or those that are meant) and the records of their studies and sweeps to one file.

    Args:
        file: The file to write: .zip, .tar.gz or .tgz.
        remove: Then delete the runs from the store, if the file could be read back.
    """
    from recombine.store.archive import archive as write_archive
    from recombine.store.selection import with_ancestors

    selection = conditions.selection(runs)
    store = _opened(store_path, writing=remove and not dry_run)
    run_ids = with_ancestors(store, selection.run_ids(store))
    if dry_run:
        document = {"would_archive": run_ids, "bytes": sum(map(store.size, run_ids))}
        size = megabytes(document["bytes"])
        answer(as_json, document, f"{_runs(len(run_ids))} would be archived, {size} before packing.")
        return
    with ProgressBar("packing and checking", quiet=as_json) as bar:
        made = write_archive(store, file, run_ids, bar.update)
    document = dataclasses.asdict(made) | {"path": str(file), "removed": [], "problems": store.problems}
    if remove:
        document["removed"] = _remove_archived(store, selection, made, as_json)
    if as_json:
        print_json(document)
    else:
        names = ", ".join(name for _, name in made.asked)
        records = f" with the records of {names}" if names else ""
        size = megabytes(made.bytes)
        say(f"{_runs(len(made.runs))}{records} in {file} ({size}), read back and checked.", soft_wrap=True)
        if remove:
            say(f"{len(document['removed'])} of them were deleted from {store_path}.", soft_wrap=True)
    if made.left_out or (remove and made.changed):
        what = [f"{len(made.left_out)} damaged runs were left out"] if made.left_out else []
        what += [f"{len(made.changed)} runs changed meanwhile and were not deleted"] if made.changed else []
        raise CheckFailed(f"{'; '.join(what)}.", fix="`recombine doctor --store DIR` says what is damaged")


def _remove_archived(store: rc.Store, selection: rc.store.Selection, made: Archived, as_json: bool) -> list[str]:
    """Delete what is safely in the archive. Runs that another study or sweep uses stay, as when deleting."""
    from recombine.store.requests import forget, requests
    from recombine.store.selection import remove

    removable, kept = _removable(store, selection)
    safe = [run_id for run_id in made.runs if run_id in set(removable) - set(made.changed)]
    with ProgressBar("deleting", unit="runs", quiet=as_json) as bar:
        gone = remove(store, safe, bar.update)
    if not made.changed:
        # They are in the archive as a whole: not to be resumed here.
        for request in requests(store):
            if (request["request"], request["name"]) in made.asked:
                forget(store, request)
    if kept and not as_json:
        message(f"{_runs(len(kept))} will stay in the store: other studies or sweeps use them.")
    return gone


@store_app.command
def merge(*others: Path, store_path: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Take in other stores or archives. Runs that are there already stay as they are.

    Args:
        others: Stores (folders) or archives to merge.
    """
    from recombine.store.merge import merge as merge_into

    if not others:
        raise BadInput("Name at least one store or archive to merge.", fix="name stores (folders) or archives")
    for other in others:
        if not other.exists():
            raise BadInput(f"There is no store or archive {other}.", fix="name a folder, a .zip or a .tar.gz file")
    store = rc.Store(store_path)
    results = {}
    for other in others:
        with ProgressBar(f"taking in {other.name}", quiet=as_json) as bar:
            results[str(other)] = merge_into(store, other, bar.update)
    conflicts = [text for result in results.values() for text in result.conflicts]
    merged = {name: dataclasses.asdict(result) for name, result in results.items()}
    columns = ["", "new runs", "known runs", "measured", "records", "tags", "notes", "conflicts"]
    rows = [
        (name, len(new.runs), new.known, new.measurements, len(new.records), new.tags, new.notes, len(new.conflicts))
        for name, new in results.items()
    ]
    document = {"store": str(store_path), "merged": merged, "conflicts": conflicts}
    answer(as_json, document, table(f"Taken into {store_path}", columns, rows))
    for text in conflicts:
        message(f"conflict: {text}", style="yellow")
    if conflicts:
        raise CheckFailed(f"{len(conflicts)} conflicts.", fix="everything else was merged; look at both and delete one")


@store_app.command
def tag(
    name: str,
    *runs: Runs,
    conditions: Conditions = ALL,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Give runs a tag; `recombine ls --tag NAME` lists them.

    Args:
        name: The tag.
    """
    from recombine.store.tags import add_tag, tags

    selection = conditions.selection(runs)
    store = _opened(store_path, writing=True)
    if not selection:
        fix = "name runs, or use --study, --sweep, --failed, --where"
        raise BadInput(f"Name the runs to tag {name!r}, or a condition.", fix=fix)
    run_ids = selection.run_ids(store)
    new = add_tag(store, name, run_ids)
    document = {"tag": name, "runs": tags(store).get(name, []), "new": new}
    answer(as_json, document, f"{_runs(len(new))} tagged {name!r}; {len(run_ids) - len(new)} had it already.")


@store_app.command
def untag(name: str, *runs: str, store_path: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Take a tag from runs, or from all that have it.

    Args:
        name: The tag.
        runs: Names of runs, or their beginnings; by default all runs with the tag.
    """
    from recombine.store.tags import drop_tag, tags

    store = _opened(store_path, writing=True)
    held = tags(store).get(name, [])
    # A run that is gone from the store can still be named in full.
    chosen = [run if run in held else store.full_name(run) for run in runs] if runs else None
    gone = drop_tag(store, name, chosen)
    document = {"tag": name, "runs": tags(store).get(name, []), "removed": gone}
    answer(as_json, document, f"The tag {name!r} was taken from {_runs(len(gone))}.")
