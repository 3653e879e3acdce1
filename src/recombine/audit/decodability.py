"""How well each factor can be read off each layer of the user's model, and whether that goes with success."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recombine.audit.activations import Activations
from recombine.audit.cells import Cells
from recombine.audit.cross_fitting import (
    FOLDS,
    Rows,
    control_scores,
    picked,
    read_layer,
    repeated,
    rows_of,
)
from recombine.audit.findings import DecodabilityFinding, Site
from recombine.audit.questions import FEWEST, Question, questions
from recombine.audit.wording import counted
from recombine.errors import BadInput
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.prediction import wilson
from recombine.stats.rank import partial_rank, ranks_within

MOST_RESAMPLED = 5000
"""Up to so many combinations the interval of the relation is a bootstrap; beyond, it is Fisher's."""


def decodability(
    cells: Cells,
    activations: Activations,
    score: int,
    *,
    strata: Sequence[str] | None = None,
    seed: int = 0,
    on: Callable[[float], None] | None = None,
) -> DecodabilityFinding:
    """Decodability of each place at each layer, on combinations that no probe was fitted on, and its relation to a score.

    `strata` names the coverage stratum of each combination: the relation is looked for within them. `on` is told the
    share that is done.
    """
    rows, notes = rows_of(cells, activations, np.random.default_rng([seed, 5]))
    if rows is None:
        return DecodabilityFinding((), {}, None, " ".join(notes))
    asked, more = questions(cells, rows.fold >= 0)
    notes += more
    if asked and not repeated(rows):
        notes.append(
            "Most combinations have one row, so the control task was tried on combinations that it was not fitted on: "
            "there it is a measured level of chance."
        )
    sites: list[Site] = []
    readings = {}
    for layer, features in rows.layers.items():
        readings[layer] = read_layer(rows, features, asked)
        # In the middle of the strengths that the folds chose, on their logarithm.
        strengths = [math.exp(np.mean(np.log(one.strength))) for one in readings[layer]]
        controls = control_scores(rows, features, asked, strengths, seed)
        for question, one, control in zip(asked, readings[layer], controls, strict=True):
            sites.append(_site(layer, question, one.answers.right, control))
        if on is not None:
            on(len(readings) / len(rows.layers))
    chosen: dict[str, str] = {}
    chosen_score: dict[str, Interval] = {}
    sure = np.full((len(asked), len(cells.parts)), np.nan)
    for number, question in enumerate(asked):
        by_fold = [
            _best(rows, {name: one[number].quality[fold] for name, one in readings.items()})
            for fold in range(FOLDS)
        ]
        chosen[question.place] = _best(rows, Counter(by_fold))
        found = picked(rows, question, [readings[layer][number].answers for layer in by_fold])
        chosen_score[question.place] = _accuracy(question, found.right)
        sure[number, question.cells] = question.by_combination(found.sure)
    relation, more = _relation(rows, activations, score, strata, sure, seed)
    return DecodabilityFinding(
        tuple(sites), chosen, relation, " ".join(notes + more), chosen_score=chosen_score
    )


def _best(rows: Rows, worth: Mapping[str, Any]) -> str:
    """The layer that is worth most; of equal ones the first in the order of the computation."""
    return max(rows.layers, key=lambda layer: worth.get(layer, 0))


def _site(layer: str, question: Question, right: Float[np.ndarray, "asked _"], control: float) -> Site:
    """What is said of a question at a layer."""
    score = _accuracy(question, right)
    return Site(layer, question.place, score, question.chance, control, score.estimate - control)


def _accuracy(question: Question, right: Float[np.ndarray, "asked _"]) -> Interval:
    """The accuracy, balanced over values, with Wilson's interval for as many trials as there are combinations at least.

    The rows of a combination count as one trial, which is cautious where it has many.
    """
    share = question.balanced(right, np.ones(len(right), bool))
    trials = max(1, int(question.trials(right)))
    low, high = wilson(share, trials)
    return Interval(share, low, high, trials, LEVEL, "wilson, over combinations")


def _relation(
    rows: Rows,
    activations: Activations,
    score: int,
    strata: Sequence[str] | None,
    sure: Float[np.ndarray, "question cell"],
    seed: int,
) -> tuple[Interval | None, list[str]]:
    """The rank correlation of decodability and score over combinations, within strata; or why there is none.

    A combination's decodability is the mean over places of the log-probability of its value: up to a factor the
    log-probability that all its parts are read. Probes of different folds are not equally bold, so combinations are
    compared with others of their fold.
    """
    number, total = _scored(activations, score, len(rows.fold))
    known = ~np.isnan(sure)
    usable = np.flatnonzero(known.any(axis=0) & (number > 0))
    if len(usable) < FEWEST:
        return None, [
            f"Too few to relate decodability to the score: {counted(len(usable), 'combination')} with both."
        ]
    read = np.where(known, sure, 0).sum(axis=0)[usable] / known.sum(axis=0)[usable]
    place = ranks_within(read, rows.fold[usable])
    group = np.zeros(len(usable), int) if strata is None else np.asarray(strata)[usable]
    notes = [] if strata is not None else ["No coverage strata were given, so the relation is over all."]
    replicate = np.arange(len(usable)) if len(usable) <= MOST_RESAMPLED else None
    try:
        found = partial_rank(place, total[usable] / number[usable], group, replicate=replicate, seed=seed)
    except BadInput as error:
        return None, [*notes, f"Decodability could not be related to the score: {error.message}"]
    return found, notes


def _scored(
    activations: Activations, score: int, cells: int
) -> tuple[Int[np.ndarray, " cell"], Float[np.ndarray, " cell"]]:
    """The number of scored rows of each combination and the sum of their scores."""
    values = activations.scores[:, score]
    finite = np.isfinite(values)
    where = activations.cell[finite]
    return np.bincount(where, minlength=cells), np.bincount(where, weights=values[finite], minlength=cells)
