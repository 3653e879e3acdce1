"""The picture of a run's task shows puzzles with their solutions."""

from __future__ import annotations

import types
from typing import Any

import pytest

import recombine as rc
from recombine.training.prepare import Setting
from recombine.view.task_pictures import task_picture

MAZES: dict[str, Any] = {
    "family": {"kind": "mazes", "size": 4, "least": 3},
    "space": {"kind": "instances", "number": 20},
    "model": {"kind": "recursive", "cells": 16},
    "recipe": {"kind": "fast", "tasks": 4, "samples": 16},
}
SUDOKU: dict[str, Any] = {"family": "sudoku", "space": {"kind": "instances", "number": 64}}
ARC: dict[str, Any] = {"family": {"kind": "arc", "puzzles": 2, "pairs": 8, "side": 4}}


def panels(given: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The title and the cells of each grid, row by row."""
    config = rc.RunConfig.model_validate(given)
    run: Any = types.SimpleNamespace(config=config, setting=Setting(config))
    chart = task_picture(run).chart.to_dict()
    # Altair keeps the data of a chart in one place, by name.
    return [
        (panel["title"], chart["datasets"][panel["layer"][0]["data"]["name"]])
        for row in chart["vconcat"]
        for panel in row["hconcat"]
    ]


@pytest.mark.parametrize(("given", "cells"), [(SUDOKU, 36), (MAZES, 16), (ARC, 16)], ids=["sudoku", "mazes", "arc"])
def test_a_trained_and_a_held_out_puzzle_are_shown_with_their_solutions(given, cells):
    titles = [f"{split}: the {what}" for split in ("Trained", "Held out") for what in ("puzzle", "solution")]
    found = panels(given)
    assert [title for title, _ in found] == titles
    assert {len(shown) for _, shown in found} == {cells}


def test_solved_sudokus_keep_what_was_given():
    found = panels(SUDOKU)
    for (_, puzzle), (_, solution) in zip(found[::2], found[1::2], strict=True):
        given = [cell["text"] for cell in puzzle]
        solved = [cell["text"] for cell in solution]
        assert "" in given
        assert all(before in ("", after) for before, after in zip(given, solved, strict=True))
        assert [cell["given"] for cell in solution] == [text != "" for text in given]
        for first in range(6):
            assert sorted(solved[6 * first : 6 * first + 6]) == sorted(solved[first::6]) == list("123456")


def test_paths_of_mazes_lead_from_start_to_goal():
    (_, maze), (_, solved), *_ = panels(MAZES)
    path = {(cell["x"], cell["y"]) for cell in solved if cell["name"] in ("start", "shortest path", "goal")}
    ends = [(cell["x"], cell["y"]) for cell in maze if cell["name"] in ("start", "goal")]
    neighbours = [sum(abs(x - other) + abs(y - below) == 1 for other, below in path) for x, y in path]
    assert len(ends) == 2
    assert set(ends) < path
    assert sorted(neighbours) == [1, 1] + [2] * (len(path) - 2)
