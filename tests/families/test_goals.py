"""Goals against a search on a graph; scenes against their promises."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.families.goals import FACTORS, OBJECTS, TYPES, Goals, GoalsTeacher, longest, mazes, quadrants
from recombine.families.grid import MOVES, Play
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family

SPACE = ProductSpace(factors=FACTORS)  # type: ignore[arg-type]
COMPASS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
DRAWS = 300


@functools.cache
def teacher_of(grid: int) -> GoalsTeacher:
    return Goals(grid=grid).draw(SPACE, jax.random.key(0))  # type: ignore[arg-type]


@functools.cache
def drawn(grid: int) -> tuple[np.ndarray, Play, Batch]:
    """Episodes of random goals."""
    teacher = teacher_of(grid)

    def one(key: jax.Array) -> tuple[jax.Array, Play, Batch]:
        row = SPACE.sample(key)
        task = teacher.task(row, key)
        by_play = jax.random.split(jax.random.fold_in(key, 1), 1)[0]
        return (
            row,
            teacher.play(task, by_play),
            teacher.batch(task, jax.random.fold_in(key, 1), teacher.shape.horizon),
        )

    made = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), DRAWS))
    return jax.tree.map(np.asarray, made)


def graph_of(free: np.ndarray) -> nx.Graph:
    return nx.grid_2d_graph(*free.shape).subgraph([tuple(cell) for cell in np.argwhere(free)])


@pytest.mark.parametrize("grid", [7, 11])
def test_mazes_are_different_connected_and_not_too_long(grid: int):
    layouts = mazes(grid).reshape(-1, grid, grid)
    assert len(np.unique(layouts.reshape(5, -1), axis=0)) == 5
    for free in layouts:
        graph = graph_of(free)
        assert np.sum(~free) == grid * grid // 4
        assert nx.is_connected(graph)
        assert nx.diameter(graph) <= longest(grid) == Goals(grid=grid).horizon - 1  # type: ignore[arg-type]
    assert (quadrants(grid).astype(int) @ mazes(grid).T.astype(int)).min() >= OBJECTS
    assert quadrants(grid).sum() == 4 * (grid // 2) ** 2
    assert quadrants(grid).sum(axis=0).max() == 1


def test_mazes_are_the_same_for_ever():
    """Results depend on them: whoever changes how they are made must raise the family's version."""
    picture = ["".join(".#"[not cell] for cell in line) for line in mazes(7)[0].reshape(7, 7)]
    assert picture == ["....#..", ".##...#", "....##.", ".......", ".#.#..#", "...##..", "....#.."]


@pytest.mark.parametrize("grid", [7, 11])
def test_labels_are_a_shortest_way_and_then_the_interaction(grid: int):
    """Of several best moves the first: worked out on a graph."""
    rows, plays, batch = drawn(grid)
    graphs = [graph_of(free) for free in mazes(grid).reshape(-1, grid, grid)]
    for index, row in enumerate(rows):
        _, interaction, maze, _ = row - np.array(SPACE.offsets)
        goal = divmod(int(plays.cells[index, 0]), grid)
        far = nx.single_source_shortest_path_length(graphs[maze], goal)
        cell, actions = divmod(int(plays.agent[index, 0]), grid), []
        while cell != goal:
            beside = [(cell[0] + down, cell[1] + right) for down, right in COMPASS.values()]
            nearer = [number for number, after in enumerate(beside) if far.get(after, np.inf) < far[cell]]
            actions.append(nearer[0])
            cell = beside[nearer[0]]
        actions.append(len(MOVES) + interaction)
        mask = batch.mask[index].astype(bool)
        assert mask.tolist() == [step < len(actions) for step in range(len(mask))]
        assert batch.targets[index].argmax(axis=1)[mask].tolist() == actions


@pytest.mark.parametrize("grid", [7, 11])
def test_the_goal_is_the_only_object_of_its_type_in_its_quadrant(grid: int):
    """And neither the quadrant nor the type alone would tell it."""
    rows, plays, _ = drawn(grid)
    quadrant, _, maze, wanted = (rows - np.array(SPACE.offsets)).T
    inside = quadrants(grid)[quadrant[:, None], plays.cells]
    right = plays.types == wanted[:, None]
    np.testing.assert_array_equal((inside & right).sum(axis=1), 1)
    assert np.all(inside[:, 0] & right[:, 0])
    assert (inside & ~right).any(axis=1).all()
    assert (~inside & right).any(axis=1).all()
    everything = np.concatenate([plays.cells, plays.agent[:, :1]], axis=1)
    assert all(len(set(cells)) == OBJECTS + 1 for cells in everything.tolist()), "distinct"
    assert mazes(grid)[maze[:, None], everything].all(), "on free cells"
    assert quadrants(grid).any(axis=0)[plays.cells].all(), "every object stands in a quadrant"


