"""What a table of scores can say at all of parts and combinations, and what would have to be collected."""

from __future__ import annotations

import collections
import math

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csgraph

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.crossed_completion import completing
from recombine.audit.crossed_design import Design, design_of
from recombine.audit.findings import Identification
from recombine.audit.wording import counted, listed

LEAST_RESIDUAL = 1
"""Residual degrees of freedom without which nothing is said."""

FEW_RESIDUAL = 10
"""Below this an answer is given, with the advice to collect more."""

LARGEST_CORE = 5000
"""Columns of a core whose rank is computed; of larger ones the rank is bounded from above."""


def identify(cells: Cells, score: int) -> Identification:
    """Whether parts and combination can be told apart, from the design and the number of rows alone.

    The additive model has a level and an effect for each value in each place (a value in two roles has two), so it
    asks for 1 + sum over places of (values - 1) parameters; for sets each value is an indicator.
    What can tell an interaction is the combinations less the rank of that design. Real scores also need
    combinations with several rows: else the combination cannot be told from the scatter of rows.
    """
    design = design_of(cells, score)
    count, mean = cells.count[design.cells], cells.mean[design.cells, score]
    if not len(design.cells):
        reason = "No combination has a score: there is nothing to decompose."
        return Identification(0, 0, 0, 0, 0.0, False, (reason,), ("Give rows with a score.",))
    parameters, found = design.parameters(), rank(design)
    residual, groups = len(design.cells) - found, components(design)
    connected = int(groups.max()) + 1 if len(groups) else 0
    reasons = _reasons(cells.binary[score], design, parameters, residual, count, mean)
    advice, collect = _advice(cells.binary[score], design, groups, parameters, residual, count, bool(reasons))
    return Identification(
        combinations=len(design.cells),
        parameters=parameters,
        residual=residual,
        connected=connected,
        replicates=float(np.median(count)),
        identified=not reasons,
        reasons=reasons,
        advice=advice,
        collect=collect,
        rank=found,
    )


def _reasons(
    binary: bool,
    design: Design,
    parameters: int,
    residual: int,
    count: Int[np.ndarray, " cell"],
    mean: Float[np.ndarray, " cell"],
) -> tuple[str, ...]:
    """Why parts and combination cannot be told apart; nothing where they can."""
    number = len(design.cells)
    apart = "parts and combination cannot be told apart"
    if number == 1:
        return (f"There is one combination only: {apart}.",)
    if design.rows.shape[1] < 2:
        return ("There is one place only, so each part is a combination of its own.",)
    if np.ptp(mean) == 0:
        return (f"All {number:,} combinations score {mean[0]:g}: there is no difference to explain.",)
    if residual < LEAST_RESIDUAL:
        if number <= parameters:
            return (
                f"{number:,} combinations cannot carry the {parameters:,} parameters of an additive model: {apart}.",
            )
        return (f"The {number:,} combinations leave no degree of freedom beside their parts: {apart}.",)
    if not binary and count.max() == 1:
        return (
            "Each combination has one row only, and the score is not 0 or 1: the combination cannot be told from "
            "the scatter of rows.",
        )
    return ()


