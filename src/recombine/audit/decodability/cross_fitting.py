"""Probes that are fitted on some combinations and scored on others, with a control task."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.cells import Activations, Cells
from recombine.audit.decodability.linear_probe import STRENGTHS, Features, LinearProbe
from recombine.audit.decodability.questions import FEWEST, Answers, Question, spread_over_folds
from recombine.audit.wording import counted

FOLDS = 5
"""The number of folds of combinations."""
MOST_ROWS = 10_000
"""The most rows that are used, spread evenly over combinations."""
MOST_FEATURES = 512
"""A layer with more rows and features than this is reduced to this many leading directions."""
ByFold = Float[np.ndarray, "fold strength asked _"]
CONTROL_DRAWS = 5
"""How often the values of the control task are assigned at random."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows in use, sorted by combination, and the fold of each combination."""

    layers: dict[str, Float[np.ndarray, "row _"]]
    cell: Int[np.ndarray, " row"]
    repeat: Int[np.ndarray, " row"]
    """0 for the first row of its combination, 1 for the second, and so on."""
    fold: Int[np.ndarray, " cell"]
    """-1 for combinations without activations."""

    def asked(self, question: Question) -> Bool[np.ndarray, " row"]:
        """The rows of the combinations that a question applies to."""
        return np.isin(self.cell, question.cells)

    def member(self, question: Question) -> Bool[np.ndarray, "row value"]:
        """The correct answers by row; False in rows that the question does not apply to."""
        return question.by_row(self.cell, len(self.fold))


@dataclasses.dataclass(frozen=True)
class Reading:
    """A probe's answers to one question from one layer. The ridge strength is chosen on other combinations."""

    quality: tuple[tuple[float, float], ...]
    """For each fold, how good the layer is on all other folds: accuracy, then confidence."""
    strength: tuple[float, ...]
    """For each fold, the strength that is best on all other folds."""
    answers: Answers
    """For each combination, the answer of a probe that was fitted on other folds."""


def rows_of(cells: Cells, activations: Activations, rng: np.random.Generator) -> tuple[Rows | None, list[str]]:
    """The rows to use, and notes; None if there are too few combinations or layers."""
    notes = []
    every = [np.isfinite(values).all(axis=1) for values in activations.layers.values()]
    finite = np.logical_and.reduce([np.ones(len(activations.cell), bool), *every])
    if not finite.all():
        notes.append(f"Left out, because their activations are not finite: {counted(int((~finite).sum()), 'row')}.")
    order = rng.permutation(np.flatnonzero(finite))
    order = order[np.argsort(activations.cell[order], kind="stable")]
    cell = activations.cell[order]
    starts = _starts(cell)
    repeat = np.arange(len(cell)) - np.repeat(starts, np.diff(np.append(starts, len(cell))))
    if len(cell) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(cell)} rows with activations were used, spread evenly over combinations.")
        # The first rows of all combinations come before any second ones.
        kept = np.sort(np.lexsort((np.random.default_rng(0).permutation(len(repeat)), repeat))[:MOST_ROWS])
        order, cell, repeat = order[kept], cell[kept], repeat[kept]
    layers = {}
    for name, values in activations.layers.items():
        taken = values[order]
        if (taken != taken[:1]).any():
            layers[name] = _leading(taken)
        else:
            notes.append(f"Layer {name} is the same in all rows and was left out.")
    if any(values.shape[1] < activations.layers[name].shape[1] for name, values in layers.items()):
        notes.append(
            f"Layers wider than {MOST_FEATURES} were reduced to the {MOST_FEATURES} directions in which they vary most."
        )
    present = np.unique(cell)
    if len(present) < FEWEST:
        number = counted(len(present), "combination")
        notes.append(
            f"There are activations of {number}; {FEWEST} are needed to fit a probe on some and to score it on others."
        )
    if len(present) < FEWEST or not layers:
        return None, notes
    fold = np.full(len(cells.constituents), -1)
    fold[present] = spread_over_folds(cells.constituents[present], cells.slots, FOLDS, rng)
    return Rows(layers, cell, repeat, fold), notes


