"""Preferences against a solver written from the rules alone: states as sets, moves one by one, double precision."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError
from scipy import stats

from recombine.errors import BadInput
from recombine.families.base import Batch, Task
from recombine.families.grid import Play, observe, played
from recombine.families.preferences import (
    ACTIONS,
    DISCOUNT,
    FREE,
    LIMIT,
    PLACES,
    SIZE,
    Preferences,
    PreferencesTeacher,
    solve,
)
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig

SPACE = SubsetSpace(modules=6, max_active=3)
FAMILY = Preferences(features=7)
COMPASS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}

OBJECTS = FAMILY.objects

Cell = tuple[int, int]


def teacher_of(family: Preferences = FAMILY, space: Space = SPACE, seed: int = 0) -> PreferencesTeacher:
    return family.draw(space, jax.random.key(seed))


def walk(cell: Cell, action: str) -> Cell:
    row, column = cell[0] + COMPASS[action][0], cell[1] + COMPASS[action][1]
    return (row, column) if FREE[row, column] else cell


def best(start: Cell, objects: dict[Cell, float]) -> list[tuple[Cell, frozenset[Cell], str]]:
    """The steps of an episode by the rules: where, what is there, what is done. Walls are bumped into honestly."""

    @functools.cache
    def value(cell: Cell, there: frozenset[Cell], left: int) -> float:
        return max(worth(cell, there, action, left - 1) for action in ACTIONS) if left else 0.0

    @functools.cache
    def worth(cell: Cell, there: frozenset[Cell], action: str, left: int) -> float:
        if action == "nothing":
            return 0.0
        after = walk(cell, action)
        pay = objects[after] if after in there else 0.0
        return pay + DISCOUNT * value(after, there - {after}, left)

    cell, there, steps = start, frozenset(objects), []
    for _ in range(LIMIT):
        worths = [worth(cell, there, action, LIMIT) for action in ACTIONS]
        # The same sum in another order differs in the last digits: such actions are equally good.
        action = ACTIONS[int(np.flatnonzero(np.isclose(worths, max(worths), rtol=0, atol=1e-12))[0])]
        steps.append((cell, there, action))
        if action == "nothing":
            break
        cell = walk(cell, action)
        there -= {cell}
    return steps


def steps_of(play: Play) -> list[tuple[Cell, frozenset[Cell], str]]:
    cells = [divmod(int(cell), SIZE) for cell in play.cells]
    return [
        (
            divmod(int(play.agent[step]), SIZE),
            frozenset(cell for cell, there in zip(cells, play.present[step], strict=True) if there),
            ACTIONS[int(play.actions[step])],
        )
        for step in range(LIMIT)
        if play.going[step]
    ]


solved = jax.jit(jax.vmap(solve))


@functools.partial(jax.jit, static_argnums=3)
def batch_of(teacher: PreferencesTeacher, task: Task, key: jax.Array, samples: int) -> Batch:
    return teacher.batch(task, key, samples)


def check_solutions(places: np.ndarray, pays: np.ndarray) -> None:
    """Episodes from these cells (the agent's first) with objects that pay so much."""
    plays = solved(
        jnp.asarray(places[:, 0]),
        jnp.asarray(places[:, 1:]),
        jnp.zeros(pays.shape, jnp.int32),
        jnp.asarray(pays, jnp.float32),
    )
    for index, (place, pay) in enumerate(zip(places, pays, strict=True)):
        start, *cells = (divmod(int(cell), SIZE) for cell in place)
        wanted = best(start, dict(zip(cells, pay.astype(np.float32).tolist(), strict=True)))
        assert steps_of(jax.tree.map(lambda leaf, index=index: np.asarray(leaf[index]), plays)) == wanted


def test_four_rooms_of_nineteen_free_cells():
    graph = nx.grid_2d_graph(SIZE, SIZE).subgraph([tuple(cell) for cell in np.argwhere(FREE)])
    assert len(graph) == len(PLACES) == 19
    assert nx.is_connected(graph)
    assert not FREE[[0, -1]].any()
    assert not FREE[:, [0, -1]].any()
    doors = {(2, 3), (3, 2), (3, 4)}
    rooms = list(nx.connected_components(graph.subgraph(set(graph) - doors)))
    assert sorted(len(room) for room in rooms) == [4, 4, 4, 4]


@pytest.mark.parametrize("objects", [1, 2, 4])
def test_labels_are_those_of_a_slow_solver(objects: int):
    rng = np.random.default_rng(0)
    places = np.stack([rng.permutation(PLACES)[: objects + 1] for _ in range(120)])
    check_solutions(places, rng.normal(size=(120, objects)))


def test_labels_agree_where_much_is_equally_good():
    """Objects of one type pay the same, so that many ways are best: the first action is the label."""
    rng = np.random.default_rng(1)
    places = np.stack([rng.permutation(PLACES)[: OBJECTS + 1] for _ in range(80)])
    worth = rng.normal(size=(80, 2)) + np.array([0.5, -0.5])
    check_solutions(places, np.take_along_axis(worth, rng.integers(0, 2, size=(80, OBJECTS)), axis=1))


def test_where_nothing_pays_nothing_is_done():
    places = np.stack([np.roll(PLACES, shift)[: OBJECTS + 1] for shift in range(19)])
    for pays in (np.zeros((19, OBJECTS)), -np.ones((19, OBJECTS))):
        plays = solved(places[:, 0], places[:, 1:], jnp.zeros((19, OBJECTS), jnp.int32), jnp.asarray(pays, jnp.float32))
        assert not np.any(plays.actions)
        np.testing.assert_array_equal(plays.going, np.arange(LIMIT)[None] == np.zeros((19, 1)))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.permutations(PLACES.tolist()), st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 3.0]), min_size=4, max_size=4))
