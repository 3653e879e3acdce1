"""The claims about what the probability of texts and tasks does to a model, and the verdicts that its answers give."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pandas as pd

from recombine.audit.embers_regression import INPUT, OUTPUT
from recombine.errors import BadInput
from recombine.language.tasks import DECODE, ENCODE
from recombine.stats.logistic_mixed import MixedLogistic
from recombine.stats.mixed import within_slope
from recombine.stats.rule import Word, decide
from recombine.stats.verdicts import Claim, Verdict, settle

STUDY = "embers"
FEWEST = 10
"""Texts that a verdict needs."""
MARGIN = 0.05
"""Five points of accuracy."""

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "probable-output",
            STUDY,
            "Probable answers are given rightly more often than improbable ones (highest against lowest third).",
            "greater",
            MARGIN,
            primary=True,
        ),
        Claim(
            "common-task",
            STUDY,
            "The common variant of a task is solved more often than the rare one.",
            "greater",
            MARGIN,
        ),
        Claim(
            "decoding-gap",
            STUDY,
            "The probability of the plain text matters more in decoding, where it is the answer, than in encoding.",
            "greater",
            MARGIN,
        ),
        Claim(
            "output-weight",
            STUDY,
            "The answer's log-probability has a positive weight (log-odds for 10 nats), all else held still.",
            "greater",
            0.0,
        ),
        Claim(
            "output-over-input",
            STUDY,
            "That weight is larger than the weight of the input's log-probability.",
            "greater",
            0.0,
        ),
    )
}


def embers_verdicts(frame: pd.DataFrame, fit: MixedLogistic | None) -> tuple[Verdict, ...]:
    """The verdicts on all claims, corrected for their number; `frame` has a column `level`."""
    verdicts = [
        _compared("probable-output", frame, _probable_output),
        _compared("common-task", frame, _common_task),
        _compared("decoding-gap", frame, _decoding_gap),
        _weighed(
            "output-weight", fit, lambda one: (one.interval(OUTPUT).estimate, one.error(OUTPUT)), (OUTPUT,)
        ),
        _weighed("output-over-input", fit, lambda one: one.difference(OUTPUT, INPUT), (OUTPUT, INPUT)),
    ]
    return tuple(settle(verdicts))


Compared = tuple[pd.DataFrame, np.ndarray, list[np.ndarray], list[str]]
"""The answers that are compared, what is compared, what is held still beside it, and the columns that make cells."""


def _probable_output(frame: pd.DataFrame) -> Compared:
    part = frame[(frame["task"] != ENCODE) & frame["level"].isin(["high", "low"])]
    return part, _is(part, "level", "high"), [], ["task", "variant"]


def _common_task(frame: pd.DataFrame) -> Compared:
    return frame, _is(frame, "variant", "common"), [], ["task", "level"]


def _decoding_gap(frame: pd.DataFrame) -> Compared:
    part = frame[frame["task"].isin([DECODE, ENCODE]) & frame["level"].isin(["high", "low"])]
    high = _is(part, "level", "high")
    return part, high * _is(part, "task", DECODE), [high], ["task", "variant"]


def _is(frame: pd.DataFrame, column: str, value: str) -> np.ndarray:
    return (frame[column] == value).to_numpy(dtype=float)


def _compared(name: str, frame: pd.DataFrame, chosen: Callable[[pd.DataFrame], Compared]) -> Verdict:
    """A difference of accuracies within cells, with texts as clusters."""
    part, at, beside, cells = chosen(frame)
    texts = int(part["group"].nunique())
    if texts < FEWEST:
        return _open(name, texts, f"{texts} of the at least {FEWEST} texts that a verdict needs")
    correct = part["correct"].to_numpy(dtype=float)
    if correct.min() == correct.max():
        said = "right" if correct.min() else "wrong"
        return _open(name, texts, f"all {len(part)} answers are {said}: nothing can be compared")
    cell = part.groupby(cells).ngroup().to_numpy()
    text = part["group"].astype(str).to_numpy(dtype=str)
    try:
        found = within_slope(at, correct, {"task": cell}, text, beside)
    except BadInput as error:
        return _open(name, texts, error.message.rstrip("."))
    return _verdict(name, found.slope.estimate, found.error, texts)


def _weighed(
    name: str,
    fit: MixedLogistic | None,
    of: Callable[[MixedLogistic], tuple[float, float]],
    needed: Sequence[str],
) -> Verdict:
    if fit is None:
        return _open(name, 0, "no regression could be fitted")
    if lacking := [one for one in needed if one not in fit.names]:
        return _open(name, fit.groups, f"the {lacking[0]} does not vary within tasks, or is not known")
    if fit.groups < FEWEST:
        return _open(name, fit.groups, f"{fit.groups} of the at least {FEWEST} texts that a verdict needs")
    return _verdict(name, *of(fit), fit.groups)


def _verdict(name: str, effect: float, error: float, texts: int) -> Verdict:
    claim = CLAIMS[name]
    found = decide(claim.direction, effect, error, texts, claim.margin)
    word = cast(Word, found.word.item())
    return Verdict(claim, word, effect, float(found.low), float(found.high), texts, float(found.p))


def _open(name: str, texts: int, why: str) -> Verdict:
    return Verdict(CLAIMS[name], "inconclusive", math.nan, math.nan, math.nan, texts, 1.0, note=why)
