"""Every claim's effect with its interval and margin, in one picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
from altair.typing import ChartType

from recombine.figures.theme import VERDICTS, message_chart, themed, unique_labels, values
from recombine.figures.wording import interval_in_words, margin_in_words, signed

LIMIT = 1.5
"""The axis never reaches further than this: one wild effect must not flatten the others."""

SHAPES = {"supported": "circle", "contradicted": "diamond", "equivalent": "square", "inconclusive": "circle"}
ROLE_ORDER = {"claim": 0, "control": 1, "precondition": 2}

COLUMNS = [
    "label",
    "statement",
    "role",
    "primary",
    "verdict",
    "effect",
    "low",
    "high",
    "from_margin",
    "to_margin",
    "threshold",
    "effect_text",
    "interval_text",
    "margin_text",
    "replicates",
    "clipped",
]


class VerdictForestInfo(NamedTuple):
    """What the figure shows."""

    rows: pd.DataFrame
    """A row a claim, in the order of the figure; its columns are `COLUMNS`."""
    domain: tuple[float, float]

    @property
    def caption(self) -> str:
        """How to read the figure."""
        text = (
            "One row for each claim: the point is its effect, the bar the 95 % interval over replicates. The "
            "grey box is what the claim calls too small to matter, written down before the run: a claim "
            "holds when the whole bar lies beyond the box on its side (for a claim of equivalence: inside "
            "the box). A grey line instead of a box is a threshold that the score itself must pass. A hollow "
            "point is inconclusive."
        )
        if self.rows["clipped"].any():
            text += " Triangles stand for effects beyond the axis."
        return text


def in_order(verdicts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Verdicts as they are read: the primary claims first, then claims, controls and preconditions."""

    def key(one: Mapping[str, Any]) -> tuple[bool, int]:
        return not one.get("primary"), ROLE_ORDER.get(str(one.get("role")), len(ROLE_ORDER))

    return sorted(verdicts, key=key)


def verdict_forest_info(verdicts: Sequence[Mapping[str, Any]]) -> VerdictForestInfo:
    """A row for each verdict record that has an effect, and the axis that holds them."""
    several = len({one.get("study") for one in verdicts}) > 1
    rows = []
    for one in in_order(verdicts):
        low, high = (_number(end) for end in (one.get("interval") or (None, None)))
        name = str(one.get("claim", ""))
        direction, margin = str(one.get("direction", "")), _number(one.get("margin"))
        distance = direction not in ("above", "below")
        rows.append(
            {
                "label": f"{one.get('study')}: {name}" if several else name,
                "statement": str(one.get("statement", "")),
                "role": str(one.get("role", "claim")),
                "primary": bool(one.get("primary")),
                "verdict": str(one.get("verdict", "inconclusive")),
                "effect": _number(one.get("effect")),
                "low": low,
                "high": high,
                "from_margin": -abs(margin) if distance else math.nan,
                "to_margin": abs(margin) if distance else math.nan,
                "threshold": math.nan if distance else margin,
                "effect_text": signed(one.get("effect")),
                "interval_text": interval_in_words(one.get("interval")),
                "margin_text": margin_in_words(direction, one.get("margin")),
                "replicates": one.get("replicates"),
            }
        )
    frame = pd.DataFrame(rows, columns=[column for column in COLUMNS if column != "clipped"])
    frame["label"] = unique_labels(list(frame["label"]))
    ends = frame[["effect", "low", "high", "from_margin", "to_margin", "threshold"]].astype(float)
    found = [0.0, *(end for end in ends.to_numpy().ravel().tolist() if math.isfinite(end))]
    least, most = max(min(found), -LIMIT), min(max(found), LIMIT)
    space = 0.06 * (most - least) or 0.1
    domain = (least - space, most + space)
    frame["clipped"] = (frame["effect"] < domain[0]) | (frame["effect"] > domain[1])
    return VerdictForestInfo(frame[COLUMNS], domain)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else math.nan


def draw_verdict_forest(info: VerdictForestInfo) -> ChartType:
    """The figure: a row a claim."""
    if not len(info.rows):
        return message_chart("No verdicts yet.")
    low, high = info.domain
    frame = info.rows.copy()
    for column in ("effect", "low", "high", "from_margin", "to_margin", "threshold"):
        frame[column] = frame[column].astype(float).clip(low, high)
    frame["words"] = [
        f"{verdict}{' (primary)' if primary else ''}{'' if role == 'claim' else f' ({role})'}"
        for verdict, primary, role in zip(frame["verdict"], frame["primary"], frame["role"], strict=True)
    ]
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("effect:Q", scale=scale, title="effect")
    x = x.axis(grid=True, tickCount=8, format=".2~f")
    y = alt.Y("label:N", sort=None, title=None)
    y = y.axis(
        labelLimit=260, labelFontSize=14, labelColor="#22262b", domain=False, ticks=False, labelPadding=12
    )
    colour = alt.Color(
        "verdict:N", scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())), legend=None
    )
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None
    )
    tooltip = [
        alt.Tooltip("statement:N", title="claim"),
        alt.Tooltip("verdict:N", title="verdict"),
        alt.Tooltip("effect_text:N", title="effect"),
        alt.Tooltip("interval_text:N", title="95 % interval"),
        alt.Tooltip("margin_text:N", title="margin"),
        alt.Tooltip("replicates:Q", title="replicates"),
    ]
    base = alt.Chart(values(frame)).encode(y=y, color=colour, tooltip=tooltip)

    def some(kept: pd.Series) -> alt.Chart:
        return alt.Chart(values(frame[kept])).encode(x=x, y=y, color=colour, tooltip=tooltip)

    hollow, clipped = frame["verdict"] == "inconclusive", frame["clipped"]
    beyond = {"size": 130, "filled": True, "opacity": 1}
    zero = alt.Chart(alt.InlineData(values=[{"effect": 0}])).mark_rule(color="#98a0a9").encode(x=x)
    chart = alt.layer(
        base.mark_bar(height=20, opacity=0.22, cornerRadius=3).encode(
            x=alt.X("from_margin:Q", scale=scale), x2="to_margin:Q", color=alt.value("#8a9199")
        ),
        base.mark_tick(thickness=3, size=22).encode(x=alt.X("threshold:Q"), color=alt.value("#8a9199")),
        zero,
        base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q"), x2="high:Q"),
        some(~hollow & ~clipped).mark_point(filled=True, size=120, opacity=1).encode(shape=shape),
        some(hollow & ~clipped).mark_point(size=110, opacity=1, strokeWidth=2.5),
        some(clipped & (frame["effect"] < 0)).mark_point(shape="triangle-left", **beyond),
        some(clipped & (frame["effect"] > 0)).mark_point(shape="triangle-right", **beyond),
        base.mark_text(align="left", dx=14, fontSize=13, fontWeight=600).encode(
            x=alt.value("width"), text="words:N"
        ),
    ).properties(width=560, height=alt.Step(46))
    return themed(chart, "Effects of all claims with intervals and margins")
