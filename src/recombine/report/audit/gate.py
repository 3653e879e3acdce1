"""The gate on the page of an audit: its conditions, and what was lost since the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recombine.audit.comparison.findings import Comparison
from recombine.audit.comparison.gate import Check
from recombine.audit.wording import counted
from recombine.report.comparison import flipped
from recombine.report.html import Table


def gate_section(checks: Sequence[Check], comparison: Comparison | None) -> dict[str, Any]:
    """What the template shows of a gate: the answer, the conditions, and the combinations lost and gained."""
    failed = sum(not check.passed for check in checks)
    sentence = f"The gate passed: {counted(len(checks), 'condition')}."
    if failed:
        sentence = f"The gate failed: {failed} of {counted(len(checks), 'condition')}."
    rows = [("passed" if check.passed else "failed", check.sentence) for check in checks]
    scores = () if comparison is None else comparison.scores
    since = [f"Since {comparison.old}: {score.sentence}" for score in scores] if comparison is not None else []
    slots = () if comparison is None else comparison.slots
    return {
        "failed": failed > 0,
        "sentence": sentence,
        "conditions": Table("", ["", "condition"], rows),
        "since": since,
        "tables": [table for score in scores for table in flipped(score, slots)],
    }
