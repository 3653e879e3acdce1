"""An audit of a frame or a file that shows itself, writes its page and says what to collect."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.audit.audit import OnProgress, audit_cells, read
from recombine.audit.cells import Cells
from recombine.audit.findings import Audit
from recombine.audit.logs.log import Log
from recombine.audit.tables import audit_tables, collect_table

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure


@dataclasses.dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class AuditResult(Audit):
    """The findings of an audit, with the combinations that they are about."""

    cells: Cells

    def summary(self) -> str:
        """All findings as text: scores by stratum, the verdict, every advice and note."""
        lines = [self._title()]
        for score in self.scores:
            lines += ["", f"{score.score}: {score.parts.verdict}"]
            for stratum in () if score.gap is None else score.gap.strata:
                mean = (
                    "-"
                    if stratum.score is None
                    else f"{stratum.score.estimate:.3f} [{stratum.score.low:.3f}, {stratum.score.high:.3f}]"
                )
                lines.append(f"  {stratum.name}: {mean}, {stratum.combinations:,} combinations")
            lines += [
                f"  {number}. {advice.sentence} ({advice.because})" for number, advice in enumerate(score.advice, 1)
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def page(self, path: str | Path) -> Path:
        """Write the page of the audit.

        Args:
            path: The HTML file to write.

        Returns:
            The path of the file.
        """
        from recombine.report.audit.page import write_audit

        return write_audit(self._plain(), self.cells, path)

    @property
    def figures(self) -> list[Figure]:
        """The figures of the page: for each score the map of combinations, strata, slices, effects and parts."""
        from recombine.report.audit.page import audit_figures

        return audit_figures(self._plain(), self.cells)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The findings and the combinations as frames by name: combinations, parts, strata, advice, ..."""
        return audit_tables(self, self.cells)

    @property
    def collect(self) -> pd.DataFrame:
        """The combinations that advice names for collection: a column per factor or role, most useful first."""
        return collect_table(self, self.cells)

    def record(self) -> dict[str, Any]:
        return self._plain().record()

    def _plain(self) -> Audit:
        return Audit(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Audit)})


def audit_frame(
    source: Any,
    *,
    factors: Sequence[str] = (),
    scores: str | Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    where: str | None = None,
    train: Any = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    seed: int = 0,
    progress: OnProgress | None = None,
    **more: Any,
) -> AuditResult:
    """Audit a frame, a file or a log. `rc.audit(...)` is this function.

    Args:
        source: A pandas, polars or Arrow frame, a file, or a `Log`.
        factors: Columns whose values make a combination.
        scores: One or more columns of numbers, or of true and false.
        roles: Factors that appear in several columns with the same values.
        sets: Columns that hold sets of values.
        where: A filter, as an SQL expression over the columns of a row.
        train: A frame or a file of the combinations that the model was trained on.
        split: The column that says which rows were trained on, and the values that mean trained.
        seed: The seed of all resampling.
        progress: Called with each stage.
        more: Further arguments of `audit_table`, such as `activations` and `memory`.

    Returns:
        The findings. A notebook shows them; `.summary()` is text, `.page(path)` writes the page, `.collect` is a frame
        of the combinations to collect, `.tables` has all tables.

    Example:
        ```python
        audit = rc.audit(df, factors=["colour", "object"], scores="success", split=("split", "train"))
        audit.collect.to_csv("collect.csv", index=False)
        ```
    """
    columns: dict[str, Any] = {"factors": factors, "roles": roles, "sets": sets, "where": where}
    columns |= {"scores": (scores,) if isinstance(scores, str) else scores, "split": split, "train": train}
    cells, inside = read(source, progress=progress, **columns, **more)
    path = source.path if isinstance(source, Log) else source
    title = str(path) if isinstance(path, str | Path) else "a frame"
    audit = audit_cells(cells, inside, source=title, seed=seed, progress=progress)
    return AuditResult(**{field.name: getattr(audit, field.name) for field in dataclasses.fields(Audit)}, cells=cells)
