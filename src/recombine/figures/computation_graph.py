"""A computation as a picture: its steps from left to right, and where the stated values go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.theme import (
    HELD_OUT,
    INK,
    SOFT,
    TRAINED,
    UNTRAINED,
    WIDTH,
    message_chart,
    themed,
    values,
)
from recombine.figures.wording import NOTHING, number
from recombine.graphs.graph import Graph, evaluate
from recombine.graphs.labels import LABELS, node_labels
from recombine.graphs.layout import layout
from recombine.graphs.scratchpad import MISSING

LOOKS = {
    "input": (UNTRAINED, "circle"),
    "step": (TRAINED, "circle"),
    "correct": (TRAINED, "circle"),
    "restoration": ("#12915e", "circle"),
    "propagation": (HELD_OUT, "diamond"),
    "local": ("#d1202a", "square"),
}
"""Colour and shape of each label: right values are round, wrong ones have corners."""
NAMES = {"propagation": "propagated error", "local": "local error"}
"""What a label is called in the legend, where that is not its own name."""
EDGE, WRONG_EDGE = "#c3c9d0", "#eba679"
WIDEST, NARROWEST = 92.0, 30.0
"""Pixels between layers."""
TALLEST, LOWEST = 68.0, 26.0
"""Pixels between the nodes of a layer."""
HIGHEST = 620
"""Pixels from the top to the bottom, where nodes have room in them."""
LEGEND = 420
"""Least width of the plot in pixels, for the legend's sake."""