def test_any_small_world(order: list[int], pays: list[float]):
    check_solutions(np.array([order[: OBJECTS + 1]]), np.array([pays]))


def test_objects_pay_the_weighted_sum_of_preferences():
    teacher = teacher_of()
    table = np.asarray(teacher.table, float)
    for row in SPACE.enumerate()[::7]:
        task = teacher.task(jnp.asarray(row), jax.random.key(int(row[0])))
        wanted = sum(float(task.vector[part]) * table[part] for part in range(SPACE.width))
        np.testing.assert_allclose(teacher.worth(task), wanted, rtol=1e-5, atol=1e-6)


def test_preferences_are_standard_normal():
    drawn = np.asarray(teacher_of(Preferences(features=100), SubsetSpace(modules=100, max_active=2)).table)
    assert drawn.shape == (100, 100)
    assert stats.kstest(drawn.ravel(), stats.norm.cdf).pvalue > 1e-3


def decoded(observation: np.ndarray, features: int) -> tuple[list[int], list[int], dict[int, int]]:
    """Walls, agent and objects of an observation, read back plane by plane."""
    planes = observation.reshape(SIZE * SIZE, features + 2) > 0
    things = {int(cell): int(kind) for cell, kind in np.argwhere(planes[:, 2:])}
    return np.flatnonzero(planes[:, 0]).tolist(), np.flatnonzero(planes[:, 1]).tolist(), things


def test_batches_are_the_plays_in_words_of_planes():
    """Labels, masks and observations follow the solver of the rules from the first observation on."""
    teacher = teacher_of()
    task = teacher.task(jnp.array([0, 2, 5]), jax.random.key(0))
    worth = np.asarray(teacher.worth(task))
    batch = batch_of(teacher, task, jax.random.key(1), 20 * LIMIT)
    inputs = np.asarray(batch.inputs)
    np.testing.assert_allclose(np.mean(inputs**2, axis=1), 1, rtol=1e-5)
    assert batch.targets.shape == (20 * LIMIT, len(ACTIONS))
    np.testing.assert_array_equal(batch.targets.sum(axis=1), 1)
    labels, masks = (np.asarray(batch.targets).argmax(axis=1).reshape(20, -1), np.asarray(batch.mask).reshape(20, -1))
    for episode, views in enumerate(inputs.reshape(20, LIMIT, -1)):
        walls, (agent,), things = decoded(views[0], FAMILY.features)
        assert walls == np.flatnonzero(~FREE).tolist()
        assert len(things) == OBJECTS
        objects = {divmod(cell, SIZE): float(worth[kind]) for cell, kind in things.items()}
        steps = best(divmod(agent, SIZE), objects)
        assert masks[episode].tolist() == [1.0] * len(steps) + [0.0] * (LIMIT - len(steps))
        for view, label, (cell, there, action) in zip(views, labels[episode], steps, strict=False):
            _, found, left = decoded(view, FAMILY.features)
            assert [divmod(one, SIZE) for one in found] == [cell]
            assert left == {one: kind for one, kind in things.items() if divmod(one, SIZE) in there}
            assert ACTIONS[label] == action