def read_layer(rows: Rows, features: Features, asked: list[Question]) -> list[Reading]:
    """The answers to every question from one layer.

    Entry [f, s, c] of the table is the answer about combination c of the probe with strength s that was fitted without
    fold f and without the fold of c. Entries with f different from c's fold choose the strength (and later the layer)
    for fold f. Entries with f equal to c's fold are the answers.
    """
    shape = (2, FOLDS, len(STRENGTHS))
    tables = [np.full((*shape, len(question.cells), _width(question)), np.nan) for question in asked]
    for first, second in itertools.combinations_with_replacement(range(FOLDS), 2):
        out = np.isin(rows.fold[rows.cell], (first, second))
        for number, index, right, sure in _scored(rows, features, asked, out):
            fold = rows.fold[asked[number].cells[index]]
            for without, own in {(first, second), (second, first)}:
                here = fold == own
                tables[number][:, without][:, :, index[here]] = np.stack([right, sure])[:, :, here]
    return [_reading(rows, question, *each) for question, each in zip(asked, tables, strict=True)]


def control_scores(
    rows: Rows, features: Features, asked: list[Question], strengths: list[float], seed: int
) -> list[float]:
    """Accuracy on the control task of each question: its values, assigned to combinations at random.

    Only a probe that recognises whole combinations can be right, so it is fitted on some rows and scored on other rows
    of the *same* combinations. If combinations have one row each, it is scored on other combinations.
    """
    rng = np.random.default_rng([seed, 6])
    scores = [np.nan] * len(asked)
    for group in _alike(asked):
        shuffled = [
            dataclasses.replace(asked[number], member=rng.permutation(asked[number].member))
            for number in group
            for _ in range(CONTROL_DRAWS)
        ]
        members = [rows.member(question) for question in shuffled]
        right = [np.full((len(rows.cell), _width(question)), np.nan) for question in shuffled]
        draws = np.arange(len(shuffled)).reshape(len(group), CONTROL_DRAWS).tolist()
        for fit, scored in _control_splits(rows, asked[group[0]]):
            probe = LinearProbe(
                features[fit], [member[fit] for member in members], [question.exclusive for question in shuffled]
            )
            for number, own in zip(group, draws, strict=True):
                outputs = probe.log_odds(features[scored], strengths[number], own)
                for draw, odds in zip(own, outputs, strict=True):
                    right[draw][scored] = shuffled[draw].answers(odds, members[draw][scored]).right
        for number, own in zip(group, draws, strict=True):
            scores[number] = float(np.mean([_by_rows(rows, shuffled[draw], right[draw]) for draw in own]))
    return scores


def repeated(rows: Rows) -> bool:
    """Whether enough combinations have two rows to score the control task on the combinations it was fitted on."""
    return len(np.unique(rows.cell[rows.repeat == 1])) >= FEWEST