class ComputationGraphInfo(NamedTuple):
    """What the figure shows."""

    nodes: pd.DataFrame
    """x, y, name, operation, label, text, note, true; a row for each node. The text is its value, the note the right
    one where that is another."""
    edges: pd.DataFrame
    """edge, x, y, wrong; a row for each point of each edge, from its parent on; `wrong` if its parent's value is."""
    labels: tuple[str, ...]
    """The labels that occur, in the order of the legend."""
    title: str
    lead: str
    """The first words of the caption: what is shown."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        words = [self.lead] if self.lead else []
        words.append("The computation runs from left to right: inputs are grey, each other node is a step.")
        if {"correct", "restoration", "propagation", "local"} & set(self.labels):
            words.append("A step is correct if its value is right and all that it rests on is correct.")
        if "restoration" in self.labels:
            words.append("A restoration is right although something that it rests on is not correct.")
        if "propagation" in self.labels:
            words.append("A propagated error follows by the step's rule from wrong values.")
        if "local" in self.labels:
            words.append("A local error does not follow from the values that it was made of.")
        if (self.nodes["note"] != "").any():
            words.append("The right value stands in brackets below a wrong one.")
        if (self.nodes["text"] == NOTHING).any():
            words.append(f"{NOTHING} is a value that could not be read.")
        if self.edges["wrong"].any():
            words.append("Orange edges carry wrong values.")
        return " ".join(words)


def computation_graph_info(
    graph: Graph | None,
    stated: np.ndarray | None = None,
    *,
    write: Callable[[int], str] | None = None,
    title: str = "",
    caption_lead: str = "",
) -> ComputationGraphInfo:
    """A graph with the values that were stated, labelled; without any, with the true ones.

    `write` says how a value is written, where it is not a number. Without a graph the figure says so.
    """
    columns = ["x", "y", "name", "operation", "label", "text", "note", "true"]
    points = ["edge", "x", "y", "wrong"]
    if graph is None:
        empty = (pd.DataFrame(columns=names) for names in (columns, points))
        return ComputationGraphInfo(*empty, labels=(), title=title, lead=caption_lead)
    true = evaluate(graph)
    told = true if stated is None else np.asarray(stated)
    if told.shape != true.shape:
        raise BadInput(
            f"The graph has {len(graph)} nodes, but the stated values have the shape {told.shape}.",
            fix="draw one instance, with a value for each node",
        )
    say = write or (lambda value: number(value, 0))
    found = ["step"] * len(graph) if stated is None else [LABELS[code] for code in node_labels(graph, told)]
    for place in graph.inputs:
        found[place] = "input" if told[place] == true[place] else found[place]
    where = layout(graph)
    rows = []
    for place, node in enumerate(graph.nodes):
        value, right = int(told[place]), say(int(true[place]))
        text = NOTHING if value == MISSING else say(value)
        note = "" if value == true[place] else f"({right})"
        rows.append(
            (where.x[place], where.y[place], node.name, node.word, found[place], text, note, right),
        )
    lines = [
        (at, x, y, bool(told[parent] != true[parent]))
        for at, ((parent, _), route) in enumerate(where.routes.items())
        for x, y in route
    ]
    return ComputationGraphInfo(
        nodes=pd.DataFrame(rows, columns=columns),
        edges=pd.DataFrame(lines, columns=points).astype({"wrong": bool}),
        labels=tuple(label for label in LOOKS if label in found),
        title=title,
        lead=caption_lead,
    )


class _Size(NamedTuple):
    """The picture in pixels."""

    across: float
    """From layer to layer."""
    down: float
    """From node to node."""
    radius: float
    width: float
    height: float
    named: bool
    """There is room for the names of nodes."""


def _size(info: ComputationGraphInfo) -> _Size:
    layers, rows = info.nodes["x"].max() + 1, info.nodes["y"].max() + 1
    across = max(NARROWEST, min(WIDEST, WIDTH / layers))
    down = max(LOWEST, min(TALLEST, HIGHEST / rows))
    radius = max(9.0, min(18.0, across * 0.33, down * 0.27))
    # A name above each node, and the right value below those that are wrong.
    words = 30 if (info.nodes["note"] != "").any() else 18
    named = bool(info.nodes["name"].str.len().max() * 5.6 <= across) and down >= 2 * radius + words
    return _Size(across, down, radius, max(across * layers, LEGEND), down * rows, named)


def draw_computation_graph(info: ComputationGraphInfo) -> ChartType:
    """The figure: edges, nodes with their values, and names where there is room."""
    if not len(info.nodes):
        return message_chart("No computation yet: there are no steps to show.")
    size = _size(info)
    least = -0.5
    x = alt.Scale(domain=[least, least + size.width / size.across], nice=False, zero=False)
    y = alt.Scale(domain=[least + size.height / size.down, least], nice=False, zero=False)
    across, down = alt.X("x:Q", scale=x, axis=None), alt.Y("y:Q", scale=y, axis=None)
    layers: list[alt.Chart] = []
    for wrong, colour in ((False, EDGE), (True, WRONG_EDGE)):
        kept = info.edges[info.edges["wrong"] == wrong]
        if len(kept):
            line = alt.Chart(values(kept)).mark_line(color=colour, strokeWidth=1.6, interpolate="monotone")
            layers.append(line.encode(x=across, y=down, detail="edge:N"))
    layers += [*_nodes(info, size, across, down), *_words(info, size, across, down)]
    title: dict[str, Any] = {"title": alt.TitleParams(info.title)} if info.title else {}
    chart = alt.layer(*layers).properties(width=size.width, height=size.height, **title)
    said = f"A computation of {len(info.nodes)} nodes"
    return themed(chart, f"{said}: {info.title}" if info.title else said)


def _nodes(info: ComputationGraphInfo, size: _Size, across: alt.X, down: alt.Y) -> list[alt.Chart]:
    names = {label: NAMES.get(label, label) for label in info.labels}
    colours, shapes = zip(*(LOOKS[label] for label in info.labels), strict=True)
    legend = alt.Legend(title=None, orient="top", columnPadding=22, offset=14, symbolSize=150)
    domain = list(names.values())
    # A diamond's area is half of its square's, so it is drawn larger for its value to fit.
    area = {"circle": 4.0, "square": 3.4, "diamond": 6.2}
    frame = info.nodes.assign(
        kind=[names[label] for label in info.nodes["label"]],
        area=[area[LOOKS[label][1]] * size.radius**2 for label in info.nodes["label"]],
    )
    mark = alt.Chart(values(frame)).mark_point(filled=True, opacity=1, stroke="white", strokeWidth=1.5)
    tooltip = [
        alt.Tooltip("name:N", title="node"),
        alt.Tooltip("operation:N", title="operation"),
        alt.Tooltip("text:N", title="stated"),
        alt.Tooltip("true:N", title="true"),
        alt.Tooltip("kind:N", title="label"),
    ]
    look = mark.encode(
        x=across,
        y=down,
        size=alt.Size("area:Q", scale=None, legend=None),
        color=alt.Color(
            "kind:N", scale=alt.Scale(domain=domain, range=list(colours)), sort=None, legend=legend
        ),
        shape=alt.Shape(
            "kind:N", scale=alt.Scale(domain=domain, range=list(shapes)), sort=None, legend=legend
        ),
        tooltip=tooltip,
    )
    # A long value is written smaller, and so is one in a diamond, which is narrow above and below.
    room = [2.6 if LOOKS[label][1] == "diamond" else 3.1 for label in info.nodes["label"]]
    font = np.clip(np.array(room) * size.radius / info.nodes["text"].str.len().clip(2), 6, 13)
    text = alt.Chart(values(info.nodes.assign(font=font))).mark_text(color="white", fontWeight=600)
    fitted = alt.Size("font:Q", scale=None, legend=None)
    return [look, text.encode(x=across, y=down, text="text:N", size=fitted)]


def _words(info: ComputationGraphInfo, size: _Size, across: alt.X, down: alt.Y) -> list[alt.Chart]:
    """The right value below a wrong one, and the names of nodes above them."""
    layers = []
    notes = info.nodes[info.nodes["note"] != ""]
    rim: dict[str, Any] = {"stroke": "white", "strokeWidth": 3, "strokeJoin": "round", "color": "white"}
    small = max(8.0, min(11.0, size.radius * 0.65))
    for shown, column, ink, dy in (
        (notes, "note", INK, size.radius + small * 0.75),
        (info.nodes if size.named else info.nodes.iloc[:0], "name", SOFT, -size.radius - small * 0.75),
    ):
        if len(shown):
            words = alt.Chart(values(shown)).encode(x=across, y=down, text=f"{column}:N")
            plain: dict[str, Any] = {"color": ink}
            for look in (rim, plain):
                layers.append(words.mark_text(fontSize=small, dy=dy, **look))
    return layers
