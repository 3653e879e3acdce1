"""Figures of the measurement `graph-steps`: problems solved in steps, by size, by depth of a step, and one answer as a graph.

The tables are the rows `answers` or `steps` of the measurement, with the labels of the runs. A figure's `title` says what is
solved, `labels` are the arms in words, and sizes with fewer than `fewest` problems are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph
from recombine.figures.study import SCORE, dots, lines
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import MISSING

LABELS = {
    "correct": "correct",
    "restoration": "restored",
    "propagation": "wrong because of earlier errors",
    "local": "wrong by itself",
}
"""The labels of steps in words."""


def shares(answers: pd.DataFrame, fewest: int) -> pd.DataFrame:
    """The rows `answers` of the table with the share of right answers; sizes with fewer problems are left out."""
    frame = answers[answers["number"].astype(float) >= fewest]
    return frame.assign(share=frame["right"].astype(float) / frame["number"].astype(float))


def answers_by_size(
    answers: pd.DataFrame,
    *,
    name: str,
    title: str,
    size: str,
    labels: Mapping[str, str],
    fewest: int,
    rows: bool = False,
) -> Figure:
    """Exact match on held-out problems by their size, for each arm.

    Args:
        size: What the size counts.
        rows: Whether sizes are rows with names, for sizes that are no single number, such as the digits of two factors.
    """
    frame = shares(answers, fewest)
    trained = frame[~frame["beyond"].astype(bool)].sort_values("size")["name"].unique()
    caption = f"{title}: exact match on held-out problems, by {size}."
    caption += f" Training has {', '.join(map(str, trained))}." if len(trained) else ""
    caption += f" Sizes with fewer than {fewest} problems are left out."
    about: dict[str, Any] = {"name": name, "title": f"{title}: how far does it go?", "caption": caption}
    if not rows:
        style = {"series": "arm", "labels": labels, "log": False, "y_title": "exact match, held out"}
        return lines(frame, x="size", y="share", x_title=size, **about, **style, **SCORE)
    wide = frame.pivot_table(index=["replicate", "size", "name"], columns="arm", values="share").reset_index()
    wide = wide.reindex(columns=["replicate", "size", "name", *labels])
    # Fewer products of digits first.
    order = sorted(wide["size"].unique(), key=lambda digits: ((digits // 10) * (digits % 10), digits))
    names = dict(zip(wide["size"], wide["name"], strict=True))
    return dots(
        wide,
        category="name",
        measures=labels,
        labels={names[digits]: f"{names[digits]} digits" for digits in order},
        x_title="exact match, held out",
        **about,
        **SCORE,
    )


def answers_by_depth(
    answers: pd.DataFrame,
    *,
    graphs: Mapping[str, Callable[[np.ndarray], Graph]],
    labels: Mapping[str, str],
    fewest: int,
) -> Figure:
    """Exact match on held-out problems of all kinds by the depth of their graphs.

    For each arm, `graphs` makes the graph of a problem from its numbers.
    """
    frame = shares(answers, fewest)
    depths = [graphs[arm](_numbers(row)).depth for arm, row in zip(frame["arm"], frame["row"], strict=True)]
    return lines(
        frame.assign(depth=depths),
        x="depth",
        y="share",
        series="arm",
        labels=labels,
        name="by_graph_depth",
        title="Do deep computations fail?",
        caption="Exact match on held-out problems with steps, of trained sizes and larger ones, by the depth of their graphs: the "
        f"number of steps that follow one from another. Sizes with fewer than {fewest} problems are left out.",
        log=False,
        x_title="depth of the graph",
        y_title="exact match, held out",
        **SCORE,
    )


def digits_of_products(digits: pd.DataFrame, *, accuracies: Mapping[str, str]) -> Figure:
    """How often each digit of a product is right, beside what single digits of the factors tell of it.

    Args:
        digits: One row per replicate, size and digit: `name`, `beyond`, `place`, `gain`, and a column per accuracy.
        accuracies: The columns of accuracy in words.
    """
    # The largest trained size and the smallest beyond it in which both numbers have several digits.
    frame = digits[(digits["size"] % 10 > 1) & (digits["size"] // 10 > 1)]
    beyond = frame["beyond"].astype(bool)
    sizes = [frame["size"][~beyond].max(), frame["size"][beyond].min()]
    frame = frame[frame["size"].isin(sizes)].sort_values(["size", "place"])
    names = [f"{name} digits, digit {int(place)}" for name, place in frame[["name", "place"]].values]
    return dots(
        frame.assign(digit=names),
        category="digit",
        measures={"gain": "relative information gain", **accuracies},
        labels={name: name for name in dict.fromkeys(names)},
        name="digits",
        title="Which digits are right without computing?",
        caption="Digits of products, the first digit first: the most that two digits, one of each factor, tell of it (relative "
        "information gain over all pairs of numbers), and how often it is right in held-out products.",
        x_title="share",
        **SCORE,
    )


def steps_by_depth(steps: pd.DataFrame, *, name: str, title: str, problems: str) -> Figure:
    """The share of steps with each label, by how deep the steps lie in the graph of the solution.

    `problems` says in words which problems are shown.
    """
    frame = steps[steps["beyond"].astype(bool)].astype(dict.fromkeys(LABELS, float))
    sums = frame.groupby(["replicate", "place"])[list(LABELS)].sum()
    long = sums.div(sums.sum(axis=1), axis=0).reset_index()
    return lines(
        long.melt(["replicate", "place"], list(LABELS), "label", "share"),
        x="place",
        y="share",
        series="label",
        labels=LABELS,
        name=name,
        title=f"{title}: where do the steps go wrong?",
        caption=f"Steps of {problems}, by how deep they lie in the graph of the solution. Correct: right, with everything that the step "
        "follows from; restored: right, though something before it is wrong. Only answers with as many steps as their problem has "
        "are read: in others, each step after a missing one would be taken for another.",
        log=False,
        x_title="depth of the step in the graph",
        y_title="share of steps",
        **SCORE,
    )


def one_answer(
    answers: pd.DataFrame,
    *,
    graph: Callable[[np.ndarray], Graph],
    problem: Callable[[np.ndarray], str],
    name: str,
    title: str,
    write: Callable[[int], str] | None = None,
) -> Figure:
    """The first answer beyond training of the first replicate, as a graph of its steps.

    Args:
        answers: The table of one network.
        graph: From the numbers of a problem to its graph.
        problem: From the numbers of a problem to its name.
        write: Formats a value that is not a number.
    """
    frame = answers[answers["stated"].astype(bool) & answers["beyond"].astype(bool)].dropna(subset=["stated"])
    shape, stated, caption = None, None, ""
    if len(frame):
        # One size beyond training: larger ones are too large to read.
        row = frame.sort_values("size").iloc[0]
        parts = _numbers(row["row"])
        shape = graph(parts)
        stated = np.array([MISSING if value == "?" else int(value) for value in str(row["stated"]).split()])
        caption = (
            f"{title}: the first held-out problem of the first size beyond training whose answer has as many steps as it needs (if "
            f"there is one), {problem(parts)}, as the first replicate answers it."
        )
    info = computation_graph_info(shape, stated, write=write, caption_lead=caption)
    return Figure(name, f"{title}: one answer as a graph", info.caption, draw_computation_graph(info))


def _numbers(row: str) -> np.ndarray:
    """The numbers of a problem."""
    return np.array([int(number) for number in str(row).split()])
