"""The figures of the study `predict-failure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.calibration import COLUMNS, calibration_info, draw_calibration
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.stats.prediction import calibration_table
from recombine.studies.base import Tables
from recombine.studies.predict_failure_race import DECIDE, PREDICTORS, Raced, cases

if TYPE_CHECKING:
    from recombine.studies.predict_failure import PredictFailure

NAMES = {
    "distance": "distance to training",
    "frequency": "frequency of its parts",
    "pairs": "pairs that met",
    "certificate": "certificate of the support",
    "coverage": "all that is known before training",
    "decodability": "decodability, after training",
    "both": "all together",
}
SUPPORTS = {"random": "random support", "gaps": "support with gaps"}


def figures(study: PredictFailure, tables: Tables) -> list[Figure]:
    """Who predicts best, whether chances come true, and failures by pairs that met."""
    found = study.race(tables)
    return [_gains(study, found), _calibration(found), _pairs(study, tables)]


def _gains(study: PredictFailure, found: Raced) -> Figure:
    seeds = list(study.seeds)
    rows = [
        pd.DataFrame({"replicate": seeds, "predictor": name, "gain": found.gain[name]}) for name in PREDICTORS
    ]
    info = dots_info(
        pd.concat(rows, ignore_index=True),
        "predictor",
        {"gain": "gain"},
        labels=NAMES,
        x_title="gain in log-loss over the base rate (nats)",
        caption_lead=(
            f"How much better than the base rate each predictor says whether a held-out combination fails (R² below "
            f"{study.threshold:g}), in runs with other teachers, supports and networks than those it was fitted on. 0 is no "
            "better than always saying the share of failures; further right is better."
        ),
    )
    return Figure("gains", "What tells failures best?", info.caption, draw_dots(info))


def _calibration(found: Raced) -> Figure:
    shown = ("coverage", "decodability", "both")
    rows = []
    for name in shown if len(found.chances) else ():
        for row in calibration_table(1 - found.chances[name], 1 - found.chances["fails"]):
            rows.append((name, row.predicted, row.observed, row.low, row.high, row.number))
    info = calibration_info(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        labels={name: NAMES[name] for name in shown},
        x_title="predicted chance of success",
        y_title="share that succeeded",
        caption_lead=(
            "Held-out combinations of all deciding replicates, by the chance of success that was predicted for them. Those "
            "of one run hang together, so the bars are too short."
        ),
    )
    return Figure("calibration", "Do the chances come true?", info.caption, draw_calibration(info))


def _pairs(study: PredictFailure, tables: Tables) -> Figure:
    table = cases(tables, study.threshold)
    table = table[(table["role"] == DECIDE) & (table["parts"] > 1)]
    table = table.assign(
        pairs_met=table["pairs_met"].astype(float).round(2), fails=table["fails"].astype(float)
    )
    by = ["support", "number", "pairs_met", "replicate"]
    shares = table.groupby(by)["fails"].mean().reset_index()
    numbers = sorted({*study.numbers, *study.gap_numbers})
    info = lines_info(
        shares,
        x="pairs_met",
        y="fails",
        series="number",
        facet="support",
        log=False,
        ordered=True,
        labels={number: f"{number} combinations" for number in numbers},
        facet_labels=SUPPORTS,
        floor=0.0,
        ceiling=1.0,
        x_title="share of its pairs that met in training",
        y_title="share that fails",
        caption_lead=(
            "The share of held-out combinations (of two parts or more) that fail, by how many of their pairs met in training. "
            "A line that falls says that coverage of pairs matters at that number of combinations; lines that lie apart say "
            "that something else does, too."
        ),
    )
    return Figure(
        "failures_by_pairs", "Do combinations fail whose pairs never met?", info.caption, draw_lines(info)
    )