@pytest.mark.parametrize("samples", [3, 11])
def test_a_batch_is_cut_from_whole_episodes(samples: int):
    teacher = teacher_of()
    task = teacher.task(jnp.array([0, 2, 5]), jax.random.key(0))
    cut = batch_of(teacher, task, jax.random.key(1), samples)
    whole = batch_of(teacher, task, jax.random.key(1), -(-samples // LIMIT) * LIMIT)
    assert cut.inputs.shape == (samples, FAMILY.input_size) == (samples, 49 * 9)
    for one, other in zip(jax.tree.leaves(cut), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(one, other[:samples])


def test_places_and_types_are_uniform():
    teacher = teacher_of()
    task = teacher.task(jnp.array([0, 2, 5]), jax.random.key(0))
    plays = jax.jit(jax.vmap(lambda key: teacher.play(task, key)))(jax.random.split(jax.random.key(1), 3000))
    start, cells = np.asarray(plays.agent[:, 0]), np.asarray(plays.cells)
    together = np.concatenate([start[:, None], cells], axis=1)
    assert (np.sort(together, axis=1)[:, 1:] > np.sort(together, axis=1)[:, :-1]).all(), "distinct"
    for place in (start, cells[:, 0], cells[:, 3]):
        values, counts = np.unique(place, return_counts=True)
        np.testing.assert_array_equal(values, PLACES)
        assert stats.chisquare(counts).pvalue > 1e-3
    for kind in np.asarray(plays.types).T:
        assert stats.chisquare(np.bincount(kind, minlength=FAMILY.features)).pvalue > 1e-3


def test_the_observation_of_a_known_scene():
    play = Play(
        walls=jnp.array([True, False, False, False]),
        cells=jnp.array([1, 3]),
        types=jnp.array([2, 0]),
        present=jnp.array([[True, True], [False, True]]),
        agent=jnp.array([2, 1]),
        actions=jnp.array([0, 0]),
        going=jnp.array([True, True]),
    )
    wanted = np.zeros((2, 4, 5))
    wanted[0][[0, 1, 2, 3], [0, 4, 1, 2]] = 1
    wanted[1][[0, 1, 3], [0, 1, 2]] = 1
    wanted = wanted.reshape(2, -1)
    wanted /= np.sqrt(np.mean(wanted**2, axis=1, keepdims=True))
    np.testing.assert_allclose(observe(play, 3), wanted, rtol=1e-6)


def test_an_episode_can_be_drawn():
    teacher = teacher_of(Preferences(features=7, coefficients="k-hot"))
    task = teacher.task(jnp.array([1, 4, 6]), jax.random.key(0))
    for seed in range(3):
        key = jax.random.key(seed)
        episode, play = teacher.episode(task, key), played(teacher, task, key)
        assert episode.title == f"1 x {SPACE.label(1)} + 1 x {SPACE.label(4)}"
        assert np.array_equal(episode.walls, ~FREE)
        assert [thing.name for thing in episode.things] == [f"type {kind}" for kind in np.asarray(play.types)]
        worth = np.asarray(teacher.worth(task))[np.asarray(play.types)]
        assert [thing.value for thing in episode.things] == pytest.approx(worth.tolist())
        objects = {(thing.row, thing.column): float(thing.value or 0.0) for thing in episode.things}
        steps = best(episode.path[0], objects)
        assert list(episode.actions) == [action for _, _, action in steps]
        moves = [action for action in episode.actions if action != "nothing"]
        assert list(episode.path) == [
            functools.reduce(walk, moves[:count], episode.path[0]) for count in range(len(moves) + 1)
        ]


def test_fewer_types_than_constituents_are_refused():
    with pytest.raises(ValidationError, match="need at least as many types"):
        RunConfig(family=Preferences(features=5), space=SubsetSpace(modules=6, max_active=2))
    with pytest.raises(BadInput, match="need at least as many types"):
        teacher_of(Preferences(features=5))


def test_conforms():
    check_family(Preferences(features=6, coefficients="continuous"), SPACE)


def test_nothing_is_enumerated():
    space = SubsetSpace(modules=1000, max_active=20)
    teacher = Preferences(features=1000).draw(space, jax.random.key(0))
    task = teacher.task(space.sample(jax.random.key(1)), jax.random.key(2))
    np.testing.assert_allclose(teacher.worth(task), task.vector @ teacher.table, rtol=1e-3, atol=1e-4)
    batch = batch_of(teacher, task, jax.random.key(3), 3)
    assert isinstance(batch, Batch)
    assert np.isfinite(batch.inputs).all()
