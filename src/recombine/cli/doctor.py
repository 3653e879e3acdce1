"""The command that checks: the installation, the machine, and every byte of a store."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from recombine.cli.options import JsonOption
from recombine.cli.output import CheckFailed, print_json, say, table
from recombine.errors import BadInput
from recombine.progress import ProgressBar


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
    from recombine.store.files import moved
    from recombine.store.provenance import machine, threads, versions
    from recombine.store.repair import Examination

    if dry_run and store_path is None:
        raise BadInput("--dry-run is about a store.", fix="name it with --store")
    facts: dict[str, Any] = {"versions": versions(), "machine": machine() | {"threads": threads()}}
    findings = []
    if store_path is not None:
        with ProgressBar("checking runs", unit="runs", quiet=as_json, patience=0.0) as bar:
            examination = Examination(store_path, repair=not dry_run, step=bar.update)
            findings = examination.run()
        studies = list((store_path / "studies").glob("*.json"))
        facts["store"] = {"path": str(store_path), "runs": examination.runs, "studies": len(studies)}
        facts["store"]["set aside"] = len(moved(store_path))
    remain = [finding for finding in findings if finding.remains]
    if as_json:
        problems = [dataclasses.asdict(finding) for finding in findings]
        print_json(facts | {"problems": problems, "repaired": not dry_run, "ok": not remain})
    else:
        rows = [(f"{part}: {name}", str(value)) for part, values in facts.items() for name, value in values.items()]
        say(table("recombine doctor", ["", ""], rows, left=2))
        if findings:
            columns = ["where", "what", "to be done" if dry_run else "done"]
            shown = [(finding.place, finding.problem, finding.done) for finding in findings]
            say(table(f"{len(findings)} problems in {store_path}", columns, shown, left=3))
    if remain:
        repair = f"recombine doctor --store {store_path}"
        fix = repair if dry_run else "the table says what each one needs; nothing was deleted"
        raise CheckFailed(f"{len(remain)} problems in the store {store_path}.", fix=fix)
    if not as_json:
        words = "Everything is in order."
        if findings:
            words = "Repaired. Nothing was deleted; running the studies and sweeps again makes anew what is missing."
        say(words, "green")
