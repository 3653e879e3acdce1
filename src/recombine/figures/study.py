"""Figures of a study's arms: lines over an axis, dots by category, points of runs.

Every figure takes a title, the question that it answers, and most a caption, which says what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.figures.base import Figure
from recombine.figures.combination_map import combination_map_info, draw_combination_map
from recombine.figures.curves import curves_info
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.figures.palette import Labels, level_name
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.figures.wording import count_of
from recombine.stats.threshold import power_law


class HasFrame(Protocol):
    """An arm with the tables of its runs."""

    name: str

    @property
    def frame(self) -> pd.DataFrame: ...


Source = pd.DataFrame | HasFrame
Measures = str | Sequence[str] | Mapping[str, str]
"""One column, several, or several with their names in the legend."""
SCORE: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
"""The axis of a share."""


def lines(
    *sources: Source,
    x: str,
    y: Measures,
    title: str,
    name: str | None = None,
    caption: str = "",
    series: str | None = None,
    labels: Labels = None,
    controls: Sequence[str] = (),
    **style: Any,
) -> Figure:
    """Means with intervals over replicates against a number, one line per series.

    Args:
        *sources: Arms, or frames with a column `replicate`. With several arms, each line is named by arm and measure.
        x: The column along the axis.
        y: The column or columns that are drawn; a mapping names them in the legend.
        name: The figure's name, which is also that of its file; by default `by_` and the column `x`.
        title: The question that it answers.
        caption: What is shown; how to read intervals and points is added.
        series: A column that splits the rows into lines, where `y` is one column.
        labels: Names of the series in the order of the legend.
        controls: Series that are drawn dashed; the lines of arms called `control...` or `lookup...` always are.
        **style: What `lines_info` takes besides: `log`, `floor`, `ceiling`, `facet`, `references`, `x_title`, ...

    Returns:
        The figure.

    Example:
        ```python
        lines(main, control, x="number", y={"r2_in": "trained", "r2_held_out": "held out"},
              name="score_by_size", title="Do more combinations help?")
        ```
    """
    if series is not None or (isinstance(y, str) and len(sources) == 1):
        column = y if isinstance(y, str) else next(iter(y))
        frame = with_columns(_stacked(sources), column)
        dashed = list(controls)
    else:
        frame, labels, dashed = _long(sources, y, x, style.get("facet"), labels)
        column, series, dashed = "value", "series", [*dashed, *controls]
    style.setdefault("y_title", y if isinstance(y, str) else None)
    info = lines_info(
        frame, x=x, y=column, series=series, labels=labels, controls=dashed, caption_lead=caption, **style
    )
    return Figure(name or f"by_{x}", title, info.caption, draw_lines(info))


def dots(
    *sources: Source,
    category: str,
    measures: Measures,
    title: str,
    name: str | None = None,
    caption: str = "",
    labels: Labels = None,
    **style: Any,
) -> Figure:
    """One row per category with mean, interval and single replicates of one or several measures.

    What is not listed is as in `lines`. The default name has the column `category`.

    Args:
        category: The column that names the rows.
        measures: The columns that are drawn; a mapping names them in the legend.
        labels: Names of the categories from top to bottom.
        **style: What `dots_info` takes besides: `columns`, `floor`, `ceiling`, `published`, `notes`, `x_title`, ...
    """
    chosen = _measures(measures)
    frame = with_columns(_stacked(sources), *chosen)
    info = dots_info(frame, category=category, measures=chosen, labels=labels, caption_lead=caption, **style)
    return Figure(name or f"by_{category}", title, info.caption, draw_dots(info))


def scatter(
    *sources: Source,
    x: str,
    y: str,
    title: str,
    name: str | None = None,
    caption: str = "",
    group: str | None = None,
    point_name: str = "replicate",
    **style: Any,
) -> Figure:
    """One point per run: the column `y` against the column `x`, coloured by group.

    What is not listed is as in `lines`.

    Args:
        group: The column whose levels have colours.
        point_name: The column that names a point in its tooltip.
        **style: What `scatter_info` takes besides: `labels`, `ordered`, `fit`, `note`, `x_title`, ...
    """
    frame = with_columns(_stacked(sources), x, y)
    named = point_name if point_name in frame else None
    info = scatter_info(frame, x, y, group, name=named, caption_lead=caption, **style)
    return Figure(name or f"by_{x}", title, info.caption, draw_scatter(info))


def growth(needed: pd.DataFrame, *, x: str, label: str, title: str, caption: str = "", **style: Any) -> Figure:
    """The sizes that a threshold needs against a number, with the power law through them; both axes are logarithmic.

    What is not listed is as in `lines`. The caption also gets the exponent with its interval.

    Args:
        needed: A table of `needed_sizes`: the columns `replicate`, x, `needed` and `censored`.
        label: The name of the sizes in the legend.
    """
    frame, labels = needed.assign(series="needed"), {"needed": label}
    caption += " Sizes beyond a curve are drawn at its end."
    line = power_law(needed[x], needed["needed"], needed["censored"].tolist())
    if line is not None:
        slope, along = line.slope, np.sort(needed[x].unique()).astype(float)
        fit = pd.DataFrame({x: along, "needed": np.exp(line.intercept + slope.estimate * np.log(along))})
        fit = fit.assign(series="fit").merge(needed[["replicate"]].drop_duplicates(), how="cross")
        frame = pd.concat([frame, fit], ignore_index=True)
        labels["fit"] = f"fit: n^{slope.estimate:.2f}"
        caption += (
            f" The fit, in which these are censored ({line.censored} of "
            f"{slope.replicates}), has the exponent {slope.estimate:.2f} (95 % interval {slope.low:.2f} to {slope.high:.2f})."
        )
    settings = {"series": "series", "labels": labels, "controls": ["fit"], "log_y": True} | style
    return lines(frame, x=x, y="needed", name="needed", title=title, caption=caption, **settings)


def matrix(
    *sources: Source,
    row: str,
    column: str,
    value: str,
    title: str,
    name: str = "",
    caption: str = "",
    labels: Mapping[str, Labels] | None = None,
    **style: Any,
) -> Figure:
    """A table of means as coloured squares, one per row and column.

    What is not listed is as in `lines`. The default name has the column `row`.

    Args:
        row: The column whose levels are the rows.
        column: The column whose levels are the columns.
        value: The column that gives the colour.
        labels: Names of the levels, by `row`, `column` and `facet`.
        **style: What `matrix_info` takes besides: `facet`, `domain`, `value_title`, ...
    """
    named = {f"{axis}_labels": names for axis, names in (labels or {}).items()}
    info = matrix_info(_stacked(sources), row=row, column=column, value=value, caption_lead=caption, **named, **style)
    return Figure(name or f"by_{row}", title, info.caption, draw_matrix(info))


MOST_SERIES = 24
"""The most lines or colours that can be told apart."""
WIDE = 8
"""Values whose largest is so many times the smallest are on a logarithmic axis."""


def of_runs(frame: pd.DataFrame, x: str, y: str, *, by: str | None = None, title: str = "", **style: Any) -> Figure:
    """One number of the runs against a setting: means with 95 % intervals over replicates.

    A replicate is what shares all seeds. Several of its runs at one `x` are averaged first.

    Args:
        frame: One row per run, as `store.index.frame()` gives it.
        x: The column along the axis. Numbers give lines, anything else gives rows of dots.
        y: The number.
        by: The column whose values are lines or colours.
        title: The question that it answers.
        **style: What `lines_info` takes besides: `log`, `floor`, `ceiling`, `references`, ...

    Returns:
        The figure.

    Example:
        ```python
        figure = of_runs(store.index.frame(), "support.number", "score_held_out", by="model.width")
        figure.save("scores.html")
        ```
    """
    if x == y:
        raise BadInput(f"{x!r} cannot be drawn against itself.", fix="choose another column")
    if frame[y].notna().any() and not _numeric(frame[y]):
        raise BadInput(f"{y!r} holds text, which has no mean.", fix="choose a number, such as score_held_out")
    seeds = [name for name in frame.columns if name.startswith("seeds.")]
    frame = frame.assign(replicate=frame[seeds].astype(str).agg(" ".join, axis=1) if seeds else frame["run"])
    frame = frame[frame[x].notna() & frame[y].notna()]
    if frame.empty:
        raise BadInput(f"No run has both {x!r} and {y!r}.", fix="measure the runs first, or choose other columns")
    numeric, runs = _numeric(frame[x]), len(frame)
    table = pd.DataFrame(
        {"replicate": frame["replicate"], x: frame[x] if numeric else [*map(_level, frame[x])], y: frame[y]}
    )
    ordered, labels = by is not None and _numeric(frame[by]), None
    if by is not None:
        table["series"] = [*map(_level, frame[by])]
        every = sorted(set(table["series"]), key=lambda level: (isinstance(level, str), level))
        if len(every) > MOST_SERIES:
            fix = "keep fewer runs with --where, or choose another setting"
            raise BadInput(f"{by!r} has {len(every)} values; {MOST_SERIES} can be told apart.", fix=fix)
        leaf = by.rpartition(".")[2]
        labels = {level: f"{leaf} {level_name(level)}" if ordered else level_name(level) for level in every}
    keys = [name for name in table.columns if name != y]
    table = table.groupby(keys, sort=False)[y].mean().reset_index()
    title = title or f"{y} against {x}" + ("" if by is None else f", by {by}")
    caption = f"{count_of(runs, 'run')}." + ("" if by is None else f" Colours are values of {by}.")
    if numeric:
        along = sorted(set(table[x].astype(float)))
        usual: dict[str, Any] = {
            "log": along[0] > 0 and along[-1] >= WIDE * along[0],
            "x_title": x,
            "y_title": y,
            "ordered": ordered,
        }
        series = None if by is None else "series"
        settings: dict[str, Any] = usual | {"labels": labels} | style
        return lines(table, x=x, y=y, series=series, name="runs", title=title, caption=caption, **settings)
    measures = {y: y}
    if labels is not None:
        measures = {f"level {number}": name for number, name in enumerate(labels.values())}
        table = table.assign(
            **{f"level {n}": table[y].where(table["series"] == level) for n, level in enumerate(labels)}
        )
    return dots(
        table, category=x, measures=measures, name="runs", title=title, caption=caption, **{"x_title": y} | style
    )


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _level(value: Any) -> Any:
    """A value that can name a line: lists are texts, and what is missing is called so."""
    if isinstance(value, (list, dict)):
        return str(value)
    return "none" if value is None or value != value else value


def with_columns(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The frame with all these columns, filled with missing values where it lacks them."""
    return frame.reindex(columns=[*dict.fromkeys([*frame.columns, *columns])])


