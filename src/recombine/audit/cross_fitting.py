"""Probes that are fitted on some combinations and tried on others, and a control task beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.activations import Activations
from recombine.audit.cells import Cells
from recombine.audit.linear_probe import STRENGTHS, LinearProbe
from recombine.audit.questions import FEWEST, Answers, Question, spread_over_folds
from recombine.audit.wording import counted

FOLDS = 5
"""Parts into which combinations are cut."""
MOST_ROWS = 10_000
"""Rows that are looked at, drawn evenly over combinations."""
MOST_FEATURES = 512
"""Where both rows and features are more, a layer is reduced to so many directions: those in which it varies most."""
DEALS = 5
"""How often the values of the control task are dealt out."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows that are looked at, those of one combination together, and the fold of each combination."""

    layers: dict[str, Float[np.ndarray, "row _"]]
    cell: Int[np.ndarray, " row"]
    turn: Int[np.ndarray, " row"]
    """0 for the first row of its combination, 1 for the second and so on."""
    fold: Int[np.ndarray, " cell"]
    """-1 for combinations without activations."""

    def asked(self, question: Question) -> Bool[np.ndarray, " row"]:
        """The rows of the combinations that a question is asked of."""
        return np.isin(self.cell, question.cells)

    def member(self, question: Question) -> Bool[np.ndarray, "row value"]:
        """The answers, row by row; none for rows that the question is not asked of."""
        member = np.zeros((len(self.fold), question.member.shape[1]), bool)
        member[question.cells] = question.member
        return member[self.cell]


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a probe read of one question off one layer, its strength chosen on other combinations than those scored."""

    quality: tuple[tuple[float, float], ...]
    """For each fold how good the layer is on all others: accuracy, then how sure it is."""
    strength: tuple[float, ...]
    """For each fold the strength that was best on all others."""
    answers: Answers
    """Of each combination that was asked, by a probe that was fitted on other folds."""


def rows_of(
    cells: Cells, activations: Activations, rng: np.random.Generator
) -> tuple[Rows | None, list[str]]:
    """The rows to look at, and sentences; no rows where there are too few combinations or layers."""
    notes = []
    finite = np.ones(len(activations.cell), bool)
    for values in activations.layers.values():
        finite &= np.isfinite(values).all(axis=1)
    if not finite.all():
        notes.append(
            f"Left out, as their activations are not numbers: {counted(int((~finite).sum()), 'row')}."
        )
    order = rng.permutation(np.flatnonzero(finite))
    order = order[np.argsort(activations.cell[order], kind="stable")]
    cell = activations.cell[order]
    starts = _starts(cell)
    turn = np.arange(len(cell)) - np.repeat(starts, np.diff(np.append(starts, len(cell))))
    if len(cell) > MOST_ROWS:
        notes.append(
            f"Of {len(cell)} rows with activations {MOST_ROWS} were looked at, evenly over combinations."
        )
        kept = np.sort(_evenly(turn, MOST_ROWS))
        order, cell, turn = order[kept], cell[kept], turn[kept]
    layers = {}
    for name, values in activations.layers.items():
        taken = values[order]
        if (taken != taken[:1]).any():
            layers[name] = _leading(taken)
        else:
            notes.append(f"Layer {name} is the same in all rows and was left out.")
    reduced = [name for name, values in layers.items() if values.shape[1] < activations.layers[name].shape[1]]
    if reduced:
        notes.append(
            f"Of layers wider than {MOST_FEATURES} the {MOST_FEATURES} directions were read in which they vary most."
        )
    present = np.unique(cell)
    if len(present) < FEWEST:
        notes.append(
            f"Activations are there for {counted(len(present), 'combination')}; {FEWEST} are needed to fit a probe on some and "
            "to score it on others."
        )
    if len(present) < FEWEST or not layers:
        return None, notes
    fold = np.full(len(cells.parts), -1)
    fold[present] = spread_over_folds(cells.parts[present], cells.place, FOLDS, rng)
    return Rows(layers, cell, turn, fold), notes


def read_layer(
    rows: Rows, features: Float[np.ndarray, "row feature"], asked: list[Question]
) -> list[Reading]:
    """What one layer says to every question.

    Entry [f, s, c] of what is told is what the probe of strength s says of combination c that was fitted without the
    folds of f and of c. Those with f other than c's fold choose the strength (and later the layer) for fold f; those
    with f the fold of c are the answers.
    """
    told = [_empty(question) for question in asked]
    for one in range(FOLDS):
        for other in range(one, FOLDS):
            out = np.isin(rows.fold[rows.cell], (one, other))
            for number, place, right, sure in _told(rows, features, asked, ~out, out):
                fold = rows.fold[asked[number].cells[place]]
                for way, value in {(one, other), (other, one)}:
                    here = fold == value
                    told[number][0][way][:, place[here]] = right[:, here]
                    told[number][1][way][:, place[here]] = sure[:, here]
    return [_reading(rows, question, *each) for question, each in zip(asked, told, strict=True)]


def picked(rows: Rows, question: Question, parts: list[Answers]) -> Answers:
    """For the combinations of each fold the answers that go with that fold."""
    fold = rows.fold[question.cells]
    index = np.arange(len(fold))
    return Answers(
        np.stack([one.right for one in parts])[fold, index],
        np.stack([one.sure for one in parts])[fold, index],
    )


def control_scores(
    rows: Rows,
    features: Float[np.ndarray, "row feature"],
    asked: list[Question],
    strengths: list[float],
    seed: int,
) -> list[float]:
    """Accuracy of the control task of each question: its values, dealt out to combinations at random.

    Only who knows a combination as a whole can be right there, so it is fitted on some rows and tried on other rows of
    the *same* combinations. Where combinations have one row each, it is tried on other combinations.
    """
    rng = np.random.default_rng([seed, 6])
    scores = [np.nan] * len(asked)
    for group in _alike(asked):
        dealt = [
            dataclasses.replace(asked[number], member=rng.permutation(asked[number].member))
            for number in group
            for _ in range(DEALS)
        ]
        members = [rows.member(question) for question in dealt]
        right = [np.full((len(rows.cell), _width(question)), np.nan) for question in dealt]
        for fit, tried in _control_splits(rows, asked[group[0]]):
            probe = LinearProbe(
                features[fit], [member[fit] for member in members], [one.exclusive for one in dealt]
            )
            for index, number in enumerate(group):
                mine = range(index * DEALS, (index + 1) * DEALS)
                said = probe.log_odds(features[tried], strengths[number], mine)
                for deal, odds in zip(mine, said, strict=True):
                    right[deal][tried] = dealt[deal].answers(odds, members[deal][tried]).right
        for index, number in enumerate(group):
            mine = range(index * DEALS, (index + 1) * DEALS)
            scores[number] = float(np.mean([_by_rows(rows, dealt[deal], right[deal]) for deal in mine]))
    return scores


def repeated(rows: Rows) -> bool:
    """Whether enough combinations have two rows for the control task to be tried where it was fitted."""
    return len(np.unique(rows.cell[rows.turn == 1])) >= FEWEST


def _control_splits(
    rows: Rows, question: Question
) -> Iterator[tuple[Int[np.ndarray, " fit"], Int[np.ndarray, " tried"]]]:
    """Which rows the control is fitted on and which it is tried on."""
    can = rows.asked(question)
    several = np.isin(rows.cell, rows.cell[rows.turn == 1]) & can
    for fold in range(FOLDS):
        if repeated(rows):
            here = several & (rows.turn % FOLDS == fold)
        else:
            here = can & (rows.fold[rows.cell] == fold)
        fit, tried = np.flatnonzero(can & ~here), np.flatnonzero(here)
        if len(fit) > 1 and len(tried):
            yield fit, tried


def _by_rows(rows: Rows, question: Question, right: Float[np.ndarray, "row _"]) -> float:
    """The balanced accuracy of what was said of some of the rows."""
    tried = np.flatnonzero(~np.isnan(right).all(axis=1))
    if not len(tried):
        return np.nan
    known = np.full((len(question.cells), right.shape[1]), np.nan)
    cell = rows.cell[tried]
    known[np.searchsorted(question.cells, np.unique(cell))] = _means(right[tried], cell)
    return question.balanced(known, np.ones(len(known), bool))


def _told(
    rows: Rows,
    features: Float[np.ndarray, "row feature"],
    asked: list[Question],
    fitted: Bool[np.ndarray, " row"],
    scored: Bool[np.ndarray, " row"],
) -> Iterator[tuple[int, Int[np.ndarray, " n"], np.ndarray, np.ndarray]]:
    """Question by question: which of its combinations were tried, and of these right and sure at all strengths."""
    for group in _alike(asked):
        members = [rows.member(asked[number]) for number in group]
        can = rows.asked(asked[group[0]])
        fit, tried = np.flatnonzero(fitted & can), np.flatnonzero(scored & can)
        if len(fit) < 2 or not len(tried):
            continue
        probe = LinearProbe(
            features[fit], [member[fit] for member in members], [asked[number].exclusive for number in group]
        )
        by_strength = [probe.log_odds(features[tried], strength) for strength in STRENGTHS]
        cell = rows.cell[tried]
        for index, number in enumerate(group):
            question = asked[number]
            said = [question.answers(each[index], members[index][tried]) for each in by_strength]
            right = np.stack([_means(answers.right, cell) for answers in said])
            sure = np.stack([_means(answers.sure, cell) for answers in said])
            yield number, np.searchsorted(question.cells, np.unique(cell)), right, sure


def _reading(
    rows: Rows,
    question: Question,
    right: Float[np.ndarray, "fold strength asked _"],
    sure: Float[np.ndarray, "fold strength asked _"],
) -> Reading:
    """Chooses the strength of each fold on the other folds, and takes the fold's answers at it."""
    fold = rows.fold[question.cells]
    qualities, strengths, parts = [], [], []
    for one in range(FOLDS):
        options = [
            (
                round(_known(question.balanced(right[one, index], fold != one)), 9),
                _known(question.balanced(sure[one, index], fold != one)),
            )
            for index in range(len(STRENGTHS))
        ]
        best = max(range(len(STRENGTHS)), key=options.__getitem__)
        qualities.append(options[best])
        strengths.append(STRENGTHS[best])
        parts.append(Answers(right[one, best], sure[one, best]))
    return Reading(tuple(qualities), tuple(strengths), picked(rows, question, parts))


