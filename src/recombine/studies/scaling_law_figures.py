"""The figures of the study `scaling-law`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.extent import Reference
from recombine.figures.forecast import draw_forecast, forecast_info
from recombine.stats.forecasts import last_value, log_linear
from recombine.stats.scaling_law import forecast
from recombine.studies.base import Tables
from recombine.studies.scaling_law_forecasts import FITTED, mean_law, with_loss

if TYPE_CHECKING:
    from recombine.studies.scaling_law import ScalingLaw

LARGER = {
    "number": "more combinations",
    "parameters": "a larger network",
    "both": "both",
}
METHODS = {"law_error": "the law", "last_error": "last value", "line_error": "straight line"}


def figures(study: ScalingLaw, tables: Tables) -> list[Figure]:
    """The law of the means with what came, and the errors of all forecasts."""
    return [_law(study, tables), _errors(study, tables)]


def _law(study: ScalingLaw, tables: Tables) -> Figure:
    main = with_loss(study.main(tables))
    main = main[np.isfinite(main["loss"])]
    means = (
        main.assign(y=np.log(main["loss"])).groupby(["role", "width", "parameters", "number"])["y"].mean()
    ).reset_index()
    means = means.assign(y=np.exp(means["y"]), x=means["number"], fitted=means["role"] == FITTED)
    curve, rules = _curves(means)
    titles = {width: f"width {width}" for width in (*study.widths, *study.larger_widths)}
    info = forecast_info(
        means,
        curve,
        rules,
        facet="width",
        facet_labels=titles,
        law="E + A/N^a + B/P^b",
        log_y=True,
        references=[Reference(1 - target, f"R² {target:g}") for target in study.targets],
        x_title="training combinations",
        y_title="loss, 1 − held-out R²",
        caption_lead=(
            "Means over replicates, and one law of these means for all panels (verdicts rest on a law for each replicate). "
            f"N is the number of combinations, P that of weights; {_answers(study, tables)}"
        ),
    )
    return Figure(
        "scaling_law", "What small runs say of larger ones, and what came", info.caption, draw_forecast(info)
    )


def _curves(means: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The law of the fitted means along the combinations, for each width, and the two rules it must beat."""
    small = means[means["fitted"]]
    curve, rules = [], []
    try:
        law = mean_law(small.assign(r2_held_out=1 - small["y"]))
    except BadInput:
        law = None  # Too few runs are there yet.
    if law is not None:
        sizes = small["y"], small["number"], small["parameters"]
        along = np.geomspace(means["x"].min(), means["x"].max(), 25)
        for width, parameters in means[["width", "parameters"]].drop_duplicates().to_numpy(int).tolist():
            for x in along:
                said = forecast(law, x, parameters, beyond=True)
                place = {"width": width, "x": x}
                curve.append(place | {"predicted": said.median, "low": said.low, "high": said.high})
                where = {"at": x, "at_parameters": parameters}
                for name, rule in (("last value", last_value), ("straight line", log_linear)):
                    if x >= small["number"].max() or parameters > small["parameters"].max():
                        rules.append(place | {"name": name, "predicted": rule(*sizes, **where)})
    return (
        pd.DataFrame(curve, columns=["width", "x", "predicted", "low", "high"]),
        pd.DataFrame(rules, columns=["width", "name", "x", "predicted"]),
    )


def _answers(study: ScalingLaw, tables: Tables) -> str:
    """How many combinations each target takes, as the end of a sentence."""
    found = [f"R² {target:g}: {words}" for target, words in study.answers(tables).items()]
    widest = study.larger_widths[-1]
    return f"combinations needed at width {widest}, by the law of all runs: {'; '.join(found)}."


def _errors(study: ScalingLaw, tables: Tables) -> Figure:
    table = study.forecasts(tables)
    means = table.astype(dict.fromkeys(METHODS, float)).groupby(["larger", "replicate"])[list(METHODS)].mean()
    info = dots_info(
        means.reset_index(),
        "larger",
        METHODS,
        labels=LARGER,
        floor=0.0,
        x_title="error of log loss",
        caption_lead=(
            "How far forecasts of larger runs were from what came (a distance of 0.1 is about 10 % of the loss; smaller is "
            "better), by what is larger than in the runs that were fitted. `Last value` takes the nearest small run for "
            "it, the straight line is one of log loss on log sizes."
        ),
    )
    return Figure("forecast_errors", "Is the law worth having?", info.caption, draw_dots(info))
