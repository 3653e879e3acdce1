"""How the probability of texts and tasks affects a model's answers: accuracies, a regression and claims."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from recombine._html import card, listing, table
from recombine.audit.embers.regression import INPUT, OUTPUT, fit_embers
from recombine.audit.findings import Finding
from recombine.audit.wording import counted, estimate
from recombine.errors import BadInput
from recombine.language.items import DECODE, ENCODE
from recombine.stats.intervals import Interval
from recombine.stats.logistic_mixed import MixedLogistic
from recombine.stats.mixed import within_slope
from recombine.stats.rule import Outcome, decide
from recombine.stats.shares import clustered_share
from recombine.stats.verdicts import Claim, Verdict, settle

STUDY = "embers"
FEWEST = 10
"""The fewest texts for a verdict."""
TOO_FEW = f"{{}} texts; a verdict needs at least {FEWEST}"
MARGIN = 0.05
"""Five points of accuracy."""

STATEMENTS = {
    "probable-output": "Probable answers are given rightly more often than improbable ones (highest against lowest third).",
    "common-task": "The common variant of a task is solved more often than the rare one.",
    "decoding-gap": "The probability of the plain text matters more in decoding, where it is the answer, than in encoding.",
    "output-weight": "The answer's log-probability has a positive weight (log-odds per 10 nats), all other columns held constant.",
    "output-over-input": "That weight is larger than the weight of the input's log-probability.",
}
CLAIMS = {
    name: Claim(
        name, STUDY, text, "greater", 0.0 if name.startswith("output-") else MARGIN, primary=name == "probable-output"
    )
    for name, text in STATEMENTS.items()
}
"""Claims about accuracies have a margin; claims about weights have none."""


def embers_verdicts(frame: pd.DataFrame, fit: MixedLogistic | None) -> tuple[Verdict, ...]:
    """The verdicts on all claims, corrected for their number. `frame` also has the column `level`."""
    ends = frame[frame["level"].isin(["high", "low"])]
    outputs, ciphers = ends[ends["task"] != ENCODE], ends[ends["task"].isin([DECODE, ENCODE])]
    high = _is(ciphers, "level", "high")
    verdicts = [
        _compared("probable-output", outputs, _is(outputs, "level", "high"), [], ["task", "variant"]),
        _compared("common-task", frame, _is(frame, "variant", "common"), [], ["task", "level"]),
        _compared("decoding-gap", ciphers, high * _is(ciphers, "task", DECODE), [high], ["task", "variant"]),
        _weighed("output-weight", fit, lambda fit: (fit.interval(OUTPUT).estimate, fit.error(OUTPUT)), (OUTPUT,)),
        _weighed("output-over-input", fit, lambda fit: fit.difference(OUTPUT, INPUT), (OUTPUT, INPUT)),
    ]
    return tuple(settle(verdicts))


def _is(frame: pd.DataFrame, column: str, value: str) -> np.ndarray:
    return (frame[column] == value).to_numpy(dtype=float)


def _compared(name: str, part: pd.DataFrame, at: np.ndarray, beside: list[np.ndarray], cells: list[str]) -> Verdict:
    """The verdict on the weight of `at`, given `beside`, on accuracy within cells, with texts as clusters."""
    texts = int(part["group"].nunique())
    if texts < FEWEST:
        return _open(name, texts, TOO_FEW.format(texts))
    correct = part["correct"].to_numpy(dtype=float)
    if correct.min() == correct.max():
        word = "right" if correct.min() else "wrong"
        return _open(name, texts, f"all {len(part)} answers are {word}, so nothing can be compared")
    cell = part.groupby(cells).ngroup().to_numpy()
    text = part["group"].astype(str).to_numpy(dtype=str)
    try:
        fitted = within_slope(at, correct, {"task": cell}, text, beside)
    except BadInput as error:
        return _open(name, texts, error.message.rstrip("."))
    return _verdict(name, fitted.slope.estimate, fitted.error, texts)


def _weighed(
    name: str, fit: MixedLogistic | None, of: Callable[[MixedLogistic], tuple[float, float]], needed: Sequence[str]
) -> Verdict:
    if fit is None:
        return _open(name, 0, "no regression could be fitted")
    if lacking := [column for column in needed if column not in fit.names]:
        return _open(name, fit.groups, f"the {lacking[0]} does not vary within tasks, or is unknown")
    if fit.groups < FEWEST:
        return _open(name, fit.groups, TOO_FEW.format(fit.groups))
    return _verdict(name, *of(fit), fit.groups)


def _verdict(name: str, effect: float, error: float, texts: int) -> Verdict:
    claim = CLAIMS[name]
    decision = decide(claim.direction, effect, error, texts, claim.margin)
    word = cast(Outcome, decision.outcome.item())
    return Verdict(claim, word, effect, float(decision.low), float(decision.high), texts, float(decision.p))


def _open(name: str, texts: int, why: str) -> Verdict:
    return Verdict(CLAIMS[name], "inconclusive", math.nan, math.nan, math.nan, texts, 1.0, note=why)


LEVELS = ("high", "medium", "low")
COLUMNS = ("task", "variant", "correct", "input_logprob", "output_logprob", "input_length", "output_length", "group")


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of right answers among items of one kind."""

    task: str
    variant: str
    level: str
    """The third of the text's probability within its task; `all` for all items."""
    items: int
    right: Interval