def _advice(
    binary: bool,
    design: Design,
    groups: Int[np.ndarray, " column"],
    parameters: int,
    residual: int,
    count: Int[np.ndarray, " cell"],
    refused: bool,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """What to collect, in sentences and as combinations."""
    number, connected = len(design.cells), int(groups.max()) + 1 if len(groups) else 0
    said: list[str] = []
    collect: tuple[tuple[str, ...], ...] = ()
    if design.rows.shape[1] >= 2 and (residual < FEW_RESIDUAL or connected > 1):
        plan = completing(design, groups, 2 * parameters)
        collect = plan.shown
        each = max(2, math.ceil(float(np.median(count))))
        if plan.number:
            said.append(
                f"Collect {counted(plan.number, 'more combination')} of the values that are there, {each} rows each "
                f"({plan.number * each:,} rows): {number + plan.number:,} combinations for {parameters:,} parameters"
                + (", and all values connected." if connected > 1 else ".")
            )
        if plan.exhausted and number + plan.number < 2 * parameters:
            said.append(
                f"These are all combinations that the values allow ({number + plan.number:,}); "
                "for a firmer answer bring in more values."
            )
        alone = np.nonzero(design.uses == 1)[0]
        if len(alone):
            names = [design.labels[column] for column in alone.tolist()]
            said.append(
                f"{counted(len(alone), 'value stands', 'values stand')} in a single combination, which then tells "
                f"nothing of itself: give each a second one ({listed(names)})."
            )
    if connected > 1 and not refused:
        said.append(
            f"The values fall into {connected:,} groups that never meet: parts compare within their group only, and "
            "differences between groups can be of any place."
        )
    if count.max() == 1:
        weak = "hardly tell chance from combination" if binary else "not tell chance from combination"
        said.append(
            f"One row for each combination can {weak}: collect at least 2 each ({number:,} rows more)."
        )
    return tuple(said), collect


def components(design: Design) -> Int[np.ndarray, " column"]:
    """The group of each column: values of different groups never stand in one combination, nor do their partners."""
    cells, columns = len(design.cells), len(design.place)
    graph = sparse.block_array([[None, design.matrix], [design.matrix.T, None]], format="csr")
    label = csgraph.connected_components(graph, directed=False)[1][cells:]
    return np.unique(label, return_inverse=True)[1] if columns else np.zeros(0, dtype=np.int64)


def rank(design: Design) -> int:
    """The rank of the additive design, with its level.

    Values that stand in a single combination are peeled off with it, again and again: each adds one. Of what remains
    two places of single values have rank values less groups (a graph's incidence matrix); else pivoted Cholesky
    of the normal matrix, the largest place taken out.
    """
    number = len(design.cells)
    core, peeled = _peeled(design)
    if not len(core.cells):
        return peeled
    if len(core.single) == 2 and all(core.single) and bool((core.rows != NOTHING).all()):
        columns, groups = len(core.place), components(core)
        return peeled + columns - (int(groups.max()) + 1)
    if len(core.place) > LARGEST_CORE:
        return min(number, peeled + core.parameters())
    return peeled + _rank_of_core(core)


def _peeled(design: Design) -> tuple[Design, int]:
    """What remains when combinations with a value of their own are taken away, and how many were."""
    rows, uses = design.rows, design.uses
    cells_of: dict[int, set[int]] = collections.defaultdict(set)
    for cell, slot in zip(*np.nonzero(rows != NOTHING), strict=True):
        cells_of[int(rows[cell, slot])].add(int(cell))
    keep = np.ones(len(rows), dtype=bool)
    waiting = np.nonzero(uses == 1)[0].tolist()
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
    sizes = [
        len(core.of(p)) if single and core.held(p).min() == 1 else 0 for p, single in enumerate(core.single)
    ]
    largest = int(np.argmax(sizes))
    # With the largest place taken out the level is no parameter of its own: that place spans it.
    alone = np.append(
        False, core.place == largest if sizes[largest] else np.zeros(len(core.place), dtype=bool)
    )
    first, second = matrix[:, np.nonzero(alone)[0]], matrix[:, np.nonzero(~alone)[0]]
    normal = (second.T @ second).toarray()
    if sizes[largest]:
        uses = np.asarray(first.sum(0)).ravel()
        across = sparse.csr_array(first.T @ second)
        normal = normal - (across.T @ sparse.diags_array(1 / uses) @ across).toarray()
    scale = np.sqrt(np.maximum(np.diag((second.T @ second).toarray()), 1.0))
    scaled = normal / np.outer(scale, scale)
    (pivoted,) = get_lapack_funcs(("pstrf",), (scaled,))
    _, _, found, _ = pivoted(scaled, tol=1e-9)
    return int(found) + sizes[largest]
