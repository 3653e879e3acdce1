"""Work units hold every run once, in whole stacks of one bucket, largest first, enough and not too many."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from recombine.engines.local import LocalEngine
from recombine.engines.work_units import WorkUnit, estimated, halves, split_evenly, split_work, unfinished
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.recipes.paper import Paper
from recombine.training.program import buckets

SCORES = Scores(combinations=6, draws=2, samples=4)


def test_a_parcel_survives_its_text(small):
    unit = WorkUnit(configs=(small(12), small(20)), measurements=(SCORES,), stack_size=2, seconds=3.5, attempt=1)
    text = unit.model_dump_json()
    assert "\n" not in text
    again = WorkUnit.model_validate_json(text)
    assert again == unit
    assert [config.run_id for config in again.configs] == [config.run_id for config in unit.configs]
    assert again.measurements[0].name == SCORES.name


@pytest.fixture(scope="module")
def mixed(small):
    """Runs of three buckets."""
    wide, deep = MLP(width=16, depth=2), MLP(width=8, depth=1)
    runs = [small(12, seed=seed) for seed in range(7)]
    runs += [small(12, seed=seed, model=wide) for seed in range(5)]
    return runs + [small(12, seed=seed, model=deep) for seed in range(2)]


@settings(deadline=None, max_examples=30)
@given(data=st.data(), workers=st.integers(1, 9), least=st.floats(0, 30), stack_size=st.integers(1, 4))
def test_every_run_is_in_one_parcel_of_its_bucket_in_whole_stacks(mixed, data, workers, least, stack_size):
    lengths = data.draw(st.lists(st.floats(0, 100), min_size=len(mixed), max_size=len(mixed)))
    seconds = {config.run_id: length for config, length in zip(mixed, lengths, strict=True)}
    with mock.patch.object(MLP, "stack_size", return_value=stack_size):
        units = split_work([*mixed, *mixed], [SCORES], seconds, workers, least)
        assert sorted(config.run_id for unit in units for config in unit.configs) == sorted(seconds)
        where = {config.run_id: index for index, (_, bucket) in enumerate(buckets(mixed)) for config in bucket}
        stacks = {
            frozenset(config.run_id for config in bucket[first : first + stack_size])
            for _, bucket in buckets(mixed)
            for first in range(0, len(bucket), stack_size)
        }
    for unit in units:
        runs = [config.run_id for config in unit.configs]
        assert len({where[run] for run in runs}) == 1 and unit.stack_size == stack_size
        assert unit.seconds == pytest.approx(sum(seconds[run] for run in runs))
        for first in range(0, len(runs), stack_size):
            assert frozenset(runs[first : first + stack_size]) in stacks
    assert [unit.seconds for unit in units] == sorted((p.seconds for p in units), reverse=True)


def test_a_long_bucket_is_cut_for_all_workers_and_a_short_one_is_not(small):
    runs = [small(12, seed=seed) for seed in range(30)]
    long = dict.fromkeys((config.run_id for config in runs), 60.0)
    assert len(split_work(runs, [], long, 1)) == 3
    assert len(split_work(runs, [], long, 4)) == 12
    assert len(split_work(runs, [], long, 1000)) == 30, "no more than there are runs"
    # Half a minute in all: three units of the ten seconds that compiling takes, whatever the workers.
    short = dict.fromkeys(long, 1.0)
    assert len(split_work(runs, [], short, 1000)) == 3
    assert len(split_work(runs[:5], [], short, 8)) == 1


@pytest.mark.parametrize("number, parts", [(7, 3), (3, 3), (10, 4), (1, 1)])
def test_pieces_are_of_near_length(number, parts):
    pieces = split_evenly([[index] for index in range(number)], parts)
    assert [item for piece in pieces for item in piece] == [[index] for index in range(number)]
    assert len(pieces) == parts and max(map(len, pieces)) - min(map(len, pieces)) <= 1


def test_what_is_stored_and_measured_is_in_no_parcel(store, small):
    runs = [small(12, seed=seed) for seed in range(4)] + [small(12, learning_rate=1e30)]
    LocalEngine().run(store, runs[:2], [SCORES])
    LocalEngine().run(store, [runs[2], runs[4]])
    assert unfinished(store, runs, []) == [runs[3]]
    assert unfinished(store, runs, [SCORES]) == [runs[2], runs[3]], "a failed run is finished"
    seconds = estimated(store, runs[2:4], [SCORES])
    assert 0 < seconds[runs[2].run_id] < seconds[runs[3].run_id], "the trained one only wants measuring"

    pieces = halves(WorkUnit(configs=tuple(runs), measurements=(SCORES,), seconds=10.0), store)
    assert [list(piece.configs) for piece in pieces] == [[runs[2]], [runs[3]]]
    assert all(piece.attempt == 1 and piece.seconds == 2.0 for piece in pieces)
    assert halves(WorkUnit(configs=tuple(runs[:2]), measurements=(SCORES,)), store) == []


def test_longer_runs_are_estimated_longer(store, small):
    longer = small(12, recipe=Paper(learning_rate=0.01, steps=3000, tasks=8, samples=4))
    seconds = estimated(store, [small(), longer], [])
    assert seconds[longer.run_id] == pytest.approx(100 * seconds[small().run_id])
