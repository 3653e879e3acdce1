"""Deleting: whole runs, and nothing but what was meant."""

from __future__ import annotations

import os
import shutil

import pytest

from recombine.errors import BadInput
from recombine.store.requests import remember
from recombine.store.selection import Selection, remove, runs_of, used_by_others
from recombine.store.store import Store
from recombine.store.tags import add_tag, tags


@pytest.fixture
def four(store, ended, small):
    """A store with four runs, the last of which failed."""
    for seed in range(4):
        store.commit(ended(small(seed=seed), failed_at=5 if seed == 3 else None))
    return store


def sweep(name, run_ids, **more):
    return {"request": "sweep", "name": name, "runs": run_ids, "measurements": [], "time": "now"} | more


def contents(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob("*"))


def test_a_removed_run_is_gone_and_the_others_are_as_they_were(four, small):
    run_ids = [small(seed=seed).run_id for seed in range(4)]
    add_tag(four, "both", run_ids[:2])
    kept = contents(four.folder(run_ids[1]))
    assert remove(four, [run_ids[0], run_ids[2], "0" * 16]) == [run_ids[0], run_ids[2]]
    assert four.run_ids() == sorted([run_ids[1], run_ids[3]])
    assert contents(four.folder(run_ids[1])) == kept
    assert tags(four) == {"both": [run_ids[1]]}
    assert list((four.path / "temporary").iterdir()) == [] and four.problems == []


def test_killed_while_deleting_leaves_no_half_run_and_what_is_left_is_reclaimed(four, small, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(four, [small().run_id])
    monkeypatch.undo()
    assert small().run_id not in four.names()
    (left,) = (four.path / "temporary").iterdir()
    assert (left / "manifest.json").exists()
    # As it would be named had the process that is gone done it.
    gone = left.with_name(left.name.replace(str(os.getpid()), "4194300", 1))
    left.rename(gone)
    store = Store(four.path)
    assert list((store.path / "temporary").iterdir()) == []
    assert len(store.run_ids()) == 3 and store.problems == []


def test_killed_before_the_move_leaves_the_run_whole(four, small, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(four, [small().run_id])
    monkeypatch.undo()
    assert len(Store(four.path).run_ids()) == 4


def test_conditions_narrow(four, small, ended):
    run_ids = [small(seed=seed).run_id for seed in range(4)]
    add_tag(four, "good", run_ids[:2])
    remember(four, sweep("grid", run_ids[1:]))
    choose = {
        Selection(): run_ids,
        Selection(failed=True): run_ids[3:],
        Selection(tag="good"): run_ids[:2],
        Selection(sweep="grid"): run_ids[1:],
        Selection(sweep="grid", tag="good"): run_ids[1:2],
        Selection(sweep="grid", failed=True): run_ids[3:],
        Selection(runs=(run_ids[0][:12], run_ids[2])): [run_ids[0], run_ids[2]],
        Selection(runs=(run_ids[0],), failed=True): [],
        Selection(where=("seeds.init=2",)): run_ids[2:3],
        Selection(where=("number=12", "init=2", "model=mlp")): run_ids[2:3],
        Selection(where=("support.number=13",)): [],
    }
    for selection, expected in choose.items():
        assert sorted(selection.run_ids(four)) == sorted(expected), selection
    assert not Selection() and all(list(choose)[1:])


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(runs=("zzzz",)), "not the name of a run"),
        (Selection(runs=("",)), "not the name of a run"),
        (Selection(tag="goood"), "did you mean 'good'"),
        (Selection(sweep="gird"), "did you mean 'grid'"),
        (Selection(study="data"), "no study 'data'"),
        (Selection(where=("numbr=3",)), "no setting called 'numbr'"),
        (Selection(where=("number",)), "not an override"),
    ],
)
def test_names_that_are_not_there(four, selection, says):
    add_tag(four, "good", four.run_ids())
    remember(four, sweep("grid", four.run_ids()))
    with pytest.raises(BadInput) as caught:
        selection.run_ids(four)
    assert says in str(caught.value)


def test_a_beginning_that_several_share_is_refused(four, monkeypatch):
    monkeypatch.setattr(Store, "names", lambda self, beginning="": [f"{beginning}{end}" for end in "ab"])
    with pytest.raises(BadInput, match="could be any of"):
        Selection(runs=("1",)).run_ids(four)


def test_damaged_runs_are_meant_only_by_name(four, small):
    (four.folder(small().run_id) / "manifest.json").write_text("{")
    assert small().run_id not in Selection().run_ids(four)
    assert Selection(runs=(small().run_id[:10],)).run_ids(four) == [small().run_id]


def test_runs_that_others_use_are_known(four, small):
    run_ids = [small(seed=seed).run_id for seed in range(4)]
    remember(four, sweep("one", run_ids[:2]))
    remember(four, sweep("two", run_ids[1:3]))
    four.write_study(
        "data-scaling-smoke",
        dict.fromkeys(("profile", "config", "effects", "provenance")) | {"study": "data-scaling", "runs": run_ids[:1]},
    )
    assert used_by_others(four, run_ids, Selection(sweep="one")) == {
        run_ids[0]: "data-scaling-smoke",
        run_ids[1]: "two",
        run_ids[2]: "two",
    }
    assert runs_of(four, "study", "data-scaling") == runs_of(four, "study", "data-scaling-smoke") == run_ids[:1]


def test_the_size_is_that_of_the_files(four, small):
    folder = four.folder(small().run_id)
    assert four.size(small().run_id) == sum(path.stat().st_size for path in folder.iterdir())
