"""What the probability of texts and tasks does to a model that need not care: accuracies, a regression, and claims."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import numpy as np
import pandas as pd

from recombine.audit.embers_claims import embers_verdicts
from recombine.audit.embers_regression import fit_embers, shown_weights
from recombine.errors import BadInput
from recombine.language.tasks import ENCODE
from recombine.stats.intervals import Interval
from recombine.stats.shares import clustered_share
from recombine.stats.verdicts import Verdict

LEVELS = ("high", "medium", "low")
COLUMNS = (
    "task",
    "variant",
    "correct",
    "input_logprob",
    "output_logprob",
    "input_length",
    "output_length",
    "group",
)


@dataclasses.dataclass(frozen=True)
class Share:
    """How many items of a kind were answered rightly."""

    task: str
    variant: str
    level: str
    """Of the probability of the varied text within its task; `all` for all items."""
    items: int
    right: Interval


@dataclasses.dataclass(frozen=True)
class Weight:
    """What a column does to the log-odds of a right answer: for 10 nats, for 10 characters, for the common variant."""

    name: str
    weight: Interval


@dataclasses.dataclass(frozen=True)
class Embers:
    """All that is said of a model's answers."""

    items: int
    texts: int
    right: Interval
    shares: tuple[Share, ...]
    weights: tuple[Weight, ...]
    """Empty where nothing could be fitted."""
    spread: float
    """The standard deviation of texts' own levels, in log-odds; NaN where nothing could be fitted."""
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        shown = {
            name: [dataclasses.asdict(one) for one in getattr(self, name)] for name in ("shares", "weights")
        }
        return {
            "items": self.items,
            "texts": self.texts,
            "right": dataclasses.asdict(self.right),
            **shown,
            "spread": self.spread,
            "verdicts": [verdict.record() for verdict in self.verdicts],
            "notes": list(self.notes),
        }


def embers_findings(frame: pd.DataFrame) -> Embers:
    """The findings from a table with a row an answer: `COLUMNS`, where `correct` is 0 or 1 and log-probabilities may be NaN.

    `group` names the text: answers on one text are not independent, and every interval knows it.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise BadInput(f"The answers have no column {missing[0]!r}.", fix=f"columns: {', '.join(COLUMNS)}")
    if frame.empty:
        raise BadInput("There are no answers.", fix="ask the model first")
    frame = frame.reset_index(drop=True).assign(level=levels(frame))
    fit, notes = fit_embers(frame)
    return Embers(
        len(frame),
        int(frame["group"].nunique()),
        clustered_share(frame["correct"], frame["group"]),
        tuple(_shares(frame)),
        () if fit is None else tuple(Weight(name, fit.interval(name)) for name in shown_weights(fit)),
        math.nan if fit is None else fit.spread,
        embers_verdicts(frame, fit),
        (*notes, *_uneven(frame)),
    )


def levels(frame: pd.DataFrame) -> list[str]:
    """For each answer the third of its task in which its text's probability lies; empty where it is not known.

    The text is the answer, or what is given where the task is to encode. A task in which it does not vary has no levels.
    """
    found = np.full(len(frame), "", dtype=object)
    tasks = frame["task"].astype(str).to_numpy()
    for task in pd.unique(tasks):
        column = "input_logprob" if task == ENCODE else "output_logprob"
        values = frame[column].to_numpy(dtype=float)
        here = (tasks == task) & np.isfinite(values)
        if not here.any():
            continue
        low, high = np.quantile(values[here], [1 / 3, 2 / 3])
        if high > low:
            named = np.where(values >= high, "high", np.where(values <= low, "low", "medium"))
            found[here] = named[here]
    return [str(one) for one in found]


def _shares(frame: pd.DataFrame) -> list[Share]:
    found = []
    for keys, part in frame.groupby(["task", "variant"], sort=False):
        task, variant = cast(tuple[str, str], keys)
        pieces = [("all", part), *((level, part[part["level"] == level]) for level in LEVELS)]
        found += [
            Share(
                str(task), str(variant), level, len(piece), clustered_share(piece["correct"], piece["group"])
            )
            for level, piece in pieces
            if len(piece)
        ]
    return found


def _uneven(frame: pd.DataFrame) -> list[str]:
    """Sentences about tasks in which probable and improbable texts differ in length."""
    found = []
    for task, part in frame.groupby("task", sort=False):
        column = "input_length" if task == ENCODE else "output_length"
        high, low = (part.loc[part["level"] == level, column].mean() for level in ("high", "low"))
        if math.isfinite(high) and math.isfinite(low) and abs(high - low) > 0.05 * max(high, low):
            found.append(
                f"In {task} probable texts have {high:.1f} characters and improbable ones {low:.1f}: "
                "what looks like an effect of probability may be one of length."
            )
    return found
