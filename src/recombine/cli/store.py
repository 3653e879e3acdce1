"""`recombine store ...`: parse and call. Heavy imports happen inside the commands."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption

if TYPE_CHECKING:
    from recombine.store.selection import Selection

store_app = App(
    name="store", help="Look after a store: delete, archive, tag and merge runs.", help_format="plaintext"
)

Runs = Annotated[str, Parameter(help="The (beginnings of the) names of runs.")]
YesOption = Annotated[bool, Parameter(name=("--yes", "-y"), negative="", help="Do not ask.")]
DryOption = Annotated[
    bool, Parameter(name="--dry-run", negative="", help="Say what would be done, and stop.")
]


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Conditions:
    """Which runs are meant: all conditions must hold."""

    tag: Annotated[str | None, Parameter(help="Runs with this tag.")] = None
    study: Annotated[str | None, Parameter(help="Runs of this study.")] = None
    sweep: Annotated[str | None, Parameter(help="Runs of this sweep.")] = None
    failed: Annotated[bool, Parameter(negative="", help="Runs whose loss did not stay finite.")] = False
    where: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="Runs with this setting, e.g. model.width=64; may be repeated."),
    ] = ()

    def selection(self, runs: tuple[str, ...]) -> Selection:
        from recombine.store.selection import Selection

        return Selection(runs, self.tag, self.study, self.sweep, self.failed, self.where)


ALL = Conditions()
"""No condition."""


@store_app.command(name="ls")
def list_store(*, store: StoreOption = DEFAULT_STORE, json: JsonOption = False) -> None:
    """What a store holds: runs, studies and sweeps with how far they are, tags."""
    from recombine.cli.store_commands import overview_command

    overview_command(store, as_json=json)


@store_app.command
def rm(
    *runs: Runs,
    conditions: Conditions = ALL,
    yes: YesOption = False,
    dry_run: DryOption = False,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Delete runs. Shows which, and asks first."""
    from recombine.cli.store_commands import remove_command

    remove_command(conditions.selection(runs), store, yes=yes, dry_run=dry_run, as_json=json)


@store_app.command
def archive(
    file: Annotated[Path, Parameter(help="The file to write: .zip, .tar.gz or .tgz.")],
    *runs: Runs,
    conditions: Conditions = ALL,
    remove: Annotated[
        bool,
        Parameter(negative="", help="Then delete the runs from the store, if the file could be read back."),
    ] = False,
    dry_run: DryOption = False,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Write runs (all, or those that are meant) and the records of their studies and sweeps to one file."""
    from recombine.cli.store_commands import archive_command

    archive_command(file, conditions.selection(runs), store, remove=remove, dry_run=dry_run, as_json=json)


@store_app.command
def merge(
    *others: Annotated[Path, Parameter(help="Stores (folders) or archives to take in.")],
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Take in other stores or archives. Runs that are there already stay as they are."""
    from recombine.cli.store_commands import merge_command

    merge_command(others, store, as_json=json)


@store_app.command
def tag(
    name: Annotated[str, Parameter(help="The tag.")],
    *runs: Runs,
    conditions: Conditions = ALL,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Give runs a tag; `recombine ls --tag NAME` lists them."""
    from recombine.cli.store_commands import tag_command

    tag_command(name, conditions.selection(runs), store, as_json=json)


@store_app.command
def untag(
    name: Annotated[str, Parameter(help="The tag.")],
    *runs: Annotated[str, Parameter(help="The (beginnings of the) names of runs; else all that have it.")],
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Take a tag from runs, or from all that have it."""
    from recombine.cli.store_commands import untag_command

    untag_command(name, runs, store, as_json=json)
