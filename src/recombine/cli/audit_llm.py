"""`recombine audit-llm ...`: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from recombine.cli import output
from recombine.cli.options import DryOption, JsonOption, SeedOption, split_names
from recombine.cli.subjects import AT_ONCE, KEY, Subject, read_subject
from recombine.errors import BadInput
from recombine.plain import plain
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from rich.table import Table

    from recombine.audit import Embers
    from recombine.endpoints import AnswerCache, EmbersAudit
    from recombine.language.items import Item

audit_llm_app = App(name="audit-llm", help="Audit a language model by asking it questions.", help_format="plaintext")

audit_llm_app.command(
    "recombine.cli.audit_llm_tools:tools",
    name="tools",
    help="Which functions can a model call, and which pairs of them can it nest?",
)

ITEMS = 40
WIDEST = 1000
"""A terminal width at which every table fits."""
VERSION = 1
"""The version of the questions. Answers of different versions are not mixed."""


@audit_llm_app.command
def embers(
    *,
    out: Annotated[Path, Parameter(name=("--out", "-o"))],
    endpoint: str | None = None,
    model: str | None = None,
    function: str | None = None,
    items: int | None = None,
    items_from: Path | None = None,
    tasks: list[str] | None = None,
    shifts: str = "13,12",
    at_once: int | None = None,
    temperature: float | None = 0.0,
    timeout: float = 60.0,
    key_variable: str = KEY,
    seed: SeedOption = 0,
    json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Does a model do better on common tasks and probable answers, where neither should matter?

    Args:
        out: The folder for answers and findings; run again to continue.
        endpoint: An OpenAI-compatible endpoint: https://host/v1, with --model.
        model: The name of the endpoint's model.
        function: Instead of an endpoint: module:function, which takes a prompt and returns the answer.
        items: Items per task, variant and level of probability; default 40.
        items_from: Your own items instead: CSV or JSON lines, see docs/audit-llm.md.
        tasks: decode, encode, reversal, counting, linear, sorting, acronym; default: all.
        shifts: The common and the rare shift of the ciphers.
        at_once: Questions in parallel; default 4, for a function 1.
        temperature: The temperature of the endpoint; `none` sends no temperature.
        timeout: Seconds for one answer.
        key_variable: The environment variable with the endpoint's key.
        seed: The seed of the items.
    """
    # A user's function may print. Standard output is reserved for the result.
    with contextlib.redirect_stdout(sys.stderr):
        asked, notes = _items(items, items_from, tasks or (), shifts, seed)
        subject = read_subject(endpoint, model, function, temperature, timeout, key_variable)
        source = {"items": "built-in", "seed": seed, "shifts": shifts}
        if items_from is not None:
            source = {"items": items_from.name, "seed": None, "shifts": None}
        subject.settings.update(source, audit="embers", version=VERSION)
    if dry_run:
        from recombine.endpoints import AnswerCache

        kept = AnswerCache(out)
        kept.check(subject.settings)
        _say_dry(asked, kept, notes, as_json=json)
        return
    threads = at_once if at_once is not None else 1 if endpoint is None else AT_ONCE
    _audit(subject, asked, out, threads, notes, as_json=json)


def _items(
    number: int | None, source: Path | None, tasks: Sequence[str], shifts: str, seed: int
) -> tuple[list[Item], list[str]]:
    """The items, and notes about their file."""
    from recombine.language.item_files import read_items
    from recombine.language.items import make_items

    wanted = split_names(tasks)
    if source is None:
        return make_items(ITEMS if number is None else number, seed, wanted, _shifts(shifts)), []
    if number is not None:
        raise BadInput("--items makes items, --items-from reads yours: both were given.", fix="give one of them")
    items, notes = read_items(source)
    items = [item for item in items if not wanted or item.task in wanted]
    if not items:
        raise BadInput(f"{source} has no items of the tasks {', '.join(wanted)}.", fix="leave --tasks out")
    return items, notes


def _shifts(given: str) -> dict[str, int]:
    try:
        common, rare = (int(shift) for shift in given.split(","))
    except ValueError:
        fix = "write the common shift first: --shifts 13,12"
        raise BadInput(f"--shifts {given!r} does not name two shifts.", fix=fix) from None
    return {"common": common, "rare": rare}


