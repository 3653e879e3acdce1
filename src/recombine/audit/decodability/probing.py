"""How well each factor can be decoded from each layer of the user's model, and whether that goes with success."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.audit.cells import Activations, Cells
from recombine.audit.decodability.cross_fitting import FOLDS, Rows, control_scores, read_layer, repeated, rows_of
from recombine.audit.decodability.questions import FEWEST, Question, questions
from recombine.audit.findings import DecodabilityFinding, Site
from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.stats import LEVEL, Interval, partial_rank, ranks_within, wilson

MOST_RESAMPLED = 5000
"""Up to this many combinations the interval of the relation is a bootstrap; beyond, it is Fisher's."""


def decodability(
    cells: Cells,
    activations: Activations,
    score: int,
    *,
    strata: Sequence[str] | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> DecodabilityFinding:
    """Decodability of each slot at each layer, on combinations that no probe was fitted on, and its relation to a score.

    Args:
        cells: The combinations.
        activations: Activations of the rows.
        score: The index of the score.
        strata: The coverage stratum of each combination. The relation is computed within strata.
        seed: The seed of folds and controls.
        progress: Called with the share that is done.

    Returns:
        The finding, with a note about what was left out.
    """
    rows, notes = rows_of(cells, activations, np.random.default_rng([seed, 5]))
    if rows is None:
        return DecodabilityFinding((), {}, None, " ".join(notes))
    asked, more = questions(cells, rows.fold >= 0)
    notes += more
    if asked and not repeated(rows):
        notes.append(
            "Most combinations have one row, so the control task was scored on combinations that it was not fitted on: "
            "there it measures chance."
        )
    sites: list[Site] = []
    readings = {}
    for layer, features in rows.layers.items():
        readings[layer] = read_layer(rows, features, asked)
        # The geometric mean of the strengths that the folds chose.
        strengths = [math.exp(np.mean(np.log(reading.strength))) for reading in readings[layer]]
        controls = control_scores(rows, features, asked, strengths, seed)
        for question, reading, control in zip(asked, readings[layer], controls, strict=True):
            right = _accuracy(question, reading.answers.right)
            sites.append(Site(layer, question.place, right, question.chance, control, right.estimate - control))
        if progress is not None:
            progress(len(readings) / len(rows.layers))
    chosen, chosen_score = {}, {}
    sure = np.full((len(asked), len(cells.constituents)), np.nan)
    for number, question in enumerate(asked):
        by_fold = [
            _best(rows, {name: reading[number].quality[fold] for name, reading in readings.items()})
            for fold in range(FOLDS)
        ]
        chosen[question.place] = _best(rows, Counter(by_fold))
        answers = question.picked(rows.fold, [readings[layer][number].answers for layer in by_fold])
        chosen_score[question.place] = _accuracy(question, answers.right)
        sure[number, question.cells] = question.by_combination(answers.sure)
    relation, more = _relation(rows, activations, score, strata, sure, seed)
    return DecodabilityFinding(tuple(sites), chosen, relation, " ".join(notes + more), chosen_score=chosen_score)


def _best(rows: Rows, worth: Mapping[str, Any]) -> str:
    """The best layer; among equals the first in the order of the computation."""
    return max(rows.layers, key=lambda layer: worth.get(layer, 0))


def _accuracy(question: Question, right: Float[np.ndarray, "asked _"]) -> Interval:
    """The accuracy, balanced over values, with Wilson's interval. One combination counts as one trial.

    This is conservative for combinations with many rows.
    """
    share = question.balanced(right)
    trials = max(1, int(question.trials(right)))
    return Interval(share, *wilson(share, trials), trials, LEVEL, "wilson, over combinations")


def _relation(
    rows: Rows, activations: Activations, score: int, strata: Sequence[str] | None, sure: np.ndarray, seed: int
) -> tuple[Interval | None, list[str]]:
    """The rank correlation of decodability and score over combinations within strata, or the reason why there is none.

    A combination's decodability is the mean over slots (the rows of `sure`) of the log-probability of its value: up to
    a factor, the log-probability that all its constituents are decoded. Probes of different folds differ in
    confidence, so combinations are compared within folds.
    """
    values = activations.scores[:, score]
    finite, cells = np.isfinite(values), len(rows.fold)
    number = np.bincount(activations.cell[finite], minlength=cells)
    total = np.bincount(activations.cell[finite], weights=values[finite], minlength=cells)
    known = ~np.isnan(sure)
    usable = np.flatnonzero(known.any(axis=0) & (number > 0))
    if len(usable) < FEWEST:
        return None, [
            f"Too few combinations relate decodability to the score: {counted(len(usable), 'combination')} with both."
        ]
    read = np.where(known, sure, 0).sum(axis=0)[usable] / known.sum(axis=0)[usable]
    ranks = ranks_within(read, rows.fold[usable])
    group = np.zeros(len(usable), int) if strata is None else np.asarray(strata)[usable]
    notes = [] if strata is not None else ["No coverage strata were given, so the relation is over all combinations."]
    replicate = np.arange(len(usable)) if len(usable) <= MOST_RESAMPLED else None
    try:
        relation = partial_rank(ranks, total[usable] / number[usable], group, replicate=replicate, seed=seed)
    except BadInput as error:
        return None, [*notes, f"Decodability could not be related to the score: {error.message}"]
    return relation, notes
