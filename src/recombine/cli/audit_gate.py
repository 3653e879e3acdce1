"""The gate of `recombine audit`: exit code 1, with one line that says why, where a condition fails."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from recombine.cli.output import CheckFailed, check_file, say_line
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.cells import Cells
    from recombine.audit.comparison.findings import Comparison
    from recombine.audit.comparison.gate import Check
    from recombine.audit.findings import Audit


@Parameter(name="*", group="Gate")
@dataclasses.dataclass(frozen=True)
class GateOptions:
    """When the command ends with exit code 1."""

    fail_if: list[str] | None = None
    """Fail if this holds: "all_pairs_met.score < .8"; again for another condition."""
    baseline: Path | None = None
    """An earlier audit (its --json document, or a table with the same columns) to compare with."""
    allow_drop: float | None = None
    """With --baseline: how much the mean score may fall, over all combinations and in each stratum."""
    solved_at: float | None = None
    """With --baseline: from this mean score on, a combination counts as solved; .5 for 0 and 1."""
    junit: Path | None = None
    """Also write the conditions as a JUnit file."""

    def check(self) -> None:
        """Raise BadInput for options that do not go together, before anything is computed."""
        from recombine.audit.comparison.gate import NEEDS_BASELINE, parse_condition

        for condition in map(parse_condition, self.fail_if or ()):
            if condition.group in NEEDS_BASELINE and self.baseline is None:
                fix = "add --baseline audit.json, which `recombine audit TABLE ... --json` prints"
                raise BadInput(f"The gate {condition.text!r} needs a baseline.", fix=fix)
        if self.baseline is None:
            for name in ("allow_drop", "solved_at"):
                if getattr(self, name) is not None:
                    option = f"--{name.replace('_', '-')}"
                    raise BadInput(f"{option} needs a baseline.", fix="add --baseline audit.json, or leave it out")
        elif not self.fail_if and self.allow_drop is None:
            fix = "add --allow-drop 0.02 or --fail-if 'lost.combinations > 0', or use `recombine audit compare`"
            raise BadInput("--baseline says nothing about when to fail.", fix=fix)
        if self.junit is not None:
            check_file(self.junit, "JUnit file", "audit.xml")
            if not self.fail_if and self.allow_drop is None:
                raise BadInput("--junit writes the conditions of a gate.", fix="add --fail-if or --baseline")

    def compare(self, cells: Cells, title: str, columns: dict[str, Any]) -> Comparison | None:
        """What changed since the baseline; None without one. It needs no audit, so a bad baseline is found early."""
        if self.baseline is None:
            return None
        from recombine.audit.comparison.compare import compare
        from recombine.audit.comparison.scored import read_scored, scored_cells

        return compare(read_scored(self.baseline, **columns), scored_cells(cells, title), solved_at=self.solved_at)

    def judge(self, audit: Audit, comparison: Comparison | None) -> tuple[Check, ...]:
        """Judge all conditions, and write the JUnit file."""
        from recombine.audit.comparison.gate import check_gate

        checks = check_gate(audit, self.fail_if or (), comparison=comparison, allow_drop=self.allow_drop)
        if self.junit is not None:
            from recombine.report.junit import write_junit

            write_junit(checks, self.junit)
        return checks


NO_GATE = GateOptions()


def gate_record(checks: tuple[Check, ...], comparison: Comparison | None) -> dict[str, Any]:
    """The gate as a part of the JSON document."""
    if not checks:
        return {}
    gate = {"passed": all(check.passed for check in checks), "checks": [dataclasses.asdict(check) for check in checks]}
    return {"gate": gate, "comparison": None if comparison is None else comparison.record()}


def say_gate(checks: tuple[Check, ...], comparison: Comparison | None) -> None:
    """Print the gate: what changed since the baseline, and each condition."""
    if not checks:
        return
    say_line("")
    say_line("Gate", "bold")
    for score in () if comparison is None else comparison.scores:
        say_line(f"  since {comparison.old if comparison else ''}: {score.sentence}")
    for check in checks:
        say_line(f"  {'passed' if check.passed else 'FAILED'}  {check.sentence}", None if check.passed else "red")


def end_gate(checks: tuple[Check, ...]) -> None:
    """Raise CheckFailed, which is exit code 1, if a condition failed."""
    failed = [check.sentence for check in checks if not check.passed]
    if failed:
        raise CheckFailed(f"The gate failed: {'; '.join(failed)}.")
