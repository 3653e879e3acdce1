"""An audit of a language model on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from recombine.audit.embers import LEVELS, Embers
from recombine.cli.audit_summary import interval_text
from recombine.cli.output import console, print_json, table, verdict_table
from recombine.endpoints.asking import answered
from recombine.plain import plain
from recombine.report.embers import share_rows

if TYPE_CHECKING:
    from recombine.endpoints.embers_audit import EmbersAudit
    from recombine.endpoints.kept import Kept
    from recombine.language.items import Item

SHARES = "Right answers, by probability of the text"
WIDEST = 1000
"""Columns of a terminal in which any table would fit."""


def say(made: EmbersAudit, files: Mapping[str, str]) -> None:
    """What came of the questions; what is missing is not said here, but with the error that it is."""
    out = console()
    found = made.found
    right = f", {interval_text(found.right)} right" if found is not None else ""
    _line(out, f"{made.settings['model']}: {made.items} items, {len(made.answers)} answered{right}", "bold")
    if found is not None:
        _say_found(found, out)
        out.print(verdict_table([verdict.record() for verdict in found.verdicts]))
    for note in (*made.remarks, *(() if found is None else found.notes)):
        _line(out, note, "dim")
    for name in files.values():
        _line(out, f"written: {name}")


def say_dry(items: Sequence[Item], kept: Kept, notes: Sequence[str], *, as_json: bool) -> None:
    """How many items there are of each kind, how many are answered already, and an example of each task."""
    held = kept.read()
    done = {item.name for item in items if answered(held.get(item.name))}
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kinds.setdefault((item.task, item.variant), []).append(item)
    examples = {task: members[0].prompt for (task, _), members in reversed(kinds.items())}
    if as_json:
        counts = [
            {
                "task": task,
                "variant": variant,
                "items": len(members),
                "answered": sum(one.name in done for one in members),
            }
            for (task, variant), members in kinds.items()
        ]
        document = {"items": len(items), "answered": len(done), "kinds": counts, "examples": examples}
        print_json(document | {"notes": list(notes)})
        return
    rows = [
        [plain(task), variant, str(len(members)), str(sum(one.name in done for one in members))]
        for (task, variant), members in kinds.items()
    ]
    out = console()
    out.print(table("", ["task", "variant", "items", "answered"], rows, left=2))
    for task, prompt in reversed(examples.items()):
        out.print(plain(task), style="bold", markup=False, highlight=False)
        out.print("\n".join(plain(one) for one in prompt.splitlines()), markup=False, highlight=False)
    for note in notes:
        _line(out, note, "dim")
    told = f"{len(items) - len(done)} of {len(items)} questions would be asked"
    out.print(told, style="bold", markup=False, highlight=False)


def _line(out: Console, text: str, style: str | None = None) -> None:
    out.print(plain(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _say_found(found: Embers, out: Console) -> None:
    shares = _shares(found, whole=True)
    if out.measure(shares, options=out.options.update_width(WIDEST)).maximum > out.width:
        # Broken over lines, nobody could read them.
        shares = _shares(found, whole=False)
    out.print(shares)
    if found.weights:
        weights = [[one.name, interval_text(one.weight, sign=True)] for one in found.weights]
        out.print(table("Log-odds (10 nats, 10 characters)", ["", "weight [95 % interval]"], weights))


def _shares(found: Embers, *, whole: bool) -> Table:
    """A row for each task and variant; unless `whole`, levels have no intervals, which --json and the page have."""
    rows = []
    for task, variant, items, by_level in share_rows(found):
        cells = [interval_text(by_level["all"].right)]
        for level in LEVELS:
            share = by_level[level].right if level in by_level else None
            cells.append("-" if share is None else interval_text(share) if whole else f"{share.estimate:.2f}")
        rows.append([plain(task), variant, str(items), *cells])
    return table(SHARES, ["task", "variant", "items", "all", *LEVELS], rows, left=2)
