"""A computation graph: its steps from left to right, with correct and wrong values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from altair.typing import ChartType

from recombine.errors import BadInput
from recombine.figures.palette import COLOURS
from recombine.figures.theme import INK, SOFT, UNTRAINED, WIDTH, message_chart, themed, tooltips, values
from recombine.figures.wording import NOTHING, number, sentences
from recombine.graphs.graph import Graph, evaluate
from recombine.graphs.labels import LABELS, node_labels
from recombine.graphs.layout import layout
from recombine.graphs.scratchpad import MISSING

BLUE, ORANGE, GREEN, _, RED, _ = COLOURS
LOOKS = {
    "input": (UNTRAINED, "circle"),
    "step": (BLUE, "circle"),
    "correct": (BLUE, "circle"),
    "restoration": (GREEN, "circle"),
    "propagation": (ORANGE, "diamond"),
    "local": (RED, "square"),
}
"""Colour and shape of each label. Correct values are circles, wrong ones have corners."""
NAMES = {"propagation": "propagated error", "local": "local error"}
"""Names in the legend that differ from the label."""
MEANINGS = {
    "restoration": "A restoration has the right value although a step that it depends on is not correct.",
    "propagation": "A propagated error follows from wrong values by the step's rule.",
    "local": "A local error does not follow from the values of its inputs.",
}
EDGE, WRONG_EDGE = "#c3c9d0", "#eba679"
WIDEST, NARROWEST = 92.0, 30.0
"""Pixels between layers."""
TALLEST, LOWEST = 68.0, 26.0
"""Pixels between the nodes of a layer."""
HIGHEST = 620
"""Largest height in pixels, unless nodes would be too small."""
LEGEND = 420
"""Smallest width of the plot in pixels: the legend must fit."""


class ComputationGraphInfo(NamedTuple):
    """The content of the figure."""

    nodes: pd.DataFrame
    """Columns: x, y, name, operation, label, text (the stated value), note (the correct value, if it differs), true. One row
    per node."""
    edges: pd.DataFrame
    """Columns: edge, x, y, wrong (the parent's value is wrong). One row per point of an edge, starting at the parent."""
    labels: tuple[str, ...]
    """The labels that occur, in the order of the legend."""
    lead: str
    """The first sentences of the caption."""

    @property
    def caption(self) -> str:
        """How to read the figure."""
        labelled = {"correct", *MEANINGS} & set(self.labels)
        return sentences(
            self.lead,
            "The computation runs from left to right. Inputs are grey; every other node is a step.",
            "A step is correct if its value is right and all steps that it depends on are correct." if labelled else "",
            *(meaning for label, meaning in MEANINGS.items() if label in self.labels),
            "The right value is in brackets below a wrong one." if self.nodes["note"].any() else "",
            f"{NOTHING} means that the value could not be read." if (self.nodes["text"] == NOTHING).any() else "",
            "Orange edges carry wrong values." if self.edges["wrong"].any() else "",
        )


def computation_graph_info(
    graph: Graph | None,
    stated: np.ndarray | None = None,
    *,
    write: Callable[[int], str] | None = None,
    caption_lead: str = "",
) -> ComputationGraphInfo:
    """A computation graph with the values that a model stated.

    Args:
        graph: The computation. None: the figure says that there is none.
        stated: The stated value of each node. None: the true values are shown.
        write: Formats a value that is not a number.
        caption_lead: The first sentences of the caption.

    Returns:
        The input of `draw_computation_graph`.
    """
    columns = ["x", "y", "name", "operation", "label", "text", "note", "true"]
    points = ["edge", "x", "y", "wrong"]
    if graph is None:
        empty = (pd.DataFrame(columns=names) for names in (columns, points))
        return ComputationGraphInfo(*empty, labels=(), lead=caption_lead)
    true = evaluate(graph)
    shown = true if stated is None else np.asarray(stated)
    if shown.shape != true.shape:
        raise BadInput(
            f"The graph has {len(graph)} nodes, but the stated values have the shape {shown.shape}.",
            fix="pass the values of one instance: one value per node",
        )
    to_text = write or (lambda value: number(value, 0))
    labels = ["step"] * len(graph) if stated is None else [LABELS[code] for code in node_labels(graph, shown)]
    for node_index in graph.inputs:
        labels[node_index] = "input" if shown[node_index] == true[node_index] else labels[node_index]
    where = layout(graph)
    rows = []
    for index, node in enumerate(graph.nodes):
        value, right = int(shown[index]), to_text(int(true[index]))
        text = NOTHING if value == MISSING else to_text(value)
        note = "" if value == true[index] else f"({right})"
        rows.append((where.x[index], where.y[index], node.name, node.operation_name, labels[index], text, note, right))
    lines = [
        (edge, x, y, bool(shown[parent] != true[parent]))
        for edge, ((parent, _), route) in enumerate(where.routes.items())
        for x, y in route
    ]
    return ComputationGraphInfo(
        nodes=pd.DataFrame(rows, columns=columns),
        edges=pd.DataFrame(lines, columns=points).astype({"wrong": bool}),
        labels=tuple(label for label in LOOKS if label in labels),
        lead=caption_lead,
    )


class _Size(NamedTuple):
    """Sizes in pixels."""

    across: float
    """Distance between layers."""
    down: float
    """Distance between nodes."""
    radius: float
    width: float
    height: float
    named: bool
    """The names of nodes fit."""


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
    """Draw edges, nodes with their values, and names if they fit."""
    if not len(info.nodes):
        return message_chart("No computation yet: there are no steps to show.")
    size = _size(info)
    x = alt.Scale(domain=[-0.5, size.width / size.across - 0.5], nice=False, zero=False)
    y = alt.Scale(domain=[size.height / size.down - 0.5, -0.5], nice=False, zero=False)
    across, down = alt.X("x:Q", scale=x, axis=None), alt.Y("y:Q", scale=y, axis=None)
    layers: list[alt.Chart] = []
    for wrong, colour in ((False, EDGE), (True, WRONG_EDGE)):
        kept = info.edges[info.edges["wrong"] == wrong]
        if len(kept):
            line = alt.Chart(values(kept)).mark_line(color=colour, strokeWidth=1.6, interpolate="monotone")
            layers.append(line.encode(x=across, y=down, detail="edge:N"))
    layers += [*_nodes(info, size, across, down), *_words(info, size, across, down)]
    chart = alt.layer(*layers).properties(width=size.width, height=size.height)
    return themed(chart, f"A computation of {len(info.nodes)} nodes")


def _nodes(info: ComputationGraphInfo, size: _Size, across: alt.X, down: alt.Y) -> list[alt.Chart]:
    names = {label: NAMES.get(label, label) for label in info.labels}
    colours, shapes = zip(*(LOOKS[label] for label in info.labels), strict=True)
    legend = alt.Legend(title=None, orient="top", columnPadding=22, offset=14, symbolSize=150)
    domain = list(names.values())
    # A diamond has half the area of its square, so it is drawn larger for its value to fit.
    area = {"circle": 4.0, "square": 3.4, "diamond": 6.2}
    frame = info.nodes.assign(
        kind=[names[label] for label in info.nodes["label"]],
        area=[area[LOOKS[label][1]] * size.radius**2 for label in info.nodes["label"]],
    )
    mark = alt.Chart(values(frame)).mark_point(filled=True, opacity=1, stroke="white", strokeWidth=1.5)
    fields = {"name:N": "node", "operation:N": "operation", "text:N": "stated", "true:N": "true", "kind:N": "label"}
    nodes = mark.encode(
        x=across,
        y=down,
        size=alt.Size("area:Q", scale=None, legend=None),
        color=alt.Color("kind:N", scale=alt.Scale(domain=domain, range=list(colours)), sort=None, legend=legend),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=domain, range=list(shapes)), sort=None, legend=legend),
        tooltip=tooltips(fields),
    )
    # Long values are smaller, and so are values in diamonds, which are narrow at the top and the bottom.
    room = [2.6 if LOOKS[label][1] == "diamond" else 3.1 for label in info.nodes["label"]]
    font = np.clip(np.array(room) * size.radius / info.nodes["text"].str.len().clip(2), 6, 13)
    text = alt.Chart(values(info.nodes.assign(font=font))).mark_text(color="white", fontWeight=600)
    fitted = alt.Size("font:Q", scale=None, legend=None)
    return [nodes, text.encode(x=across, y=down, text="text:N", size=fitted)]


def _words(info: ComputationGraphInfo, size: _Size, across: alt.X, down: alt.Y) -> list[alt.Chart]:
    """The right value below a wrong one, and the names of nodes above them."""
    layers = []
    rim: dict[str, Any] = {"stroke": "white", "strokeWidth": 3, "strokeJoin": "round"}
    small = max(8.0, min(11.0, size.radius * 0.65))
    for nodes, column, ink, dy in (
        (info.nodes[info.nodes["note"] != ""], "note", INK, size.radius + small * 0.75),
        (info.nodes if size.named else info.nodes.iloc[:0], "name", SOFT, -size.radius - small * 0.75),
    ):
        if len(nodes):
            words = alt.Chart(values(nodes)).encode(x=across, y=down, text=f"{column}:N")
            layers.append(words.mark_text(fontSize=small, dy=dy, color="white", **rim))
            layers.append(words.mark_text(fontSize=small, dy=dy, color=ink))
    return layers
