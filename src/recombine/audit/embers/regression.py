"""A logistic mixed model of right answers: task, variant, log-probabilities, lengths, and a random effect per text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.stats.logistic_mixed import MixedLogistic, fit_logistic_mixed, independent

RIDGE = 0.01
"""A penalty so small that it only matters if a column separates right from wrong perfectly."""
COMMON, OUTPUT, INPUT = "common variant", "output log-probability", "input log-probability"
UNIT = 10
"""Weights are per 10 nats and per 10 characters; per unit they would be tiny."""


def fit_embers(frame: pd.DataFrame) -> tuple[MixedLogistic | None, list[str]]:
    """Fit correct ~ task + variant + log-probabilities + lengths, with a random effect per text.

    Returns:
        The fit, or None if there is none, and notes about what was left out.
    """
    notes = []
    each = np.isfinite(frame[["input_logprob", "output_logprob"]].to_numpy(dtype=float))
    known = each.all(1)
    if not known.all():
        lacking = [name for name, finite in zip(("input", "output"), each.T, strict=True) if not finite.all()]
        notes.append(
            f"{int((~known).sum())} of {len(frame)} answers have no {' or no '.join(lacking)} log-probability. They are "
            "left out of the regression, which needs both."
        )
    if not known.any():
        return None, [*notes, "No answer has both log-probabilities, so there is no regression."]
    part = frame[known]
    mean = part.groupby("task")["correct"].transform("mean")
    settled = sorted(set(part.loc[mean.isin([0, 1]), "task"].astype(str)))
    if settled:
        notes.append(
            f"Left out of the regression, because all answers are right or all are wrong: {', '.join(settled)}."
        )
    part = part[~mean.isin([0, 1])]
    variants = part["variant"].nunique()
    for variant, answers in part.groupby("variant", sort=True)["correct"]:
        if answers.nunique() == 1 and part["variant"].nunique() > 1:  # One variant is left in any case.
            word = "always" if answers.iloc[0] else "never"
            notes.append(
                f"The {variant} variant is {word} solved ({int(answers.sum())} of {len(answers)} answers), so its weight "
                "cannot be estimated; its answers are left out of the regression."
            )
            part = part[part["variant"] != variant]
    if part.empty:
        among = "" if known.all() else " among the remaining ones"
        return None, [*notes, f"No task has both right and wrong answers{among}, so there is no regression."]
    numbers = {OUTPUT: "output_logprob", INPUT: "input_logprob"}
    numbers |= {"output length": "output_length", "input length": "input_length"}
    columns = {
        **{f"task {name}": (part["task"] == name).to_numpy(dtype=float) for name in pd.unique(part["task"])[1:]},
        COMMON: (part["variant"] == "common").to_numpy(dtype=float),
        **{name: part[column].to_numpy(dtype=float) / UNIT for name, column in numbers.items()},
    }
    if part["variant"].nunique() < variants:
        del columns[COMMON]
    kept, redundant = independent(columns)
    if redundant:
        notes.append(f"Left out of the regression, because other columns determine it: {', '.join(redundant)}.")
    text = part["group"].astype(str).to_numpy(dtype=str)
    # If every text occurs once, its random effect cannot be separated from chance.
    spread = 0.0 if len(set(text.tolist())) == len(text) else None
    given, correct = {name: columns[name] for name in kept}, part["correct"].to_numpy(dtype=float)
    try:
        return fit_logistic_mixed(given, correct, text, penalty=RIDGE, spread=spread), notes
    except BadInput as error:
        return None, [*notes, f"The regression failed: {error.message}"]


def logprob_weights(frame: pd.DataFrame) -> dict[str, float]:
    """The weights of the output's and of the input's log-probability in `fit_embers`; NaN where nothing can be fitted."""
    fit, _ = fit_embers(frame)
    if fit is None:
        return {OUTPUT: np.nan, INPUT: np.nan}
    return {name: fit.interval(name).estimate if name in fit.names else np.nan for name in (OUTPUT, INPUT)}