def _empty(question: Question) -> tuple[Float[np.ndarray, "fold strength asked _"], ...]:
    """Room for right and sure."""
    shape = (FOLDS, len(STRENGTHS), len(question.cells), _width(question))
    return np.full(shape, np.nan), np.full(shape, np.nan)


def _width(question: Question) -> int:
    """How many columns an answer has."""
    return 1 if question.exclusive else question.member.shape[1]


def _alike(asked: list[Question]) -> list[list[int]]:
    """The questions that are asked of the same combinations: they share a decomposition."""
    groups: dict[bytes, list[int]] = {}
    for number, question in enumerate(asked):
        groups.setdefault(question.cells.tobytes(), []).append(number)
    return list(groups.values())


def _known(value: float) -> float:
    """A number to compare: what is not known is worst."""
    return -np.inf if np.isnan(value) else value


def _leading(values: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row fewer"]:
    """The directions in which a wide layer varies most (by power iteration from random ones); nobody looks at values."""
    if min(values.shape) <= MOST_FEATURES:
        return values
    centred = values - values.mean(axis=0)
    start = np.random.default_rng(0).normal(size=(values.shape[1], MOST_FEATURES)).astype(values.dtype)
    for _ in range(2):
        across = np.linalg.qr(centred @ start)[0]
        start = np.linalg.qr(centred.T @ across)[0]
    return centred @ start


def _evenly(turn: Int[np.ndarray, " row"], most: int) -> Int[np.ndarray, " kept"]:
    """At most so many rows, the first rows of all combinations before any second ones."""
    return np.lexsort((np.random.default_rng(0).permutation(len(turn)), turn))[:most]


def _starts(cell: Int[np.ndarray, " row"]) -> Int[np.ndarray, " combination"]:
    """Where each combination's rows begin."""
    return np.flatnonzero(np.diff(cell, prepend=-1))


def _means(
    values: Float[np.ndarray, "row _"], cell: Int[np.ndarray, " row"]
) -> Float[np.ndarray, "combination _"]:
    """The means over the rows of each combination; not a number if any is none."""
    starts = _starts(cell)
    return np.add.reduceat(values, starts, axis=0) / np.diff(np.append(starts, len(cell)))[:, None]
