"""The figures of the study `subgraphs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.graphs.einstein import left_word
from recombine.graphs.scratchpad import MISSING
from recombine.probes.graph_steps import GraphSteps
from recombine.studies.base import Tables
from recombine.studies.subgraphs_claims import ARMS, LISTS, PRODUCTS, PUZZLES, QUESTION, SAID, STEPS

if TYPE_CHECKING:
    from recombine.studies.subgraphs import Subgraphs

NAMES = {
    "correct": "correct",
    "restoration": "restored",
    "propagation": "wrong because of wrong ones before",
    "local": "wrong by itself",
}
"""The labels of steps in words."""
SIZES = {LISTS: "numbers in the list", PUZZLES: "depth of the puzzle's graph"}
TITLES = {LISTS: "Maximum sums", PRODUCTS: "Multiplication", PUZZLES: "Einstein's puzzle"}
DIGITS = {"gain": "relative information gain", QUESTION: "right, question only", STEPS: "right, with steps"}


def figures(study: Subgraphs, tables: Tables) -> list[Figure]:
    """Accuracy by size and by depth of the graph, labels by depth, digits by what tells them, and answers as graphs."""
    return [
        *(_by_size(study, tables, problem) for problem in SIZES),
        _products(study, tables),
        _by_graph_depth(study, tables),
        *(_by_depth(study, tables, problem) for problem in ARMS),
        _digits(study, tables),
        *(_example(study, tables, problem) for problem in ARMS),
    ]


def _answers(study: Subgraphs, tables: Tables, problem: str | None = None) -> pd.DataFrame:
    """What was answered by size; of a few problems a share says nothing."""
    frame = study.part(tables, "answers", problem)
    frame = frame[frame["number"].astype(float) >= GraphSteps().fewest]
    return frame.assign(share=frame["right"].astype(float) / frame["number"].astype(float))


def _trained(frame: pd.DataFrame) -> str:
    names = frame[~frame["beyond"].astype(bool)].sort_values("size")["name"].unique()
    fewer = f" Sizes with fewer than {GraphSteps().fewest} problems are left out."
    return (f" Training has {', '.join(map(str, names))}." if len(names) else "") + fewer


def _by_size(study: Subgraphs, tables: Tables, problem: str) -> Figure:
    frame = _answers(study, tables, problem)
    info = lines_info(
        frame[["replicate", "arm", "size", "share"]],
        x="size",
        y="share",
        series="arm",
        log=False,
        labels={arm: arm for arm in ARMS[problem]},
        floor=0.0,
        ceiling=1.0,
        x_title=SIZES[problem],
        y_title="exact match, held out",
        caption_lead=f"{TITLES[problem]}: held-out problems that are answered wholly right, by {SIZES[problem]}.{_trained(frame)}",
    )
    name = SAID[problem][0]
    return Figure(
        f"{name}_by_size", f"{TITLES[problem]}: how far does it go?", info.caption, draw_lines(info)
    )


def _products(study: Subgraphs, tables: Tables) -> Figure:
    frame = _answers(study, tables, PRODUCTS)
    wide = frame.pivot_table(index=["replicate", "size", "name"], columns="arm", values="share").reset_index()
    wide = wide.reindex(columns=["replicate", "size", "name", *ARMS[PRODUCTS]])
    # Fewer products of digits first.
    order = sorted(wide["size"].unique(), key=lambda size: ((size // 10) * (size % 10), size))
    names = dict(zip(wide["size"], wide["name"], strict=True))
    info = dots_info(
        wide,
        category="name",
        measures={arm: arm for arm in ARMS[PRODUCTS]},
        labels={names[size]: f"{names[size]} digits" for size in order},
        floor=0.0,
        ceiling=1.0,
        x_title="exact match, held out",
        caption_lead=f"Held-out products that are answered wholly right, by the digits of the factors.{_trained(frame)}",
    )
    return Figure("products_by_size", "Multiplication: how far does it go?", info.caption, draw_dots(info))


def _by_graph_depth(study: Subgraphs, tables: Tables) -> Figure:
    """All problems on one axis: the depth of their graphs."""
    frame = _answers(study, tables)
    frame = frame[frame["arm"] == STEPS]
    depths = {
        (problem, int(size)): study.family(problem).graph(np.array([int(part) for part in row.split()])).depth
        for problem, size, row in frame[["problem", "size", "row"]]
        .drop_duplicates(["problem", "size"])
        .values
    }
    cells = zip(frame["problem"], frame["size"].astype(int), strict=True)
    info = lines_info(
        frame.assign(depth=[depths[cell] for cell in cells])[["replicate", "problem", "depth", "share"]],
        x="depth",
        y="share",
        series="problem",
        log=False,
        labels=TITLES,
        floor=0.0,
        ceiling=1.0,
        x_title="depth of the graph",
        y_title="exact match, held out",
        caption_lead=(
            "Held-out problems that are answered wholly right with steps, trained sizes and larger ones, by the depth of their graphs: so "
            f"many steps follow one from another. Sizes with fewer than {GraphSteps().fewest} problems are left out."
        ),
    )
    return Figure("by_graph_depth", "Do deep computations fail?", info.caption, draw_lines(info))


def _by_depth(study: Subgraphs, tables: Tables, problem: str) -> Figure:
    frame = study.part(tables, "steps", problem, STEPS)
    own = frame[frame["beyond"].astype(bool)].astype(dict.fromkeys(NAMES, float))
    sums = own.groupby(["replicate", "place"])[list(NAMES)].sum()
    long = (
        sums.div(sums.sum(axis=1), axis=0)
        .reset_index()
        .melt(["replicate", "place"], list(NAMES), "label", "share")
    )
    info = lines_info(
        long,
        x="place",
        y="share",
        series="label",
        log=False,
        labels=NAMES,
        floor=0.0,
        ceiling=1.0,
        x_title="depth of the step in the graph",
        y_title="share of steps",
        caption_lead=(
            f"Steps of {SAID[problem][2]}, by how deep they lie in the graph of the solution. Correct: right, as is all that it "
            "follows from; restored: right though something before it is not. Only answers with as many steps as their problem has are "
            "read: in others each step behind one that is left out would be taken for another."
        ),
    )
    name = SAID[problem][0]
    return Figure(
        f"{name}_by_depth", f"{TITLES[problem]}: where do the steps go wrong?", info.caption, draw_lines(info)
    )


def _digits(study: Subgraphs, tables: Tables) -> Figure:
    keys = ["replicate", "size", "name", "beyond", "place"]
    parts = [
        study.by_digit(tables, arm).assign(**{arm: lambda one: one["accuracy"]})[[*keys, "gain", arm]]
        for arm in (QUESTION, STEPS)
    ]
    frame = parts[0].merge(parts[1].drop(columns="gain"), on=keys, how="outer")
    # The largest trained size and the smallest beyond it in which both numbers have several digits.
    several = frame[(frame["size"] % 10 > 1) & (frame["size"] // 10 > 1)]
    beyond = several["beyond"].astype(bool)
    shown = [several["size"][~beyond].max(), several["size"][beyond].min()]
    several = several[several["size"].isin(shown)].sort_values(["size", "place"])
    rows = [f"{name} digits, digit {int(place)}" for name, place in several[["name", "place"]].values]
    info = dots_info(
        several.assign(digit=rows),
        category="digit",
        measures=DIGITS,
        labels={row: row for row in dict.fromkeys(rows)},
        floor=0.0,
        ceiling=1.0,
        x_title="share",
        caption_lead=(
            "Digits of products, the first one first: how much two digits, one of each factor, tell of it at most (relative "
            "information gain over all pairs of numbers), and how often it is right in held-out products."
        ),
    )
    return Figure("digits", "Which digits are right without computing?", info.caption, draw_dots(info))


def _example(study: Subgraphs, tables: Tables, problem: str) -> Figure:
    frame = study.part(tables, "answers", problem, STEPS)
    own = frame[(frame["replicate"] == study.seeds[0]) & frame["stated"].astype(bool)].dropna(
        subset=["stated"]
    )
    graph, stated, said, family = None, None, "", study.family(problem)
    own = own[own["beyond"].astype(bool)]
    if len(own):
        # One size beyond training: larger ones are too large to read.
        row = own.sort_values("size").iloc[0]
        parts = np.array([int(part) for part in str(row["row"]).split()])
        graph = family.graph(parts)
        stated = np.array([MISSING if one == "?" else int(one) for one in str(row["stated"]).split()])
        name = study.problems[problem].space.name(parts)
        said = (
            f"{TITLES[problem]}: the first held-out problem of the first size beyond training whose answer has as many steps as it "
            f"needs (if there is one), {name}, as the first replicate answers it."
        )
    info = computation_graph_info(
        graph, stated, write=_houses if problem == PUZZLES else None, caption_lead=said
    )
    name = SAID[problem][0]
    return Figure(
        f"{name}_one_answer",
        f"{TITLES[problem]}: one answer as a graph",
        info.caption,
        draw_computation_graph(info),
    )


def _houses(mask: int) -> str:
    """The houses that are left, as the words of puzzles say them."""
    return left_word("", mask, mask.bit_length())[1:] or "none"
