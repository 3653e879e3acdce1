"""Mazes: shortest paths as networkx finds them, one each, and orientations that keep them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families import Mazes
from recombine.families.puzzles import maze_grids as mazes
from recombine.families.puzzles.mazes import MazeTeacher
from recombine.overrides import validate
from recombine.spaces import InstanceSpace, SubsetSpace
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


def paths(grid: np.ndarray) -> list[list[tuple[int, int]]]:
    """All shortest paths from start to goal, by another library."""
    graph = nx.grid_2d_graph(*grid.shape)
    graph.remove_nodes_from([tuple(cell) for cell in np.argwhere(grid == mazes.WALL).tolist()])
    start, goal = (tuple(np.argwhere(grid == end)[0].tolist()) for end in (mazes.START, mazes.GOAL))
    return list(nx.all_shortest_paths(graph, start, goal)) if nx.has_path(graph, start, goal) else []


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_paths_are_counted_as_by_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = np.where(rng.random((5, 5)) < 0.3, mazes.WALL, mazes.FREE)
    grid.ravel()[rng.permutation(25)[:2]] = mazes.START, mazes.GOAL
    expected = paths(grid)
    if len(expected) == 1:
        found = mazes.check_maze(grid, 5)
        assert sorted(map(tuple, np.argwhere(found).tolist())) == sorted(expected[0])
    else:
        with pytest.raises(BadInput, match="several" if expected else "has none|is none|one has none"):
            mazes.check_maze(grid, 5)


def test_drawn_mazes_differ_and_have_one_path() -> None:
    grids, found = mazes.distinct_mazes(40, 5, 0.35, 5, np.random.default_rng(0))
    orders = mazes.orientations(5)
    names = [frozenset(tuple(grid.ravel()[order].tolist()) for order in orders) for grid in grids]
    assert len(set(names)) == 40
    for grid, path in zip(grids, found, strict=True):
        (only,) = paths(grid)
        assert len(only) > 5 and sorted(map(tuple, np.argwhere(path).tolist())) == sorted(only)


def test_examples_are_mazes_after_a_turn() -> None:
    config = RunConfig.model_validate(
        {
            "family": {"kind": "mazes", "size": 4, "least": 3},
            "space": {"kind": "instances", "number": 20},
            "model": {"kind": "recursive", "cells": 16},
            "recipe": {"kind": "fast", "samples": 16},
        }
    )
    setting = Setting(config)
    teacher = setting.teacher
    assert isinstance(teacher, MazeTeacher) and len(setting.support.rows) == 15  # type: ignore[attr-defined]
    batch = teacher.batch(teacher.task(jnp.array([3]), jax.random.key(0)), jax.random.key(1), 16 * 12)
    grids, answers = (each.argmax(-1).reshape(12, 4, 4) for each in (batch.inputs, batch.targets))
    own = np.asarray(teacher.mazes[3]).reshape(4, 4)
    turned = {np.rot90(each, turns).tobytes() for each in (own, own.T) for turns in range(4)}
    assert {np.asarray(grid, np.int32).tobytes() for grid in grids} <= turned
    assert len({np.asarray(grid).tobytes() for grid in grids}) > 2
    for grid, answer in zip(grids, answers, strict=True):
        np.testing.assert_array_equal(mazes.check_maze(np.asarray(grid), 4), np.asarray(answer) == 1)


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="5 rows of 5 numbers"):
        mazes.check_maze(np.zeros((4, 4), int), 5)
    with pytest.raises(BadInput, match="one start and one goal; this one has 0 and 0"):
        mazes.check_maze(np.zeros((4, 4), int), 4)
    with pytest.raises(BadInput, match="too long for a grid"):
        validate(Mazes, {"kind": "mazes", "size": 3, "least": 9})
    with pytest.raises(BadInput, match="needs a space of instances"):
        Mazes().check(SubsetSpace(modules=4, max_active=2))
    with pytest.raises(BadInput, match="random mazes of 3 x 3 cells have only"):
        mazes.distinct_mazes(2, 3, 0.99, 2, np.random.default_rng(0))
    Mazes().check(InstanceSpace(number=8))