def _stacked(sources: Sequence[Source]) -> pd.DataFrame:
    frames = [source if isinstance(source, pd.DataFrame) else source.frame for source in sources]
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _measures(measures: Measures) -> dict[str, str]:
    if isinstance(measures, Mapping):
        return dict(measures)
    names = (measures,) if isinstance(measures, str) else measures
    return {name: name for name in names}


def _long(
    sources: Sequence[Source], y: Measures, x: str, facet: str | None, labels: Labels
) -> tuple[pd.DataFrame, Labels, list[str]]:
    """One row per run and measure, the series named by arm and measure; and the series of control arms."""
    parts, names, dashed = [], [], []
    kept = ["replicate", x, *([facet] if facet else [])]
    for source in sources:
        frame, arm = (source, "") if isinstance(source, pd.DataFrame) else (source.frame, source.name)
        for column, words in _measures(y).items():
            series = words if len(sources) == 1 or arm in ("main", "") else f"{arm.replace('_', ' ')}: {words}"
            names.append(series)
            if arm.startswith(("control", "lookup")):
                dashed.append(series)
            values = frame.reindex(columns=[column])[column].astype(float)
            parts.append(frame[kept].assign(value=values, series=series))
    return pd.concat(parts, ignore_index=True), labels or names, dashed


def combination_map(combinations: pd.DataFrame, parts: Sequence[str], *, title: str, score: str = "R²") -> Figure:
    """A map of the combination space: what was trained, what was held out, and the score of each pair of constituents.

    `combinations` is the table of an arm, `parts` are the names of the constituents, `score` names what is pooled.
    """
    info = combination_map_info(combinations, parts, score)
    return Figure("combination_map", title, info.caption, draw_combination_map(info))


def training_curves(curves: pd.DataFrame, *, title: str) -> Figure:
    """Scores against steps, one line per number of training combinations. `curves` is the table of an arm."""
    info = curves_info(curves)
    return Figure("curves", title, info.caption, draw_lines(info))
