"""The summary of an audit of a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from recombine.audit.embers.findings import LEVELS, Embers
from recombine.cli.audit_summary import interval_text
from recombine.cli.output import console, print_json, table, verdict_table
from recombine.endpoints.asking import answered
from recombine.plain import plain
from recombine.report.embers import share_rows

if TYPE_CHECKING:
    from recombine.endpoints.answer_cache import AnswerCache
    from recombine.endpoints.embers_audit import EmbersAudit
    from recombine.language.items import Item

SHARES = "Right answers, by probability of the text"
WIDEST = 1000
"""A terminal width at which every table fits."""


def say(result: EmbersAudit, files: Mapping[str, str]) -> None:
    """Print the result. Missing answers are reported as an error elsewhere."""
    out = console()
    findings = result.findings
    right = f", {interval_text(findings.right)} right" if findings is not None else ""
    _line(out, f"{result.settings['model']}: {result.items} items, {len(result.answers)} answered{right}", "bold")
    if findings is not None:
        _say_found(findings, out)
        out.print(verdict_table([verdict.record() for verdict in findings.verdicts]))
    for note in (*result.remarks, *(() if findings is None else findings.notes)):
        _line(out, note, "dim")
    for name in files.values():
        _line(out, f"written: {name}")


def say_dry(items: Sequence[Item], kept: AnswerCache, notes: Sequence[str], *, as_json: bool) -> None:
    """Print the number of items of each kind, how many are answered already, and an example of each task."""
    held = kept.read()
    done = {item.name for item in items if answered(held.get(item.name))}
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kinds.setdefault((item.task, item.variant), []).append(item)
    examples = {task: members[0].prompt for (task, _), members in reversed(kinds.items())}
    rows = [
        (task, variant, len(members), sum(one.name in done for one in members))
        for (task, variant), members in kinds.items()
    ]
    if as_json:
        names = ("task", "variant", "items", "answered")
        counts = [dict(zip(names, row, strict=True)) for row in rows]
        document = {"items": len(items), "answered": len(done), "kinds": counts, "examples": examples}
        print_json(document | {"notes": list(notes)})
        return
    out = console()
    shown = [(plain(task), *numbers) for task, *numbers in rows]
    out.print(table("", ["task", "variant", "items", "answered"], shown, left=2))
    for task, prompt in reversed(examples.items()):
        out.print(plain(task), style="bold", markup=False, highlight=False)
        out.print("\n".join(plain(one) for one in prompt.splitlines()), markup=False, highlight=False)
    for note in notes:
        _line(out, note, "dim")
    summary = f"{len(items) - len(done)} of {len(items)} questions would be asked"
    out.print(summary, style="bold", markup=False, highlight=False)


def _line(out: Console, text: str, style: str | None = None) -> None:
    out.print(plain(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _say_found(findings: Embers, out: Console) -> None:
    shares = _shares(findings, whole=True)
    if out.measure(shares, options=out.options.update_width(WIDEST)).maximum > out.width:
        # Wrapped lines would be unreadable.
        shares = _shares(findings, whole=False)
    out.print(shares)
    if findings.weights:
        weights = [[one.name, interval_text(one.weight, sign=True)] for one in findings.weights]
        out.print(table("Log-odds (10 nats, 10 characters)", ["", "weight [95 % interval]"], weights))


def _shares(findings: Embers, *, whole: bool) -> Table:
    """One row per task and variant. Without `whole`, levels have no intervals; --json and the report have them."""
    rows = []
    for task, variant, items, by_level in share_rows(findings):
        cells = [interval_text(by_level["all"].right)]
        for level in LEVELS:
            share = by_level[level].right if level in by_level else None
            cells.append("-" if share is None else interval_text(share) if whole else f"{share.estimate:.2f}")
        rows.append([plain(task), variant, str(items), *cells])
    return table(SHARES, ["task", "variant", "items", "all", *LEVELS], rows, left=2)
