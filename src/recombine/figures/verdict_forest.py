"""The effects of all claims in one figure, with intervals and margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
from altair.typing import ChartType

from recombine.figures.theme import ANSWERS, message_chart, row_axis, themed, tooltips, unique_labels, values
from recombine.figures.wording import interval_in_words, margin_in_words, signed

LIMIT = 1.5
"""Largest end of the axis: one extreme effect must not flatten the others."""

SHAPES = dict(zip(ANSWERS, ("circle", "diamond", "square", "cross", "circle"), strict=True))
ROLE_ORDER = {"claim": 0, "control": 1, "precondition": 2}

NUMBERS = ["effect", "low", "high", "from_margin", "to_margin", "threshold"]
TEXTS = ["label", "statement", "role", "primary", "answer", "effect_text", "interval_text", "margin_text"]


class VerdictForestInfo(NamedTuple):
    """The content of the figure."""

    rows: pd.DataFrame
    """One row per claim, in the order of the figure, with the columns `TEXTS`, `NUMBERS`, replicates and clipped."""
    domain: tuple[float, float]

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "Each row is one claim. The point is its effect, the bar is the 95 % interval over replicates. The grey box "
            "covers effects that are too small to matter; this margin was set before the run. A claim holds when the "
            "whole bar lies beyond the box, on the claimed side. A claim of equivalence holds when the whole bar lies "
            "inside the box. A grey line instead of a box is a threshold for the score itself. A hollow point is "
            "not decided. A claim that is judged on several scales of the score is shown on the first of them."
        )
        if self.rows["clipped"].any():
            text += " Triangles mark effects beyond the axis."
        return text


def in_order(verdicts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Verdicts in reading order: primary claims first, then other claims, controls and preconditions."""

    def key(verdict: Mapping[str, Any]) -> tuple[bool, int]:
        return not verdict.get("primary"), ROLE_ORDER.get(str(verdict.get("role")), len(ROLE_ORDER))

    return sorted(verdicts, key=key)


def verdict_forest_info(verdicts: Sequence[Mapping[str, Any]]) -> VerdictForestInfo:
    """The content of a forest plot: the input of `draw_verdict_forest`.

    Args:
        verdicts: Records of verdicts, as the store keeps them.
    """
    several = len({verdict.get("study") for verdict in verdicts}) > 1
    rows = []
    for verdict in in_order(verdicts):
        low, high = (_number(end) for end in (verdict.get("interval") or (None, None)))
        name = str(verdict.get("claim", ""))
        direction, margin = str(verdict.get("direction", "")), _number(verdict.get("margin"))
        distance = direction not in ("above", "below")
        rows.append(
            {
                "label": f"{verdict.get('study')}: {name}" if several else name,
                "statement": str(verdict.get("statement", "")),
                "role": str(verdict.get("role", "claim")),
                "primary": bool(verdict.get("primary")),
                "answer": str(verdict.get("answer", "not decided")),
                "effect": _number(verdict.get("effect")),
                "low": low,
                "high": high,
                "from_margin": -abs(margin) if distance else math.nan,
                "to_margin": abs(margin) if distance else math.nan,
                "threshold": math.nan if distance else margin,
                "effect_text": signed(verdict.get("effect")),
                "interval_text": interval_in_words(verdict.get("interval")),
                "margin_text": margin_in_words(direction, verdict.get("margin")),
                "replicates": verdict.get("replicates"),
            }
        )
    frame = pd.DataFrame(rows, columns=[*TEXTS, *NUMBERS, "replicates"])
    frame["label"] = unique_labels(list(frame["label"]))
    ends = frame[NUMBERS].astype(float)
    shown = [0.0, *(end for end in ends.to_numpy().ravel().tolist() if math.isfinite(end))]
    least, most = max(min(shown), -LIMIT), min(max(shown), LIMIT)
    space = 0.06 * (most - least) or 0.1
    domain = (least - space, most + space)
    frame["clipped"] = (frame["effect"] < domain[0]) | (frame["effect"] > domain[1])
    return VerdictForestInfo(frame, domain)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else math.nan


def draw_verdict_forest(info: VerdictForestInfo) -> ChartType:
    """Draw one row per claim."""
    if not len(info.rows):
        return message_chart("No verdicts yet.")
    low, high = info.domain
    frame = info.rows.copy()
    frame[NUMBERS] = frame[NUMBERS].astype(float).clip(low, high)
    frame["words"] = [
        f"{answer}{' (primary)' if primary else ''}{'' if role == 'claim' else f' ({role})'}"
        for answer, primary, role in zip(frame["answer"], frame["primary"], frame["role"], strict=True)
    ]
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("effect:Q", scale=scale, title="effect").axis(grid=True, tickCount=8, format=".2~f")
    y = alt.Y("label:N", sort=None, title=None, axis=row_axis(labelLimit=260))
    colour = alt.Color("answer:N", scale=alt.Scale(domain=list(ANSWERS), range=list(ANSWERS.values())), legend=None)
    shape = alt.Shape("answer:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None)
    fields = {"statement:N": "claim", "answer:N": "does it hold?", "effect_text:N": "effect"}
    fields |= {"interval_text:N": "95 % interval", "margin_text:N": "margin", "replicates:Q": "replicates"}
    tooltip = tooltips(fields)
    base = alt.Chart(values(frame)).encode(y=y, color=colour, tooltip=tooltip)

    def some(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(frame[kept])).encode(x=x, y=y, color=colour, tooltip=tooltip)

    margin = base.encode(color=alt.value("#8a9199"))
    hollow, clipped = frame["answer"] == "not decided", frame["clipped"]
    beyond = {"size": 130, "filled": True, "opacity": 1}
    zero = alt.Chart(alt.InlineData(values=[{"effect": 0}])).mark_rule(color="#98a0a9").encode(x=x)
    chart = alt.layer(
        margin.mark_bar(height=20, opacity=0.22, cornerRadius=3).encode(
            x=alt.X("from_margin:Q", scale=scale), x2="to_margin:Q"
        ),
        margin.mark_tick(thickness=3, size=22).encode(x="threshold:Q"),
        zero,
        base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q"), x2="high:Q"),
        some(~hollow & ~clipped).mark_point(filled=True, size=120, opacity=1).encode(shape=shape),
        some(hollow & ~clipped).mark_point(size=110, opacity=1, strokeWidth=2.5),
        some(clipped & (frame["effect"] < 0)).mark_point(shape="triangle-left", **beyond),
        some(clipped & (frame["effect"] > 0)).mark_point(shape="triangle-right", **beyond),
        base.mark_text(align="left", dx=14, fontSize=13, fontWeight=600).encode(x=alt.value("width"), text="words:N"),
    ).properties(width=560, height=alt.Step(46))
    return themed(chart, "Effects of all claims with intervals and margins")
