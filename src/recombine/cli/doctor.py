"""The command that checks: the installation, the machine, and every byte of a store."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from recombine.cli.options import JsonOption
from recombine.cli.output import CheckFailed, console, print_json, table
from recombine.errors import BadInput
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from recombine.store.repair import Finding


def doctor(
    *,
    store_path: Annotated[Path | None, Parameter(name="--store")] = None,
    as_json: JsonOption = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run")] = False,
) -> None:
    """Check the installation and the machine; check and repair a store. Nothing is deleted.

    Args:
        store_path: Also check this store, and repair what can be repaired.
        dry_run: Only look: change nothing in the store.
    """
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
        rows = [(f"{part}: {name}", str(value)) for part, values in facts.items() for name, value in values.items()]
        console().print(table("recombine doctor", ["", ""], rows, left=2))
        if findings:
            columns = ["where", "what", "to be done" if dry_run else "done"]
            shown = [(finding.place, finding.problem, finding.done) for finding in findings]
            console().print(table(f"{len(findings)} problems in {store_path}", columns, shown, left=3))
    if remain:
        raise CheckFailed(
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

    with ProgressBar("checking runs", unit="runs", quiet=quiet, patience=0.0) as bar:
        examination = Examination(path, repair=not dry_run, step=bar.update)
        findings = examination.run()
    facts = {
        "path": str(path),
        "runs": examination.runs,
        "studies": len(list((path / "studies").glob("*.json"))),
        "set aside": len(moved(path)),
    }
    return facts, findings
