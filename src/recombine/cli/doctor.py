"""The command that checks: the installation, the machine, and every byte of a store."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from recombine.cli.output import Told, console, errors, print_json, table
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.store.repair import Finding

LINE_SECONDS = 20.0
"""Where there is no terminal, a line of progress is written so often."""


def doctor_command(store_path: Path | None, *, as_json: bool, dry_run: bool = False) -> None:
    """Check what recombine needs, and a store."""
    from recombine.store.provenance import machine, threads, versions

    if dry_run and store_path is None:
        raise BadInput("--dry-run is about a store.", fix="name it with --store")
    facts: dict[str, Any] = {"versions": versions(), "machine": machine() | {"threads": threads()}}
    findings: list[Finding] = []
    if store_path is not None:
        facts["store"], findings = _examine(store_path, dry_run=dry_run, quiet=as_json)
    remain = [finding for finding in findings if finding.remains]
    if as_json:
        problems = [dataclasses.asdict(finding) for finding in findings]
        print_json(facts | {"problems": problems, "repaired": not dry_run, "ok": not remain})
    else:
        rows = [
            (f"{part}: {name}", str(value))
            for part, values in facts.items()
            for name, value in values.items()
        ]
        console().print(table("recombine doctor", ["", ""], rows, left=2))
        if findings:
            columns = ["where", "what", "to be done" if dry_run else "done"]
            shown = [(finding.place, finding.problem, finding.done) for finding in findings]
            console().print(table(f"{len(findings)} problems in {store_path}", columns, shown, left=3))
    if remain:
        raise Told(
            f"{len(remain)} problems in the store {store_path}.",
            fix=f"recombine doctor --store {store_path}"
            if dry_run
            else "the table says what each one needs; nothing was deleted",
        )
    if not as_json:
        words = "Everything is in order."
        if findings:
            words = "Repaired. Nothing was deleted; running the studies and sweeps again makes anew what is missing."
        console().print(words, style="green")


def _examine(path: Path, *, dry_run: bool, quiet: bool) -> tuple[dict[str, Any], list[Finding]]:
    """Look at a store, with progress."""
    from recombine.store.repair import Examination
    from recombine.store.setting_aside import moved

    out = errors()
    columns = [BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn(compact=True)]
    hidden = quiet or not out.is_terminal
    begin = said = time.monotonic()
    with Progress(TextColumn("checking runs"), *columns, console=out, transient=True, disable=hidden) as bars:
        task = bars.add_task("", total=None)

        def step(done: int, total: int) -> None:
            nonlocal said
            bars.update(task, completed=done, total=total)
            if hidden and not quiet and time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                left = (said - begin) * (total - done) / max(1, done)
                out.print(f"  {done} of {total} runs, about {left:.0f} s left", highlight=False)

        examination = Examination(path, repair=not dry_run, step=step)
        findings = examination.run()
    facts = {
        "path": str(path),
        "runs": examination.runs,
        "studies": len(list((path / "studies").glob("*.json"))),
        "set aside": len(moved(path)),
    }
    return facts, findings
