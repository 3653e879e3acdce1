"""The whole audit: from a table of scores to findings and advice."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

from recombine.audit.advising.advise import advise
from recombine.audit.advising.evidence import Evidence
from recombine.audit.cells import Activations, Cells
from recombine.audit.coverage import support_finding
from recombine.audit.findings import (
    Audit,
    EffectsFinding,
    Identification,
    Lowest,
    PartsFinding,
    ScoreFinding,
    SupportFinding,
)
from recombine.audit.logs.log import Log
from recombine.audit.space import space_size
from recombine.audit.strata import gap_finding, mean_score, stratum_of
from recombine.errors import BadInput

LOWEST = 10
"""How many of the combinations with the worst scores are listed."""
LEFT_OUT = "Left out, because a quick audit was asked for (--quick)."


@runtime_checkable
class OnProgress(Protocol):
    """Receives the name of the current stage, and the share of it that is done where that is known."""

    def __call__(self, what: str, done: float | None = None) -> None: ...


def audit_table(
    source: Any,
    *,
    factors: Sequence[str] = (),
    scores: str | Sequence[str],
    roles: Mapping[str, Sequence[str]] | None = None,
    sets: Sequence[str] = (),
    where: str | None = None,
    train: Any = None,
    split: tuple[str, str | Sequence[str]] | None = None,
    scale: tuple[float, float] | None = None,
    lower_is_better: bool = False,
    chance: float | None = None,
    success: str | Sequence[str] | None = None,
    trials: str | None = None,
    cluster: str | None = None,
    numeric: Mapping[str, Any] | Sequence[str] = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
    space: str | Path | None = None,
    activations: Any = None,
    key: str | None = None,
    memory: int | None = None,
    quick: bool = False,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Audit:
    """Audit a table of scores: does the model recombine or memorise, what fails and why, and what to collect next?

    A table is a file (CSV, TSV, Parquet, JSON Lines, Arrow), a log (see `Log`), or a pandas, polars or Arrow frame. At least
    one of `factors`, `roles` and `sets` is needed.

    Args:
        source: The table, one row per scored example.
        factors: Columns whose values make a combination.
        scores: One or more columns of numbers, of percentages, or of true and false, pass and fail.
        roles: Factors that appear in several columns with the same values: `{"object": ["object_1", "object_2"]}`.
        sets: Columns that hold sets of values, such as `red|cube` or `["red", "cube"]`.
        where: A filter, as an SQL expression over the columns of a row.
        train: A table of the combinations that the model was trained on, with the same factor columns.
        split: The column that says which rows were trained on, and the value or values that mean trained.
        scale: The lowest and the highest possible score, such as `(0, 100)`. Only then can scores be called high or low.
            Scores of two values, percentages and successes have a known scale.
        lower_is_better: Whether low scores are good, as for errors.
        chance: The score of guessing, in the unit of the score.
        success: The text or texts that mean success; all other texts mean failure.
        trials: The column with the number of trials that each row stands for. The score is then their mean, or the
            number of successes.
        cluster: A column such as the prompt: rows with the same value in one combination count as one.
        numeric: Factors whose values are numbers, put into bins; or a mapping from factors to a number of bins, or to
            the ends of the bins.
        ordinal: Factors with their values in ascending order.
        space: A plan file (docs/planning.md) with all possible values and the constraints. Without it, pairs of common
            values that never occur are asked about, and never proposed.
        activations: A file (safetensors, npz) or a mapping from layers to arrays, one row per row of the table.
        key: The column that matches rows of the table to the array of the same name in `activations`.
        memory: The memory limit of the database, in bytes.
        quick: Leave out what takes long: the table of factors, and parts or combination.
        seed: The seed of all resampling.
        progress: Called with each stage.

    Returns:
        The findings: `audit.scores[0].advice`, `audit.support`, `audit.record()`.

    Example:
        ```python
        audit = audit_table("results.csv", factors=["colour", "shape"], scores="success", split=("split", "train"))
        audit.scores[0].advice
        ```
    """
    columns: dict[str, Any] = {"factors": factors, "roles": roles, "sets": sets, "where": where, "key": key}
    columns |= {"scores": (scores,) if isinstance(scores, str) else scores, "split": split, "train": train}
    columns |= {"scale": scale, "lower_is_better": lower_is_better, "chance": chance, "success": success}
    columns |= {"trials": trials, "cluster": cluster, "numeric": numeric, "ordinal": ordinal, "space": space}
    cells, inside = read(source, activations=activations, progress=progress, memory=memory, **columns)
    path = source.path if isinstance(source, Log) else source
    title = str(path) if isinstance(path, str | Path) else type(path).__name__
    return audit_cells(cells, inside, source=title, quick=quick, seed=seed, progress=progress)


def read(
    source: Any, *, activations: Any = None, progress: OnProgress | None = None, **columns: Any
) -> tuple[Cells, Activations | None]:
    """Read a table into combinations, and the activations of its rows if there are any.

    The arguments are those of `audit_table`; `columns` are passed to `read_cells`.
    """
    from recombine.audit.reading.read import read_cells, read_rows

    report = progress or silent
    report("reading the table")
    if activations is None:
        return read_cells(source, **columns), None
    from recombine.audit.decodability.files import from_arrays, read_activations

    cells, rows = read_rows(source, **columns)
    report("reading the activations")
    if isinstance(activations, Mapping):
        return cells, from_arrays(dict(activations), rows)
    return cells, read_activations(activations, rows, key=columns.get("key"))


def audit_cells(
    cells: Cells,
    activations: Activations | None = None,
    *,
    source: str = "",
    quick: bool = False,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Audit:
    """Audit combinations that are already read.

    Args:
        cells: The combinations with their scores.
        activations: Activations of the rows, if there are any.
        source: The title of the table.
        quick: Leave out what takes long: the table of factors, and parts or combination.
        seed: The seed of all resampling.
        progress: Called with each stage.

    Returns:
        The findings.
    """
    report, combinations = progress or silent, int(cells.evaluated.sum())
    if combinations < 2:
        raise BadInput(
            f"The table has scores of {combinations} combination: there is nothing to compare.",
            fix="give a table with several combinations, or check the factors and the filter",
        )
    report("coverage of the training combinations")
    support = support_finding(cells)
    # The matrices are small and many. Threads of the linear algebra library would wait for each other: on a busy
    # machine a hundred times longer than they compute.
    with threadpool_limits(1, user_api="blas"):
        scores = [
            _score(cells, index, support, activations, seed, report, quick=quick) for index in range(len(cells.scores))
        ]
    return Audit(
        source=source,
        factors={factor.name: len(factor.values) for factor in cells.factors},
        combinations=combinations,
        space_size=space_size(cells),
        rows=int(cells.count.sum()),
        support=support,
        scores=tuple(scores),
        notes=cells.notes,
    )


def _score(
    cells: Cells,
    index: int,
    support: SupportFinding | None,
    activations: Activations | None,
    seed: int,
    say: OnProgress,
    *,
    quick: bool,
) -> ScoreFinding:
    from recombine.audit.slices import value_slices, weakest_slices

    name = cells.scores[index]
    scored = cells.evaluated & np.isfinite(cells.mean[:, index])
    if not scored.any():
        raise BadInput(f"No combination has the score {name!r}.", fix="name a column that has numbers")
    say(f"{name}: trained and held-out combinations")
    overall = mean_score(cells.mean[scored, index], binary=cells.binary[index], ends=cells.scale(index).ends)
    gap = gap_finding(cells, index)
    say(f"{name}: weakest slices")
    slices, values = weakest_slices(cells, index), value_slices(cells, index)
    effects, parts = EffectsFinding(note=LEFT_OUT), PartsFinding(Identification.left_out(LEFT_OUT), verdict=LEFT_OUT)
    if not quick:
        from recombine.audit.crossed.parts import parts_or_combination
        from recombine.audit.effects.table import effects_finding

        say(f"{name}: which factors interact")
        effects = effects_finding(cells, index)
        stage = f"{name}: parts or combination"
        say(stage)
        parts = parts_or_combination(cells, index, seed=seed, progress=functools.partial(say, stage))
    inside = None
    if activations is not None:
        from recombine.audit.decodability.probing import decodability

        stage = f"{name}: what the activations hold"
        say(stage)
        inside = decodability(
            cells, activations, index, strata=stratum_of(cells), seed=seed, progress=functools.partial(say, stage)
        )
    say(f"{name}: what to do")
    advice = advise(Evidence(cells, index, support, gap, parts, overall, seed, quick))
    rows = int(cells.count[scored].sum())
    more = {"slices": slices, "values": values, "effects": effects, "scale": cells.scale(index)}
    return ScoreFinding(name, rows, overall, gap, parts, inside, advice, _lowest(cells, index), **more)


def _lowest(cells: Cells, index: int) -> tuple[Lowest, ...]:
    """The combinations with the worst scores; among equal ones those with most rows. The best score is left out."""
    values = np.where(cells.evaluated, cells.upright(index), np.nan)
    order = np.lexsort((-cells.count, values))[:LOWEST]  # NaN comes last.
    best = float(np.nanmax(values))
    return tuple(
        Lowest(cells.name(cell), float(cells.mean[cell, index]), int(cells.count[cell]))
        for cell in order.tolist()
        if values[cell] < best
    )


def silent(what: str, done: float | None = None) -> None:
    """Ignore progress."""
