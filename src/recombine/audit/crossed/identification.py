"""Whether a table of scores can separate parts from combinations, and what to collect if it cannot."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.linalg import get_lapack_funcs

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.coverage import connected
from recombine.audit.crossed.design import Design, design_of
from recombine.audit.findings import Identification
from recombine.audit.possible import allowed_cells, asked_pairs
from recombine.audit.wording import counted, listed

LEAST_RESIDUAL = 1
"""The fewest residual degrees of freedom for an answer."""

FEW_RESIDUAL = 10
"""Below this the answer comes with the advice to collect more."""

LARGEST_CORE = 5000
"""The most columns of a core whose rank is computed; for larger ones an upper bound is used."""


def identify(cells: Cells, score: int) -> Identification:
    """Whether parts and combinations can be separated, judged by the design and the number of rows.

    The additive model has an intercept and an effect for each value in each slot (a value with two roles has two), so it
    has 1 + sum over slots of (values - 1) parameters; for sets each value is an indicator. The degrees of freedom for an
    interaction are the combinations minus the rank of that design. Real scores also need combinations with several rows.
    Otherwise the effect of a combination cannot be separated from the noise of rows.
    """
    design = design_of(cells, score)
    count, mean = cells.count[design.cells], cells.mean[design.cells, score]
    if not len(design.cells):
        reason = "No combination has a score."
        return Identification(0, 0, 0, 0, 0.0, False, (reason,), ("Collect rows with a score.",))
    parameters, full_rank = design.parameters(), rank(design)
    residual, groups = len(design.cells) - full_rank, components(design)
    reasons = _reasons(cells.binary[score], design, parameters, residual, count, mean)
    advice, collect = _advice(
        cells.binary[score], design, groups, parameters, residual, count, bool(reasons), _can_exist(cells, design)
    )
    sizes = (len(design.cells), parameters, residual, number_of(groups), float(np.median(count)))
    return Identification(*sizes, not reasons, reasons, advice, collect, full_rank)


def number_of(groups: Groups) -> int:
    """The number of connected components."""
    return int(groups.max(initial=-1)) + 1


Count = Int[np.ndarray, " cell"]
"""The number of rows of each combination."""
Groups = Int[np.ndarray, " column"]
"""The connected component of each column."""


def _reasons(
    binary: bool, design: Design, parameters: int, residual: int, count: Count, mean: Float[np.ndarray, " cell"]
) -> tuple[str, ...]:
    """Why parts and combinations cannot be separated; empty if they can."""
    number = len(design.cells)
    refusal = "parts and combinations cannot be separated"
    if number == 1:
        return (f"There is only one combination: {refusal}.",)
    if design.rows.shape[1] < 2:
        return ("Each combination has only one value, so parts and combinations are the same.",)
    if np.ptp(mean) == 0:
        return (f"All {number:,} combinations score {mean[0]:g}: there is no difference to explain.",)
    if residual < LEAST_RESIDUAL:
        why = f"The {number:,} combinations leave no degrees of freedom beyond their parts"
        if number <= parameters:
            why = f"{number:,} combinations are too few for the {parameters:,} parameters of an additive model"
        return (f"{why}: {refusal}.",)
    if not binary and count.max() == 1:
        return (
            "Each combination has only one row, and the score is not 0 or 1: the effect of a combination cannot be separated "
            "from the noise of rows.",
        )
    return ()


def _advice(
    binary: bool,
    design: Design,
    groups: Groups,
    parameters: int,
    residual: int,
    count: Count,
    refused: bool,
    can_exist: CanExist | None,
) -> tuple[tuple[str, ...], Combinations]:
    """What to collect, in sentences and as combinations."""
    number, separate = len(design.cells), number_of(groups)
    sentences: list[str] = []
    collect: Combinations = ()
    if design.rows.shape[1] >= 2 and (residual < FEW_RESIDUAL or separate > 1):
        more, collect, exhausted = completing(design, groups, 2 * parameters, can_exist)
        each = max(2, math.ceil(float(np.median(count))))
        if more:
            sentences.append(
                f"Collect {counted(more, 'more combination')} of the existing values, {each} rows each "
                f"({more * each:,} rows): {number + more:,} combinations for {parameters:,} parameters"
                + (", with all values connected." if separate > 1 else ".")
            )
        if exhausted and number + more < 2 * parameters:
            sentences.append(
                f"These are all combinations of the existing values ({number + more:,}). "
                "Add more values for a firmer answer."
            )
        if alone := [design.labels[column] for column in np.nonzero(design.uses == 1)[0].tolist()]:
            sentences.append(
                f"{counted(len(alone), 'value occurs', 'values occur')} in only one combination, which then says "
                f"nothing about interactions: collect a second one for each ({listed(alone)})."
            )
    if separate > 1 and not refused:
        sentences.append(
            f"The values form {separate:,} groups that never meet: values can only be compared within their group, and "
            "a difference between groups cannot be assigned to one factor."
        )
    if count.max() == 1:
        weak = "can hardly" if binary else "cannot"
        sentences.append(
            f"With one row per combination, a combination {weak} be separated from chance: collect at least 2 rows each ({number:,} more rows)."
        )
    return tuple(sentences), collect


def components(design: Design) -> Int[np.ndarray, " column"]:
    """The connected component of each column: values of different groups share no combination, even indirectly."""
    return connected(design.rows, len(design.slot))


def rank(design: Design) -> int:
    """The rank of the additive design with its intercept.

    A value that occurs in a single combination is removed with it, repeatedly; each removal adds one. For two slots of
    single values the rest has rank (values - groups), as the incidence matrix of a graph. Otherwise the rank comes from
    a pivoted Cholesky decomposition of the normal matrix, with the largest slot eliminated.
    """
    number = len(design.cells)
    core, peeled = _peeled(design)
    if not len(core.cells):
        return peeled
    if len(core.single) == 2 and all(core.single) and bool((core.rows != NOTHING).all()):
        return peeled + len(core.slot) - number_of(components(core))
    if len(core.slot) > LARGEST_CORE:
        return min(number, peeled + core.parameters())
    return peeled + _rank_of_core(core)


def _peeled(design: Design) -> tuple[Design, int]:
    """The design without combinations that have a value of their own, repeatedly, and how many were removed."""
    rows = design.rows
    cells_of: dict[int, set[int]] = collections.defaultdict(set)
    for cell, slot in zip(*np.nonzero(rows != NOTHING), strict=True):
        cells_of[int(rows[cell, slot])].add(int(cell))
    keep = np.ones(len(rows), dtype=bool)
    waiting = np.nonzero(design.uses == 1)[0].tolist()
    while waiting:
        column = waiting.pop()
        if len(cells_of[column]) != 1:
            continue
        cell = next(iter(cells_of[column]))
        keep[cell] = False
        for other in rows[cell][rows[cell] != NOTHING].tolist():
            cells_of[other].discard(cell)
            if len(cells_of[other]) == 1:
                waiting.append(other)
    return design.kept(keep), int((~keep).sum())


def _rank_of_core(core: Design) -> int:
    level = sparse.csr_array(np.ones((len(core.cells), 1)))
    matrix = sparse.csr_array(sparse.hstack([level, core.matrix]))
    # The largest slot spans the intercept, so the intercept needs no parameter once that slot is eliminated.
    alone = np.append(False, core.largest(filled=True))
    first, second = matrix[:, np.nonzero(alone)[0]], matrix[:, np.nonzero(~alone)[0]]
    normal = (second.T @ second).toarray()
    scale = np.sqrt(np.maximum(np.diag(normal), 1.0))
    if alone.any():
        uses = np.asarray(first.sum(0)).ravel()
        across = sparse.csr_array(first.T @ second)
        normal = normal - (across.T @ sparse.diags_array(1 / uses) @ across).toarray()
    scaled = normal / np.outer(scale, scale)
    (pivoted,) = get_lapack_funcs(("pstrf",), (scaled,))
    _, _, core_rank, _ = pivoted(scaled, tol=1e-9)
    return int(core_rank) + int(alone.sum())


SHOWN = 50
"""How many combinations are listed."""

LISTED = 20_000
"""Spaces up to this size are listed. Of larger ones candidates are drawn, with rare values more often."""

CANDIDATES = 1000
Combinations = tuple[tuple[str, ...], ...]
"""Combinations as labels of their values."""


CanExist = Callable[[Int[np.ndarray, "n slot"]], Bool[np.ndarray, " n"]]
"""Says which rows of columns can exist."""


def _can_exist(cells: Cells, design: Design) -> CanExist | None:
    """Which rows can exist, as far as that is known; None if all can."""
    if cells.possible is None and not len(asked_pairs(cells)):
        return None

    def allowed(rows: Int[np.ndarray, "n slot"]) -> Bool[np.ndarray, " n"]:
        constituents = np.full((len(rows), len(cells.slots)), NOTHING, dtype=np.int64)
        for column in range(rows.shape[1]):
            constituents[np.arange(len(rows)), design.slot[rows[:, column]]] = design.constituent[rows[:, column]]
        return allowed_cells(cells, constituents)

    return allowed


def completing(
    design: Design, groups: Groups, target: int, can_exist: CanExist | None = None
) -> tuple[int, Combinations, bool]:
    """New combinations of the existing values that connect groups and reuse rare values, up to `target` in total.

    Returns how many are needed, the first of them as labels, and whether these are all that remain.

    Each has the largest sum of 1 / (1 + uses)^2 over its values, plus 1 for each group that it connects to another. No
    value takes two roles, and sets have their median size.
    """
    slots = _slots(design)
    rng = np.random.default_rng(0)
    size = math.prod(len(columns) for columns in slots)
    seen = {tuple(row[row != NOTHING].tolist()) for row in np.sort(design.rows, axis=1)}
    everything = None
    if size <= LISTED:
        everything = _sensible(design, np.array(list(itertools.product(*slots)), dtype=np.int64))
        everything = everything[np.array([tuple(row) not in seen for row in everything.tolist()], dtype=bool)]
        if can_exist is not None and len(everything):
            everything = everything[can_exist(everything)]
    wanted = max(target - len(design.cells), number_of(groups) - 1, 1)
    number = wanted if everything is None else min(wanted, len(everything))
    uses, label = design.uses.astype(float), groups.copy()
    shown: list[tuple[int, ...]] = []
    while len(shown) < min(number, SHOWN):
        candidates = _drawn(design, slots, uses, rng) if everything is None else everything
        if everything is None and can_exist is not None and len(candidates):
            candidates = candidates[can_exist(candidates)]
        if not len(candidates):
            break
        joins = (np.diff(np.sort(label[candidates], axis=1), axis=1) > 0).sum(1)
        order = np.argsort(-(1 / (1 + uses[candidates]) ** 2).sum(1) - joins, kind="stable")
        best = next((row for row in map(tuple, candidates[order].tolist()) if row not in seen), None)
        if best is None:
            break
        seen.add(best)
        shown.append(best)
        uses[list(best)] += 1
        label[np.isin(label, label[list(best)])] = label[best[0]]
    names = tuple(tuple(design.labels[column] for column in row) for row in shown)
    return number, names, everything is not None and number == len(everything)


def _slots(design: Design) -> list[np.ndarray]:
    """The columns that can fill each slot of a new combination."""
    slots = []
    for place, single in enumerate(design.single):
        times = 1 if single else max(1, round(float(np.median(design.held(place)))))
        slots += [design.of(place)] * times
    return slots


def _sensible(design: Design, rows: Int[np.ndarray, "n slot"]) -> Int[np.ndarray, "kept slot"]:
    """The distinct rows without a repeated value, sorted."""
    if not len(rows):
        return rows
    held = np.sort(design.constituent[rows], axis=1)
    return np.unique(np.sort(rows[(np.diff(held, axis=1) > 0).all(1)], axis=1), axis=0)


def _drawn(
    design: Design, slots: list[np.ndarray], uses: Float[np.ndarray, " column"], rng: np.random.Generator
) -> Int[np.ndarray, "drawn slot"]:
    """Candidates, with rare values more often."""
    weight = 1 / (1 + uses) ** 2
    drawn = [rng.choice(columns, size=CANDIDATES, p=weight[columns] / weight[columns].sum()) for columns in slots]
    return _sensible(design, np.stack(drawn, axis=1))
