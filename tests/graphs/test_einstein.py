"""Einstein's puzzles: one solution each, found by elimination, and named up to renaming."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.graphs import einstein
from recombine.graphs.einstein import puzzle_scratchpad
from recombine.graphs.einstein.clues import HOUSE, Clue, Puzzle, Thing, holds, orbit_key, solutions
from recombine.graphs.einstein.elimination import eliminate
from recombine.graphs.graph import evaluate
from recombine.graphs.scratchpad import MISSING

SIZES = st.sampled_from([(2, 2), (3, 2), (3, 3), (4, 2), (4, 3)])
SEEDS = st.integers(0, 10**6)
FEW = st.integers(0, 9)
"""Seeds of puzzles, each drawn once."""


@functools.cache
def draw_puzzle(houses, attributes, seed):
    return einstein.draw_puzzle(houses, attributes, seed)


def test_a_seed_determines_the_puzzle():
    assert einstein.draw_puzzle(3, 2, 5) == draw_puzzle(3, 2, 5) != draw_puzzle(3, 2, 6)


def without(puzzle, clue):
    return Puzzle(puzzle.houses, puzzle.attributes, tuple(other for other in puzzle.clues if other != clue))


@settings(max_examples=20, deadline=None)
@given(size=SIZES, seed=FEW)
def test_elimination_finds_the_one_solution(size, seed):
    puzzle = draw_puzzle(*size, seed)
    found, worked = solutions(puzzle), eliminate(puzzle)
    assert len(found) == 1
    assert worked.solved and [mask.bit_length() - 1 for mask in worked.masks.values()] == found[0].ravel().tolist()
    for clue in puzzle.clues:
        assert not eliminate(without(puzzle, clue)).solved


@settings(max_examples=30, deadline=None)
@given(size=SIZES, seed=FEW)
def test_the_graph_computes_the_elimination(size, seed):
    worked = eliminate(draw_puzzle(*size, seed))
    values = evaluate(worked.graph)
    assert {thing: int(values[place]) for thing, place in worked.last.items()} == worked.masks
    for step in worked.graph.steps:  # Each step takes something away and leaves something.
        before = values[worked.graph.parents[step][0]]
        assert 0 < values[step] < before and values[step] & before == values[step]


@settings(max_examples=30, deadline=None)
@given(size=SIZES, seed=FEW)
def test_no_step_takes_a_solution_away(size, seed):
    """Also of puzzles with several, where clues are missing."""
    puzzle = draw_puzzle(*size, seed)
    puzzle = Puzzle(*size, puzzle.clues[: len(puzzle.clues) // 2])
    worked = eliminate(puzzle)
    for solution in solutions(puzzle):
        assert all(worked.masks[thing] >> int(solution[thing]) & 1 for thing in puzzle.things)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_solutions_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    things = [Thing(HOUSE, 1), *Puzzle(3, 2, ()).things]
    pairs = [rng.choice(len(things), 2, replace=False) for _ in range(3)]
    kinds = ("same", "apart", "left", "beside")
    clues = tuple(Clue(kinds[rng.integers(4)], things[one], things[two]) for one, two in pairs)
    wanted = []
    for homes in itertools.product(itertools.permutations(range(3)), repeat=2):

        def house(thing, homes=homes):
            return thing.value if thing.attribute == HOUSE else homes[thing.attribute][thing.value]

        if all(holds(clue.kind, np.array(house(clue.first)), np.array(house(clue.second))) for clue in clues):
            wanted.append([list(home) for home in homes])
    assert sorted(solutions(Puzzle(3, 2, clues)).tolist()) == sorted(wanted)


def renamed(puzzle, attributes, values):
    def other(thing):
        if thing.attribute == HOUSE:
            return thing
        return Thing(attributes[thing.attribute], values[thing.attribute][thing.value])

    return [Clue(clue.kind, other(clue.first), other(clue.second)) for clue in puzzle.clues]


@settings(max_examples=40, deadline=None)
@given(size=SIZES, seed=FEW, other=SEEDS)
def test_renaming_keeps_the_key(size, seed, other):
    puzzle, rng = draw_puzzle(*size, seed), np.random.default_rng(other)
    attributes = rng.permutation(size[1]).tolist()
    values = [rng.permutation(size[0]).tolist() for _ in attributes]
    clues = renamed(puzzle, attributes, values)
    clues = [
        Clue(clue.kind, clue.second, clue.first) if clue.kind != "left" and rng.random() < 0.5 else clue
        for clue in (clues[place] for place in rng.permutation(len(clues)))
    ]
    assert orbit_key(Puzzle(*size, tuple(clues))) == orbit_key(puzzle)


def test_keys_are_equal_exactly_within_an_orbit():
    """The orbit found by trying every renaming."""
    orders = list(itertools.permutations(range(3)))
    keys, least = [], []
    for seed in range(50):
        puzzle = draw_puzzle(3, 2, seed)
        keys.append(orbit_key(puzzle))
        least.append(
            min(
                sorted(clue.ordered for clue in renamed(puzzle, attributes, values))
                for attributes in itertools.permutations(range(2))
                for values in itertools.product(orders, repeat=2)
            )
        )
    assert len(set(keys)) < len(keys)  # Some puzzles are the same, or this would tell little.
    for one, two in itertools.combinations(range(50), 2):
        assert (keys[one] == keys[two]) == (least[one] == least[two])


@given(size=SIZES, seed=FEW, tokens=st.lists(st.text(max_size=5), max_size=8))
@settings(max_examples=30, deadline=None)
def test_the_scratchpad(size, seed, tokens):
    worked = eliminate(draw_puzzle(*size, seed))
    pad = puzzle_scratchpad(worked.graph, worked.puzzle.houses)
    assert pad.length == len(worked.graph.steps)
    assert pad.read(pad.write()).tolist() == evaluate(worked.graph).tolist()
    stated = pad.read(tokens)
    assert (stated[list(worked.graph.steps)] == MISSING).all()


def test_tokens_name_their_thing():
    puzzle = Puzzle(3, 1, (Clue("same", Thing(HOUSE, 1), Thing(0, 0)), Clue("left", Thing(0, 1), Thing(0, 0))))
    worked = eliminate(puzzle)
    assert puzzle.tokens == ("same", "h2", "a1", "left", "a2", "a1")
    pad = puzzle_scratchpad(worked.graph, worked.puzzle.houses)
    assert pad.write() == ("a1:2", "a2:1", "a3:13", "a3:3")
    nodes = [worked.graph.nodes[step] for step in worked.graph.steps]
    assert [node.operation_name for node in nodes] == ["same house", "left of", "another house", "another house"]
    first = worked.graph.steps[0]
    for token in ("a2:2", "a1:22", "a1:21", "a1:4", "a1:", "a12", "b1:2"):
        assert (pad.read([token])[first] == MISSING) == (token != "a1:")
    assert pad.read(["a1:13"])[first] == 0b101 and pad.read(["a1:"])[first] == 0


def test_contradictions_end():
    puzzle = Puzzle(2, 1, (Clue("left", Thing(0, 0), Thing(0, 1)), Clue("left", Thing(0, 1), Thing(0, 0))))
    assert len(solutions(puzzle)) == 0 and not eliminate(puzzle).solved
    with pytest.raises(BadInput, match="0 solutions"):
        orbit_key(puzzle)


def test_invalid_puzzles_are_refused():
    with pytest.raises(BadInput, match="1 houses"):
        Puzzle(1, 2, ())
    with pytest.raises(BadInput, match="does not have"):
        Puzzle(2, 2, (Clue("same", Thing(0, 0), Thing(2, 0)),))
    with pytest.raises(BadInput, match="at most"):
        solutions(Puzzle(5, 5, ()))
