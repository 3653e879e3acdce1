"""`Index`: the runs of a store as one table that is kept up to date without reading old runs again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recombine.errors import StoreError
from recombine.progress import StepCallback, no_progress
from recombine.store import tables
from recombine.store.index import file
from recombine.store.index.columns import frame_of, joined, table_of, values_of
from recombine.store.index.groups import grouped
from recombine.store.index.query import Query, full_name
from recombine.store.index.stamps import MEASUREMENTS, file_names, latest_change, now, settled, stamp
from recombine.store.notes import Note, notes
from recombine.store.store import Store, check_marker
from recombine.store.tags import tags

if TYPE_CHECKING:
    import pandas as pd

STAMP, FILES = "#stamp", "#files"
"""Columns of the file that no answer shows: the stamp of a run (none: to be read again), and its files as JSON."""

Names = str | Sequence[str]


@dataclasses.dataclass(frozen=True)
class Changes:
    """What an index found since it last looked."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Runs that were read again: they got a measurement, or changed too recently to be sure."""
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.removed)


class Index:
    """The runs of a store as a table: one row per sound run, with its settings, how it ended, and its summary numbers.

    Columns are those of `Store.runs_df`, and more: `made` (when the run was stored), `measured` (its measurements), and,
    where there are any, `tags` and `note`.

    The table is kept in `index.cache` in the store. It is never the truth: every use compares it with the folder (a
    listing and the state of each file, nothing is read), reads what is new or changed, and forgets what is gone. So it
    may be deleted at any time, and several processes may use it at once. Where the store cannot be written, it is in
    memory. Damaged runs are never in the table. They are tried again each time, and reported in `store.problems`.

    An index may be used by several threads.

    Example:
        ```python
        index = rc.load_store("runs").index
        index.frame(where="family = 'scan' and width >= 128", sort="-score_held_out", limit=20)
        index.frame(group=("family", "width"), columns="score_held_out")
        index.refresh().new  # the names of runs that were stored since
        ```
    """

    def __init__(self, store: Store) -> None:
        """An index of a store. Nothing is read before its first use.

        Args:
            store: The store. `store.index` is the one that all users of this store share.
        """
        self.store = store
        self.problems: list[str] = []
        """What could not be read when the index last looked, in words."""
        self._path = store.path / file.NAME
        self._table: pa.Table | None = None
        self._shown: pa.Table = table_of([])
        self._labels: tuple[dict[str, list[str]], dict[str, list[Note]]] | None = None
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._shown.num_rows

    @property
    def columns(self) -> list[str]:
        """The names of all columns, as of the last look."""
        return list(self._shown.column_names)

    @property
    def kinds(self) -> dict[str, str]:

        return {field.name: _kind(field.type) for field in self._shown.schema}

    def column(self, name: str) -> str:
        """The full name of a column, as of the last look.

        Args:
            name: Its name, or the last part of it where that is unique, such as `width`.

        Returns:
            The full name. None or several that fit raise `BadInput`.
        """
        return full_name(self.columns, name)

    def refresh(self, step: StepCallback = no_progress) -> Changes:
        """Look what is new, changed or gone. Only new and changed runs are read.

        Args:
            step: Called with the number of runs that were read and of those to read.

        Returns:
            The names of new, changed and removed runs.
        """
        with self._lock:
            return self._refresh(step)

    def frame(
        self,
        *,
        where: str | None = None,
        sort: Names = (),
        columns: Names | None = None,
        group: Names = (),
        runs: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        refresh: bool = True,
    ) -> pd.DataFrame:
        """Filter, group and sort the runs.

        Args:
            where: One SQL expression over the columns, such as "width >= 128 and family = 'scan'". The last part of a
                name is enough where it is unique.
            sort: Columns to sort by; `-score_held_out` sorts from the largest down. Missing values are last. By
                default runs are sorted by name.
            columns: The columns of the result; by default all. With `group`, the numbers to average; by default
                `score_in` and `score_held_out`.
            group: Columns whose values make groups. The result then has one row per group: `runs`, and for each number
                its mean, the ends of the 95 % t interval of the mean over replicates (`..._low`, `..._high`; none for
                a single one) and the number of replicates that have it (`..._n`). A replicate is what shares all seeds;
                its runs in a group are averaged first.
            runs: Only runs among these, by their full names.
            limit: At most this many rows.
            offset: Leave out this many rows before them.
            refresh: Look first what is new, changed or gone. Without it the answer is as of the last look.

        Returns:
            A DataFrame. A filter, name or column that does not fit raises `BadInput`.

        Example:
            ```python
            store.index.frame(where="status = 'complete'", sort=("width", "-score_held_out"), columns=("run", "width"))
            ```
        """
        if group:
            table = self._table_now(runs, refresh)
            if len(table.column_names) < 2:
                Query(table).check(where)
                return frame_of(table, table.column_names)
            found = grouped(table, _tuple(group), None if columns is None else _tuple(columns), where, _tuple(sort))
            return found.iloc[_part(limit, offset)].reset_index(drop=True)
        found = self._chosen(where, _tuple(sort), columns, runs, limit, offset, refresh)
        return frame_of(found, found.column_names)

    def records(
        self,
        *,
        where: str | None = None,
        sort: Names = (),
        columns: Names | None = None,
        runs: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[dict[str, Any]]:
        """The same as `frame` without groups, as plain values: whole numbers stay whole, and what is missing is None.

        Returns:
            One dictionary per run, which can be written as JSON.

        Example:
            ```python
            store.index.records(where="status = 'failed'", columns=("run", "failed_at"))
            ```
        """
        found = self._chosen(where, _tuple(sort), columns, runs, limit, offset, refresh)
        names = found.column_names
        values = zip(*(values_of(found, name) for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in values]

    def held(self, runs: Sequence[str], *, refresh: bool = True) -> dict[str, tuple[str | None, frozenset[str]]]:
        """What the store has of some runs.

        Args:
            runs: Full names.
            refresh: Look first what is new, changed or gone.

        Returns:
            For each run its status (None: there is no sound run) and the full names of its sound measurements.

        Example:
            ```python
            store.index.held(request["runs"])
            ```
        """
        with self._lock:
            if refresh or self._table is None:
                self._refresh(no_progress)
            assert self._table is not None
            table = self._table
        if not table.num_rows:
            return dict.fromkeys(runs, (None, frozenset()))
        wanted, parsed = set(runs), {text: _measurements(text) for text in set(values_of(table, FILES))}
        found: dict[str, tuple[str | None, frozenset[str]]] = dict.fromkeys(runs, (None, frozenset()))
        columns = (values_of(table, name) for name in ("run", "status", FILES, STAMP))
        for run, status, files, trusted in zip(*columns, strict=True):
            if run in wanted:
                names = parsed[files]
                if trusted is None:  # Perhaps with damaged measurements.
                    names = frozenset(name for name in names if self.store.measurement(run, name) is not None)
                found[run] = status, names
        return found

    def _chosen(
        self,
        where: str | None,
        sort: Sequence[str],
        columns: Names | None,
        runs: Sequence[str] | None,
        limit: int | None,
        offset: int,
        refresh: bool,
    ) -> pa.Table:
        table = self._table_now(runs, refresh)
        names = table.column_names
        query = Query(table)
        if len(names) < 2:  # Nothing is known of the columns of no runs.
            query.check(where)
            return table
        chosen = names if columns is None else [full_name(names, name) for name in _tuple(columns)]
        rows = query.rows(where, sort)[_part(limit, offset)]
        return table.select(list(dict.fromkeys(chosen))).take(pa.array(rows, pa.int64()))

    def _table_now(self, runs: Sequence[str] | None, refresh: bool) -> pa.Table:
        with self._lock:
            if refresh or self._table is None:
                self._refresh(no_progress)
            table = self._shown
        if runs is None:
            return table
        wanted = set(runs)
        return table.filter(pa.array([run in wanted for run in values_of(table, "run")], pa.bool_()))

    # What is kept

    def _refresh(self, step: StepCallback) -> Changes:
        table = self._kept() if self._table is None else self._table
        rows = {name: row for row, name in enumerate(values_of(table, "run"))}
        names = self.store.names()
        current = self._current(table, rows, names)
        reader = _Reader(self.store)
        records: dict[str, dict[str, Any]] = {}
        to_read = [name for name in names if name not in current]
        for number, name in enumerate(to_read):
            step(number, len(to_read))
            record = self._read(reader, name)
            if record is not None:
                records[name] = record
        step(len(to_read), len(to_read))
        self.problems = list(reader.problems)
        changes = _changes(table, rows, current, records)
        if changes or self._table is None or any(record[STAMP] is not None for record in records.values()):
            if len(current) < table.num_rows:
                table = table.take(pa.array([rows[name] for name in current], pa.int64()))
            self._table = joined([table, table_of(list(records.values()))])
            if changes or records:
                self._write()
        self._show(changes)
        for problem in self.problems:
            self.store.report(problem)
        return changes

    def _kept(self) -> pa.Table:
        """The table of the file, if there is a sound one whose headline scores are still those of the families."""
        found = file.read(self._path)
        if found is None or any(tables.metric_of(kind) != metric for kind, metric in found[1]["metrics"].items()):
            return table_of([])
        return found[0]

    def _current(self, table: pa.Table, rows: dict[str, int], names: Sequence[str]) -> dict[str, None]:
        """The runs whose files are those that were read."""
        stamps, files, root = values_of(table, STAMP), values_of(table, FILES), f"{self.store.path}/runs"
        listings = {text: json.loads(text) for text in set(files)}
        current = {}
        for name in names:
            row = rows.get(name)
            if row is None or stamps[row] is None:
                continue
            if stamp(f"{root}/{name}", listings[files[row]]) == stamps[row]:
                current[name] = None
        return current

    def _read(self, reader: _Reader, name: str) -> dict[str, Any] | None:
        """The row of a run; none if it is damaged."""
        folder, begin, problems = str(self.store.folder(name)), now(), len(reader.problems)
        files = file_names(folder)
        before = stamp(folder, files)
        records = tables.index_records(reader, [name])
        after, latest = stamp(folder, files), latest_change(folder, files)
        # What could not be read is tried again, and what may change under our eyes is read again.
        sound = len(reader.problems) == problems and before == after and settled(latest, begin)
        own = {STAMP: after if sound else None, FILES: json.dumps(files)}
        return records[0] | own if records else None

    def _write(self) -> None:
        """Keep the table, if the store can be written and is of this version."""
        assert self._table is not None
        with contextlib.suppress(StoreError):
            check_marker(self.store.path)
            metrics = {kind: tables.metric_of(kind) for kind in set(values_of(self._table, "family"))}
            file.write(self._path, self._table, {"metrics": metrics}, self.store.path / "temporary")

    def _show(self, changes: Changes) -> None:
        """Make the table that is shown: without what is only for the index, with tags and notes."""
        assert self._table is not None
        labels = tags(self.store), notes(self.store)
        if not changes and labels == self._labels:
            return
        shown = self._table.drop_columns([name for name in (STAMP, FILES) if name in self._table.column_names])
        shown = shown.sort_by("run").combine_chunks()
        owned: dict[str, list[str]] = {}
        for label, runs in sorted(labels[0].items()):
            for run in runs:
                owned.setdefault(run, []).append(label)
        written = {run: "; ".join(note["text"] for note in own) for run, own in labels[1].items()}
        for name, texts in (("tags", {run: " ".join(own) for run, own in owned.items()}), ("note", written)):
            if texts and shown.num_rows:
                shown = _with(shown, name, [texts.get(run) for run in values_of(shown, "run")])
        self._shown, self._labels = shown, labels


class _Reader(Store):
    """A store that collects its problems without logging them: damaged runs are read at each look."""

    def __init__(self, store: Store) -> None:
        self.path, self.problems = store.path, []

    def report(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _part(limit: int | None, offset: int) -> slice:
    return slice(offset, None if limit is None else offset + limit)


def _measurements(files: str) -> frozenset[str]:
    """The names of measurements among the files of a run."""
    names = (name.removeprefix(f"{MEASUREMENTS}/") for name in json.loads(files) if name.startswith(f"{MEASUREMENTS}/"))
    return frozenset(name.removesuffix(".json") for name in names if name.endswith(".json"))


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _kind(form: pa.DataType) -> str:
    if form == pa.null():
        return "nothing"
    if pa.types.is_boolean(form):
        return "truth"
    return "number" if pa.types.is_integer(form) or pa.types.is_floating(form) else "text"


def _with(table: pa.Table, name: str, texts: list[str | None]) -> pa.Table:
    """The table with a column of texts, which takes the place of another of this name."""
    if name in table.column_names:
        table = table.drop_columns([name])
    return table.append_column(name, pa.array(texts, pa.string()))


def _changes(
    table: pa.Table, rows: dict[str, int], current: dict[str, None], records: dict[str, dict[str, Any]]
) -> Changes:
    """What is new, gone, or other than before. A run that was read again and is as before is none of these."""
    new = tuple(name for name in records if name not in rows)
    again = [name for name in records if name in rows]
    before = table.take(pa.array([rows[name] for name in again], pa.int64()))
    old: dict[str, dict[str, Any]] = {name: {} for name in again}
    for column in before.column_names if again else ():
        for name, value in zip(again, values_of(before, column), strict=True):
            old[name] |= {} if value is None else {column: value}
    changed = tuple(name for name in again if _meaning(records[name]) != _meaning(old[name]))
    return Changes(new, changed, tuple(name for name in rows if name not in current and name not in records))


def _meaning(record: dict[str, Any]) -> dict[str, Any]:
    """A row without its stamp and without what is missing."""
    return {
        name: value
        for name, value in record.items()
        if name not in (STAMP, FILES) and value is not None and value == value
    }