@dataclasses.dataclass(frozen=True)
class Weight:
    """The effect of a column on the log-odds of a right answer: per 10 nats, per 10 characters, or of the common variant."""

    name: str
    weight: Interval


@dataclasses.dataclass(frozen=True, repr=False)
class Embers(Finding):
    """The findings about a model's answers. Printing them shows the verdicts; `record()` is the whole as plain data."""

    items: int
    texts: int
    right: Interval
    shares: tuple[Share, ...]
    weights: tuple[Weight, ...]
    """Empty if no regression could be fitted."""
    spread: float
    """The standard deviation of the random effects of texts, in log-odds; NaN if no regression could be fitted."""
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """The whole result as plain data, as the command prints it with `--json`."""
        return super().record() | {"verdicts": [verdict.record() for verdict in self.verdicts]}

    def _repr_html_(self) -> str:
        verdicts = [(verdict.verdict, verdict.claim.statement, f"{verdict.effect:+.2f}") for verdict in self.verdicts]
        return card(self._title(), table(["verdict", "claim", "effect"], verdicts), listing(self.notes))

    def _title(self) -> str:
        return f"Embers: {counted(self.items, 'answer')} on {counted(self.texts, 'text')}, right {estimate(self.right)}"

    def _lines(self) -> Iterator[str]:
        yield self._title()
        for verdict in self.verdicts:
            yield f"  {verdict.verdict}: {verdict.claim.statement} ({verdict.effect:+.2f})"
        for note in self.notes:
            yield f"note: {note}"


def embers_findings(frame: pd.DataFrame) -> Embers:
    """The findings about a table of answers.

    Args:
        frame: One row per answer, with the columns `COLUMNS`. `correct` is 0 or 1, log-probabilities may be NaN, and
            `group` names the text. Answers on one text are not independent; the intervals take this into account.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise BadInput(f"The answers have no column {missing[0]!r}.", fix=f"give the columns {', '.join(COLUMNS)}")
    if frame.empty:
        raise BadInput("There are no answers.", fix="ask the model first")
    frame = frame.reset_index(drop=True).assign(level=levels(frame))
    fit, notes = fit_embers(frame)
    # All weights except the effects of tasks.
    names = [] if fit is None else [name for name in fit.names if not name.startswith("task ")]
    return Embers(
        len(frame),
        int(frame["group"].nunique()),
        clustered_share(frame["correct"], frame["group"]),
        tuple(_shares(frame)),
        () if fit is None else tuple(Weight(name, fit.interval(name)) for name in names),
        math.nan if fit is None else fit.spread,
        embers_verdicts(frame, fit),
        (*notes, *_uneven(frame)),
    )


def levels(frame: pd.DataFrame) -> list[str]:
    """For each answer, the third of its task that its text's probability lies in; empty if unknown.

    The text is the answer, or the given text if the task is to encode. A task without variation has no levels.
    """
    level = np.full(len(frame), "", dtype=object)
    tasks = frame["task"].astype(str).to_numpy()
    for task in pd.unique(tasks):
        column = "input_logprob" if task == ENCODE else "output_logprob"
        values = frame[column].to_numpy(dtype=float)
        here = (tasks == task) & np.isfinite(values)
        low, high = np.quantile(values[here], [1 / 3, 2 / 3]) if here.any() else (0.0, 0.0)
        if high > low:
            level[here] = np.select([values >= high, values <= low], ["high", "low"], "medium")[here]
    return [str(name) for name in level]


def _shares(frame: pd.DataFrame) -> list[Share]:
    shares = []
    for keys, part in frame.groupby(["task", "variant"], sort=False):
        task, variant = cast(tuple[str, str], keys)
        pieces = [("all", part), *((level, part[part["level"] == level]) for level in LEVELS)]
        shares += [
            Share(str(task), str(variant), level, len(piece), clustered_share(piece["correct"], piece["group"]))
            for level, piece in pieces
            if len(piece)
        ]
    return shares


def _uneven(frame: pd.DataFrame) -> list[str]:
    """Notes about tasks whose probable and improbable texts differ in length."""
    notes = []
    for task, part in frame.groupby("task", sort=False):
        column = "input_length" if task == ENCODE else "output_length"
        high, low = (part.loc[part["level"] == level, column].mean() for level in ("high", "low"))
        if math.isfinite(high) and math.isfinite(low) and abs(high - low) > 0.05 * max(high, low):
            notes.append(
                f"In {task}, probable texts have {high:.1f} characters and improbable ones {low:.1f}: "
                "an apparent effect of probability may be one of length."
            )
    return notes
