"""The whole audit: from a table to what it says."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

from recombine.audit.advice import advise
from recombine.audit.cells import Cells
from recombine.audit.coverage import support_finding
from recombine.audit.evidence import Evidence
from recombine.audit.findings import Audit, Lowest, ScoreFinding, SupportFinding
from recombine.audit.space import space_size
from recombine.audit.strata import gap_finding, mean_score, stratum_of
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.activations import Activations

LOWEST = 10
"""So many of the combinations with the lowest scores are named."""


@runtime_checkable
class On(Protocol):
    """Is told what is being done, and how much of that is done where it is known."""

    def __call__(self, what: str, done: float | None = None) -> None: ...


def audit_table(
    source: Any,
    *,
    factors: Sequence[str] = (),
    scores: Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    where: str | None = None,
    train: Any = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    activations: Any = None,
    key: str | None = None,
    memory: int | None = None,
    seed: int = 0,
    on: On | None = None,
) -> Audit:
    """Does a model recombine or memorise, which combinations fail and why, and what to collect next?

    `source` and `train` are tables: a file (CSV, TSV, Parquet, JSON Lines, Arrow) or a pandas or polars frame.
    """
    say = on or _silent
    cells, inside = read(
        source,
        factors=factors,
        scores=scores,
        roles=roles or {},
        sets=sets,
        where=where,
        train=train,
        split=split,
        activations=activations,
        key=key,
        memory=memory,
        on=say,
    )
    title = str(source) if isinstance(source, str | Path) else type(source).__name__
    return audit_cells(cells, inside, source=title, seed=seed, on=say)


def read(
    source: Any, *, activations: Any = None, on: On | None = None, **asked: Any
) -> tuple[Cells, Activations | None]:
    """The combinations of a table, and what the model had inside for each of its rows.

    `activations` is a file (safetensors, npz) or a dictionary of arrays; `asked` is what `read_cells` takes.
    """
    from recombine.audit.reading import read_cells, read_rows

    say = on or _silent
    say("reading the table")
    if activations is None:
        return read_cells(source, **asked), None
    from recombine.audit.activation_files import from_arrays, read_activations

    cells, rows = read_rows(source, **asked)
    say("reading the activations")
    if isinstance(activations, Mapping):
        return cells, from_arrays(dict(activations), rows)
    return cells, read_activations(activations, rows, key=asked.get("key"))


def audit_cells(
    cells: Cells,
    activations: Activations | None = None,
    *,
    source: str = "",
    seed: int = 0,
    on: On | None = None,
) -> Audit:
    """The audit of combinations that were read already."""
    say = on or _silent
    if int(cells.evaluated.sum()) < 2:
        raise BadInput(
            f"The table has scores of {int(cells.evaluated.sum())} combination: there is nothing to compare.",
            fix="give a table with several combinations, or check the factors and the filter",
        )
    say("coverage of the training combinations")
    support = support_finding(cells)
    # The matrices are small and many: threads of the linear algebra library would wait for each other, where other
    # work runs on the machine a hundred times as long as they compute.
    with threadpool_limits(1, user_api="blas"):
        found = [
            _score(cells, index, support, activations, seed=seed, say=say)
            for index in range(len(cells.scores))
        ]
    return Audit(
        source=source,
        factors={factor.name: len(factor.values) for factor in cells.factors},
        combinations=int(cells.evaluated.sum()),
        space_size=space_size(cells),
        rows=int(cells.count.sum()),
        support=support,
        scores=tuple(found),
        notes=cells.notes,
    )


def _score(
    cells: Cells,
    index: int,
    support: SupportFinding | None,
    activations: Activations | None,
    *,
    seed: int,
    say: On,
) -> ScoreFinding:
    from recombine.audit.parts import parts_or_combination

    name = cells.scores[index]
    scored = cells.evaluated & np.isfinite(cells.mean[:, index])
    if not scored.any():
        raise BadInput(f"No combination has the score {name!r}.", fix="name a column that has numbers")
    say(f"{name}: trained and held-out combinations")
    overall = mean_score(cells.mean[scored, index], binary=cells.binary[index])
    gap = gap_finding(cells, index)
    stage = f"{name}: parts or combination"
    say(stage)
    parts = parts_or_combination(cells, index, seed=seed, on=functools.partial(say, stage))
    inside = None
    if activations is not None:
        from recombine.audit.decodability import decodability

        stage = f"{name}: what the activations hold"
        say(stage)
        on = functools.partial(say, stage)
        inside = decodability(cells, activations, index, strata=stratum_of(cells), seed=seed, on=on)
    say(f"{name}: what to do")
    advice = advise(Evidence(cells, index, support, gap, parts, overall, seed))
    return ScoreFinding(
        score=name,
        rows=int(cells.count[scored].sum()),
        overall=overall,
        gap=gap,
        parts=parts,
        decodability=inside,
        advice=advice,
        lowest=_lowest(cells, index),
    )


def _lowest(cells: Cells, index: int) -> tuple[Lowest, ...]:
    """The combinations that score lowest; where there are many alike, those with most rows. None that is as good as the best."""
    values = np.where(cells.evaluated, cells.mean[:, index], np.nan)
    order = np.lexsort((-cells.count, values))[:LOWEST]  # What is not a number comes last.
    best = float(np.nanmax(values))
    return tuple(
        Lowest(cells.name(cell), float(values[cell]), int(cells.count[cell]))
        for cell in order.tolist()
        if values[cell] < best
    )


def _silent(what: str, done: float | None = None) -> None:
    """Nobody listens."""
