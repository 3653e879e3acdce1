"""The figures of the study `coverage-principle`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.extent import Reference
from recombine.figures.lines import draw_lines, lines_info
from recombine.studies.base import Tables
from recombine.studies.coverage_principle import growth
from recombine.studies.coverage_principle_claims import ARMS, TWO

if TYPE_CHECKING:
    from recombine.studies.coverage_principle import CoveragePrinciple

LARGEST = 12
"""Cutoffs from here on are shown together: few inputs have them."""
FIT = "fit"


def figures(study: CoveragePrinciple, tables: Tables) -> list[Figure]:
    """Accuracy by cutoff, by arm, against the number of examples, and the examples needed against the tokens."""
    answers = study.answers(tables)
    return [
        _by_cutoff(study, answers),
        _by_arm(study, tables, answers),
        _by_number(study, answers),
        _needed(study, tables),
    ]


def _means(answers: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Accuracy in each replicate: single inputs are right or wrong, and would only cover the means."""
    return answers.groupby(["replicate", *by])["right"].mean().reset_index()


def _by_cutoff(study: CoveragePrinciple, answers: pd.DataFrame) -> Figure:
    own = answers[(answers["arm"] == TWO) & (answers["tokens"] == study.most)]
    shown = own.assign(cutoff=own["cutoff"].clip(upper=LARGEST))
    means = _means(shown, "number", "cutoff")
    # What only a few replicates have says little, and its interval would fill the figure.
    often = means.groupby(["number", "cutoff"])["replicate"].transform("nunique") * 2 > study.replicates
    info = lines_info(
        means[often],
        x="cutoff",
        y="right",
        series="number",
        log=False,
        labels={study.number(share): f"{study.number(share):,} examples" for share in study.shares},
        ordered=True,
        floor=0.0,
        ceiling=1.0,
        references=[Reference(1 / study.most, "chance")],
        x_title="cutoff, known before training (0: uncovered)",
        y_title="accuracy, held out",
        caption_lead=(
            "Held-out inputs of two hops that are answered right, by how much evidence the training examples alone have for "
            f"them. Cutoffs of {LARGEST} and more are shown together; what half of the replicates or fewer have is left out."
        ),
    )
    return Figure("by_cutoff", "Is it right where the data covers it?", info.caption, draw_lines(info))


def _by_arm(study: CoveragePrinciple, tables: Tables, answers: pd.DataFrame) -> Figure:
    """Each arm at the most tokens, with few examples and with many where it has both."""
    keys = ["arm", "number", "replicate"]
    own = answers[answers["tokens"] == study.most]
    known = own[own["known"].astype(bool)].groupby(keys)["right"].mean().rename("known")
    uncovered = own[own["level"] == "uncovered"].groupby(keys)["right"].mean().rename("uncovered")
    runs = tables.runs[tables.runs["tokens"] == study.most].reindex(columns=[*keys, "accuracy_in"])
    frame = runs.set_index(keys).join([known, uncovered]).reset_index()
    sizes = [study.number(share) for share in (study.few, study.shares[-1])]
    frame = frame[frame["number"].isin(sizes)]
    labels = {
        f"{arm} {size}": f"{words} ({size:,})" for arm, words in ARMS.items() for size in sorted(set(sizes))
    }
    info = dots_info(
        frame.assign(cell=frame["arm"].astype(str) + " " + frame["number"].astype(str)),
        category="cell",
        measures={
            "accuracy_in": "trained",
            "known": "held out, all facts seen",
            "uncovered": "held out, uncovered",
        },
        labels=labels,
        references=[Reference(1 / study.most, "chance")],
        floor=0.0,
        ceiling=1.0,
        x_title="accuracy",
        caption_lead=(
            f"Inputs that are answered right, by what is asked and from how many examples (in brackets), {study.most} tokens. Facts are the "
            "arguments of each function on an input's way; none was ever shown alone."
        ),
    )
    return Figure("by_arm", "What does it infer?", info.caption, draw_dots(info))


def _by_number(study: CoveragePrinciple, answers: pd.DataFrame) -> Figure:
    own = answers[(answers["arm"] == TWO) & answers["known"].astype(bool)]
    info = lines_info(
        _means(own, "tokens", "number"),
        x="number",
        y="right",
        series="tokens",
        labels={tokens: f"{tokens} tokens" for tokens in study.tokens},
        ordered=True,
        floor=0.0,
        ceiling=1.0,
        references=[Reference(study.threshold, "sought")],
        x_title="training examples",
        y_title="accuracy, held out",
        caption_lead=(
            "Held-out inputs of two hops, all of whose facts occur in training, that are answered right. The line is the accuracy "
            "whose number of examples is sought."
        ),
    )
    return Figure("by_number", "How many examples does it take?", info.caption, draw_lines(info))


def _needed(study: CoveragePrinciple, tables: Tables) -> Figure:
    found = study.needed(tables).assign(series=TWO)
    line, said, labels = growth(found), "", {TWO: ARMS[TWO]}
    if line is not None:
        slope, tokens = line.slope, np.array(study.tokens, dtype=float)
        along = np.exp(line.intercept + slope.estimate * np.log(tokens))
        # A line is a reading of the numbers, not one of them: dashed.
        fitted = pd.DataFrame({"tokens": tokens, "needed": along, "censored": "no", "series": FIT})
        found = pd.concat([found, fitted.merge(found[["replicate"]].drop_duplicates(), how="cross")])
        labels[FIT] = f"fit: n^{slope.estimate:.2f}"
        said = (
            f" The fit, in which these are censored ({line.censored} of {slope.replicates}), has the exponent "
            f"{slope.estimate:.2f} (95 % interval {slope.low:.2f} to {slope.high:.2f})."
        )
    info = lines_info(
        found[["replicate", "series", "tokens", "needed"]],
        x="tokens",
        y="needed",
        series="series",
        log_y=True,
        labels=labels,
        controls=[FIT],
        x_title="tokens n",
        y_title="examples needed",
        caption_lead=(
            f"Training examples for {study.threshold:.0%} of held-out inputs right, all facts seen. Numbers beyond a curve stand "
            f"at its end.{said}"
        ),
    )
    return Figure("needed", "How does the need for data grow?", info.caption, draw_lines(info))
