"""`recombine ls` of runs, by the store's index."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import recombine as rc
from recombine.cli.output import asked_rows, check_problems, looked, mean_text, print_asked, print_json, say, table

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 200
"""The most lines that people are shown, if they do not ask for more."""

LONGEST = 60
"""The most characters of a note in a list."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """What was asked of a list of runs."""

    where: str | None = None
    sort: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    tag: str | None = None
    limit: int | None = None


def list_runs(store: rc.Store, asked: Asked, as_json: bool) -> None:
    """Print the runs of a store: all, or those that a filter keeps, or groups of them."""
    from recombine.store.tags import tagged

    index = looked(store, as_json)
    kept: dict[str, Any] = {"where": asked.where, "sort": asked.sort, "columns": asked.columns or None}
    kept |= {"runs": None if asked.tag is None else tagged(store, asked.tag), "refresh": False}
    limit = asked.limit if as_json or asked.limit is not None else MOST_LINES
    if asked.group:
        frame = index.frame(**kept, group=asked.group)
        if as_json:
            print_json(_records(frame.iloc[: asked.limit]))
        else:
            say(
                _group_table(
                    frame.iloc[:limit],
                    f"{len(frame)} {'group' if len(frame) == 1 else 'groups'} of runs in {store.path}",
                )
            )
            _say_more(len(frame), limit)
        check_problems(store)
        return
    records = index.records(**kept)
    if as_json:
        print_json(records[:limit])
        check_problems(store)
        return
    title = f"{len(records)} runs in {store.path}" + ("" if asked.tag is None else f" tagged {asked.tag!r}")
    shown = records[:limit]
    say(_named_table(title, shown, index) if asked.columns else _usual_table(title, shown))
    _say_more(len(records), limit)
    if asked.tag is None and asked.where is None:
        print_asked(asked_rows(store, "sweep", indexed=True))
    check_problems(store)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as plain values."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _say_more(number: int, limit: int | None) -> None:
    if limit is not None and number > limit:
        say(f"... and {number - limit:,} more: --limit {number} shows all, --where fewer.")


def _named_table(title: str, records: Sequence[dict[str, Any]], index: rc.store.Index) -> Any:
    names = list(records[0]) if records else []
    kinds = index.kinds
    texts = [name for name in names if kinds.get(name) != "number"]
    left = (
        len(names) - len([name for name in names if kinds.get(name) == "number"]) if names[: len(texts)] == texts else 1
    )
    rows = [[_cell(name, value) for name, value in record.items()] for record in records]
    return table(title, names, rows, left=max(1, left))


def _cell(name: str, value: Any) -> Any:
    if name == "note" and isinstance(value, str):
        return _short(value)
    return str(value) if isinstance(value, (list, dict)) else value


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _usual_table(title: str, records: Sequence[dict[str, Any]]) -> Any:
    columns = ["run", "family", "space", "trained on", "model", "steps", "in", "held out"]
    more = [name for name in ("tags", "note") if any(record.get(name) for record in records)]
    rows = [(*_row(record), *(_short(record.get(name) or "") for name in more)) for record in records]
    return table(title, [*columns, *more], rows, left=3)


def _row(record: dict[str, Any]) -> tuple[Any, ...]:
    """A run in one line of a terminal."""
    trained_on, share = record["support"], record.get("support.held_out")
    if record.get("support.number") or share:
        trained_on = str(record.get("support.number") or f"{1 - (share or 0):.0%}")
    failed = record["failed_at"]
    return (
        record["run"][:8],
        record["family"],
        _numbers(record, "space"),
        trained_on,
        f"{record['model']} {_numbers(record, 'model')}",
        record["steps"],
        record.get("score_in") if failed is None else "failed",
        record.get("score_held_out") if failed is None else f"at step {failed}",
    )


def _numbers(record: dict[str, Any], component: str) -> str:
    """A component by its numbers: `16,3`; by its kind where it has none."""
    own = {
        name.removeprefix(f"{component}."): value for name, value in record.items() if name.startswith(f"{component}.")
    }
    found = [str(value) for name, value in own.items() if isinstance(value, int) and name != "min_active"]
    return ",".join(found) or record[component]


def _group_table(frame: pd.DataFrame, title: str) -> Any:
    """One line per group: its values, the number of runs, and each mean with its interval."""
    names = list(frame.columns)
    numbers = [name for name in names if f"{name}_low" in names]
    keys = names[: names.index("runs")]
    rows = []
    for record in _records(frame):
        means = []
        for name in numbers:
            means += [mean_text(*(record[name + end] for end in ("", "_low", "_high"))), record[f"{name}_n"]]
        rows.append([*(_cell(key, record[key]) for key in keys), record["runs"], *means])
    titles = [title for name in numbers for title in (f"{name} [95 % interval]", "n")]
    return table(title, [*keys, "runs", *titles], rows, left=len(keys))
