"""The summary of an audit of a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from recombine.audit.embers.findings import LEVELS, Embers
from recombine.cli.audit_summary import interval_text
from recombine.cli.output import console, print_json, say, say_line, say_written, table, verdict_table
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


def say_result(result: EmbersAudit, files: Mapping[str, str]) -> None:
    """Print the result. Missing answers are reported as an error elsewhere."""
    findings = result.findings
    right = f", {interval_text(findings.right)} right" if findings is not None else ""
    say_line(f"{result.settings['model']}: {result.items} items, {len(result.answers)} answered{right}", "bold")
    if findings is not None:
        _say_found(findings)
        say(verdict_table([verdict.record() for verdict in findings.verdicts]))
    for note in (*result.remarks, *(() if findings is None else findings.notes)):
        say_line(note, "dim")
    say_written(files.values())


def say_dry(items: Sequence[Item], kept: AnswerCache, notes: Sequence[str], *, as_json: bool) -> None:
    """Print the number of items of each kind, how many are answered already, and an example of each task."""
    held = kept.read()
    done = {item.name for item in items if answered(held.get(item.name))}
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kinds.setdefault((item.task, item.variant), []).append(item)
    examples = {task: members[0].prompt for (task, _), members in reversed(kinds.items())}
    rows = [
        (task, variant, len(members), sum(item.name in done for item in members))
        for (task, variant), members in kinds.items()
    ]
    if as_json:
        names = ("task", "variant", "items", "answered")
        counts = [dict(zip(names, row, strict=True)) for row in rows]
        document = {"items": len(items), "answered": len(done), "kinds": counts, "examples": examples}
        print_json(document | {"notes": list(notes)})
        return
    shown = [(plain(task), *numbers) for task, *numbers in rows]
    say(table("", ["task", "variant", "items", "answered"], shown, left=2))
    for task, prompt in reversed(examples.items()):
        say(plain(task), "bold")
        say("\n".join(map(plain, prompt.splitlines())))
    for note in notes:
        say_line(note, "dim")
    say(f"{len(items) - len(done)} of {len(items)} questions would be asked", "bold")


def _say_found(findings: Embers) -> None:
    out, shares = console(), _shares(findings, whole=True)
    if out.measure(shares, options=out.options.update_width(WIDEST)).maximum > out.width:
        # Wrapped lines would be unreadable.
        shares = _shares(findings, whole=False)
    say(shares)
    if findings.weights:
        weights = [[weight.name, interval_text(weight.weight, sign=True)] for weight in findings.weights]
        say(table("Log-odds (10 nats, 10 characters)", ["", "weight [95 % interval]"], weights))


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