def _audit(
    subject: Subject, items: Sequence[Item], out: Path, at_once: int, notes: Sequence[str], *, as_json: bool
) -> None:
    from recombine.endpoints import audit_embers

    # Redirect standard output first: the progress bar replaces it too, and restores what it found.
    with contextlib.redirect_stdout(sys.stderr), ProgressBar("asking the model") as on:
        result = audit_embers(subject.ask, items, out, subject.settings, at_once=at_once, notes=notes, on=on)
        on("writing the report")
        files = _write(result, out)
    if as_json:
        output.print_json(result.record() | {"files": files})
    else:
        _say_result(result, files)
    if result.missing:
        fix = subject.fix() or "check that the model answers"
        raise output.CheckFailed(" ".join(result.lacking), fix=f"{fix}, and run the same command again")


def _write(result: EmbersAudit, out: Path) -> dict[str, str]:
    """The findings, the answers as a table, and the page."""
    from recombine.figures.files import write_whole

    files = {"findings": str(write_whole(out / "audit.json", output.json_text(result.record(), indent=1)))}
    if result.findings is not None:
        from recombine.report import write_embers

        files["answers"] = str(output.write_table(result.answers, out / "answers.csv"))
        files["report"] = str(write_embers(result, result.findings, out / "report.html"))
    return files


def _say_result(result: EmbersAudit, files: Mapping[str, str]) -> None:
    """Print the result. Missing answers are reported as an error elsewhere."""
    findings = result.findings
    right = f", {output.interval_text(findings.right)} right" if findings is not None else ""
    output.say_line(f"{result.settings['model']}: {result.items} items, {len(result.answers)} answered{right}", "bold")
    if findings is not None:
        _say_found(findings)
        output.say(output.verdict_table([verdict.record() for verdict in findings.verdicts]))
    for note in (*result.remarks, *(() if findings is None else findings.notes)):
        output.say_line(note, "dim")
    output.say_written(files.values())


def _say_dry(items: Sequence[Item], kept: AnswerCache, notes: Sequence[str], *, as_json: bool) -> None:
    """Print the number of items of each kind, how many are answered already, and an example of each task."""
    from recombine.endpoints.asking import answered

    held = kept.read()
    done = {item.name for item in items if answered(held.get(item.name))}
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kinds.setdefault((item.task, item.variant), []).append(item)
    examples = {task: members[0].prompt for (task, _), members in reversed(kinds.items())}
    names = ["task", "variant", "items", "answered"]
    rows = [(*kind, len(members), sum(item.name in done for item in members)) for kind, members in kinds.items()]
    if as_json:
        counts = [dict(zip(names, row, strict=True)) for row in rows]
        document = {"items": len(items), "answered": len(done), "kinds": counts, "examples": examples}
        output.print_json(document | {"notes": list(notes)})
        return
    shown = [(plain(task), *numbers) for task, *numbers in rows]
    output.say(output.table("", names, shown, left=2))
    for task, prompt in reversed(examples.items()):
        output.say(plain(task), "bold")
        output.say("\n".join(map(plain, prompt.splitlines())))
    for note in notes:
        output.say_line(note, "dim")
    output.say(f"{len(items) - len(done)} of {len(items)} questions would be asked", "bold")


def _say_found(findings: Embers) -> None:
    out, shares = output.console(), _shares(findings, whole=True)
    if out.measure(shares, options=out.options.update_width(WIDEST)).maximum > out.width:
        # Wrapped lines would be unreadable.
        shares = _shares(findings, whole=False)
    output.say(shares)
    if findings.weights:
        weights = [[weight.name, output.interval_text(weight.weight, sign=True)] for weight in findings.weights]
        output.say(output.table("Log-odds (10 nats, 10 characters)", ["", "weight [95 % interval]"], weights))


def _shares(findings: Embers, *, whole: bool) -> Table:
    """One row per task and variant. Without `whole`, levels have no intervals; --json and the report have them."""
    from recombine.audit.embers.findings import LEVELS
    from recombine.report.embers import share_rows

    rows = []
    for task, variant, items, by_level in share_rows(findings):
        right = by_level["all"].right
        cells = [output.interval_text(right) if right.estimate else "never solved"]
        for level in LEVELS:
            share = by_level[level].right if level in by_level else None
            cells.append("-" if share is None else output.interval_text(share) if whole else f"{share.estimate:.2f}")
        rows.append([plain(task), variant, str(items), *cells])
    title = "Right answers, by probability of the text"
    return output.table(title, ["task", "variant", "items", "all", *LEVELS], rows, left=2)
