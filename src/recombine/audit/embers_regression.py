"""The regression: whether an answer is right, by task, variant, log-probabilities and lengths, with a level for each text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.stats.logistic_mixed import MixedLogistic, fit_logistic_mixed, independent

RIDGE = 0.01
"""So little of a penalty that it matters only where a column tells right from wrong without error."""
COMMON, OUTPUT, INPUT = "common variant", "output log-probability", "input log-probability"
UNIT = 10
"""Weights are those of so many nats, and so many characters: of one they would be tiny."""


def fit_embers(frame: pd.DataFrame) -> tuple[MixedLogistic | None, list[str]]:
    """correct ~ task + variant + log-probabilities + lengths, with a level for each text."""
    notes = []
    each = np.isfinite(frame[["input_logprob", "output_logprob"]].to_numpy(dtype=float))
    known = each.all(1)
    if not known.all():
        lacking = [name for name, there in zip(("input", "output"), each.T, strict=True) if not there.all()]
        notes.append(
            f"{int((~known).sum())} of {len(frame)} answers have no {' or no '.join(lacking)} log-probability and are "
            "not in the regression, which needs both."
        )
    if not known.any():
        return None, [*notes, "No answer has both log-probabilities: no regression."]
    part = frame[known]
    mean = part.groupby("task")["correct"].transform("mean")
    settled = sorted(set(part.loc[mean.isin([0, 1]), "task"].astype(str)))
    if settled:
        notes.append(f"All right or all wrong, and so not in the regression: {', '.join(settled)}.")
    part = part[~mean.isin([0, 1])]
    if part.empty:
        among = "" if known.all() else " among those that are left"
        return None, [*notes, f"No task has both right and wrong answers{among}: no regression."]
    tasks = {
        f"task {name}": (part["task"] == name).to_numpy(dtype=float)
        for name in list(pd.unique(part["task"]))[1:]
    }
    columns = tasks | {
        COMMON: (part["variant"] == "common").to_numpy(dtype=float),
        OUTPUT: part["output_logprob"].to_numpy(dtype=float) / UNIT,
        INPUT: part["input_logprob"].to_numpy(dtype=float) / UNIT,
        "output length": part["output_length"].to_numpy(dtype=float) / UNIT,
        "input length": part["input_length"].to_numpy(dtype=float) / UNIT,
    }
    kept, left = independent(columns)
    if left:
        notes.append(
            f"Says nothing that the others do not, and so is not in the regression: {', '.join(left)}."
        )
    text = part["group"].astype(str).to_numpy(dtype=str)
    # Where every text comes once, its own level cannot be told from chance.
    spread = 0.0 if len(set(text.tolist())) == len(text) else None
    given = {name: columns[name] for name in kept}
    correct = part["correct"].to_numpy(dtype=float)
    try:
        return fit_logistic_mixed(given, correct, text, penalty=RIDGE, spread=spread), notes
    except BadInput as error:
        return None, [*notes, f"No regression: {error.message}"]


def shown_weights(fit: MixedLogistic) -> list[str]:
    """The columns that are of interest: all but the levels of tasks."""
    return [name for name in fit.names if not name.startswith("task ")]