def test_the_free_distractors_have_any_type_and_stand_anywhere():
    rows, plays, _ = drawn(7)
    quadrant, _, _, wanted = (rows - np.array(SPACE.offsets)).T
    inside = quadrants(7)[quadrant[:, None], plays.cells][:, 3:]
    turn = ((plays.types - wanted[:, None]) % TYPES)[:, 3:]
    assert stats.chisquare(np.bincount(turn[~inside], minlength=TYPES)).pvalue > 1e-3
    assert stats.chisquare(np.bincount(turn[inside], minlength=TYPES)[1:]).pvalue > 1e-3
    assert 0.05 < inside.mean() < 0.5


def test_walls_agent_and_objects_are_seen():
    rows, plays, batch = drawn(7)
    planes = batch.inputs.reshape(DRAWS, 16, 49, TYPES + 2) > 0
    maze = (rows - np.array(SPACE.offsets))[:, 2]
    np.testing.assert_array_equal(planes[..., 0], np.broadcast_to(~mazes(7)[maze][:, None], planes.shape[:3]))
    np.testing.assert_array_equal(planes[..., 1].argmax(axis=2), plays.agent)
    np.testing.assert_array_equal(planes[..., 1].sum(axis=2), 1)
    np.testing.assert_array_equal(planes[..., 2:].sum(axis=(2, 3)), OBJECTS)
    for thing in range(OBJECTS):
        cell, kind = plays.cells[:, thing], plays.types[:, thing]
        assert planes[np.arange(DRAWS), :, cell, 2 + kind].all()
    np.testing.assert_allclose((batch.inputs**2).mean(axis=2), 1, rtol=1e-5)


def test_goals_in_words():
    family = Goals()
    parts = tuple((np.array(SPACE.offsets) + np.array([3, 1, 4, 2])).tolist())
    words = family.sentence(SPACE, parts)
    assert words == "in the bottom right quadrant, push the drum of the willow maze"
    assert family.sentence(SPACE, parts[::-1]) == words
    every = {family.sentence(SPACE, SPACE.constituents(row)) for row in SPACE.enumerate()}
    assert len(every) == SPACE.size == 500


def test_an_episode_can_be_drawn():
    teacher = teacher_of(7)
    row = SPACE.row(tuple((np.array(SPACE.offsets) + np.array([2, 3, 0, 4])).tolist()))
    episode = teacher.episode(teacher.task(jnp.asarray(row), jax.random.key(0)), jax.random.key(1))
    assert episode.title == "in the bottom left quadrant, paint the urn of the birch maze"
    assert np.array_equal(episode.walls, ~mazes(7)[0].reshape(7, 7))
    (goal,) = [thing for thing in episode.things if thing.wanted]
    assert goal.name == "urn"
    assert goal.row > 3 > goal.column
    assert episode.path[-1] == (goal.row, goal.column)
    assert episode.actions[-1] == "paint"
    assert len(episode.path) == len(episode.actions)
    for (row_, column), after, action in zip(episode.path, episode.path[1:], episode.actions, strict=False):
        assert after == (row_ + COMPASS[action][0], column + COMPASS[action][1])
    assert all(thing.value is None for thing in episode.things)


@pytest.mark.parametrize(
    "space",
    [
        SubsetSpace(modules=6, max_active=2),
        ProductSpace(factors={"quadrant": 4, "interaction": 6, "maze": 5, "object": 5}),  # type: ignore[arg-type]
        ProductSpace(factors={"maze": 5, "quadrant": 4, "interaction": 5, "object": 5}),  # type: ignore[arg-type]
    ],
)
def test_other_spaces_are_refused(space: SubsetSpace | ProductSpace):
    with pytest.raises(BadInput, match="factors quadrant"):
        Goals().check(space)


@pytest.mark.parametrize("levels", [(4, 5, 5, 5), (2, 3, 1, 2)])
def test_conforms(levels: tuple[int, ...]):
    check_family(Goals(), ProductSpace(factors=dict(zip(FACTORS, levels, strict=True))))  # type: ignore[arg-type]