def _control_splits(rows: Rows, question: Question) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Which rows the control is fitted on, and which rows it is scored on."""
    usable = rows.asked(question)
    several = np.isin(rows.cell, rows.cell[rows.repeat == 1]) & usable
    for fold in range(FOLDS):
        here = several & (rows.repeat % FOLDS == fold) if repeated(rows) else usable & (rows.fold[rows.cell] == fold)
        fit, scored = np.flatnonzero(usable & ~here), np.flatnonzero(here)
        if len(fit) > 1 and len(scored):
            yield fit, scored


def _by_rows(rows: Rows, question: Question, right: Float[np.ndarray, "row _"]) -> float:
    """The balanced accuracy over the rows that were scored."""
    scored = np.flatnonzero(~np.isnan(right).all(axis=1))
    if not len(scored):
        return np.nan
    known = np.full((len(question.cells), right.shape[1]), np.nan)
    cell = rows.cell[scored]
    known[np.searchsorted(question.cells, np.unique(cell))] = _means(right[scored], cell)
    return question.balanced(known)


def _scored(
    rows: Rows, features: Features, asked: list[Question], out: Bool[np.ndarray, " row"]
) -> Iterator[tuple[int, Int[np.ndarray, " n"], np.ndarray, np.ndarray]]:
    """For each question: its combinations in `out`, and how right and confident a probe of the others is."""
    for group in _alike(asked):
        members = [rows.member(asked[number]) for number in group]
        usable = rows.asked(asked[group[0]])
        fit, scored = np.flatnonzero(~out & usable), np.flatnonzero(out & usable)
        if len(fit) < 2 or not len(scored):
            continue
        probe = LinearProbe(
            features[fit], [member[fit] for member in members], [asked[number].exclusive for number in group]
        )
        by_strength = [probe.log_odds(features[scored], strength) for strength in STRENGTHS]
        cell = rows.cell[scored]
        for index, number in enumerate(group):
            question = asked[number]
            by_strength_answers = [question.answers(each[index], members[index][scored]) for each in by_strength]
            right = np.stack([_means(answers.right, cell) for answers in by_strength_answers])
            sure = np.stack([_means(answers.sure, cell) for answers in by_strength_answers])
            yield number, np.searchsorted(question.cells, np.unique(cell)), right, sure


def _reading(rows: Rows, question: Question, right: ByFold, sure: ByFold) -> Reading:
    """Choose the strength of each fold on the other folds, and take the fold's answers at it."""
    fold = rows.fold[question.cells]
    qualities, strengths, by_fold = [], [], []
    for held_out in range(FOLDS):
        others = fold != held_out
        options = [
            (round(known(question.balanced(exact, others)), 9), known(question.balanced(confident, others)))
            for exact, confident in zip(right[held_out], sure[held_out], strict=True)
        ]
        best = max(range(len(STRENGTHS)), key=options.__getitem__)
        qualities.append(options[best])
        strengths.append(STRENGTHS[best])
        by_fold.append(Answers(right[held_out, best], sure[held_out, best]))
    return Reading(tuple(qualities), tuple(strengths), question.picked(rows.fold, by_fold))


def _width(question: Question) -> int:
    """The number of columns of an answer."""
    return 1 if question.exclusive else question.member.shape[1]


def _alike(asked: list[Question]) -> list[list[int]]:
    """Groups of questions about the same combinations: they share one eigendecomposition."""
    groups: dict[bytes, list[int]] = {}
    for number, question in enumerate(asked):
        groups.setdefault(question.cells.tobytes(), []).append(number)
    return list(groups.values())


def known(value: float) -> float:
    """The value, or minus infinity for NaN, so that unknown is worst."""
    return -np.inf if np.isnan(value) else value


def _leading(values: Features) -> Float[np.ndarray, "row fewer"]:
    """The directions in which a wide layer varies most, by power iteration. The labels are not used."""
    if min(values.shape) <= MOST_FEATURES:
        return values
    centred = values - values.mean(axis=0)
    start = np.random.default_rng(0).normal(size=(values.shape[1], MOST_FEATURES)).astype(values.dtype)
    for _ in range(2):
        across = np.linalg.qr(centred @ start)[0]
        start = np.linalg.qr(centred.T @ across)[0]
    return centred @ start


def _starts(cell: Int[np.ndarray, " row"]) -> Int[np.ndarray, " combination"]:
    """The first row of each combination."""
    return np.flatnonzero(np.diff(cell, prepend=-1))


def _means(values: Float[np.ndarray, "row _"], cell: Int[np.ndarray, " row"]) -> Float[np.ndarray, "combination _"]:
    """Means over the rows of each combination; NaN if any row is NaN."""
    starts = _starts(cell)
    return np.add.reduceat(values, starts, axis=0) / np.diff(np.append(starts, len(cell)))[:, None]
