"""What was asked of a store is written down and says how far it is."""

from __future__ import annotations

import pytest

from recombine.probes.base import Measured
from recombine.store.requests import forget, remember, requests, standing


def asked(kind, name, **more):
    return {"request": kind, "name": name, "runs": [], "measurements": [], "time": "now"} | more


def test_requests_are_kept_by_kind_and_name(store):
    assert requests(store) == []
    for one in (asked("sweep", "a"), asked("study", "a", study="x"), asked("sweep", "b")):
        remember(store, one)
    remember(store, asked("sweep", "a", runs=["1"]))
    assert [(one["request"], one["name"]) for one in requests(store)] == [
        ("study", "a"),
        ("sweep", "a"),
        ("sweep", "b"),
    ]
    assert requests(store, "sweep")[0]["runs"] == ["1"]
    forget(store, asked("sweep", "a"))
    forget(store, asked("sweep", "never"))
    assert [(one["request"], one["name"]) for one in requests(store)] == [("study", "a"), ("sweep", "b")]


def test_how_far_a_request_is(store, ended, small, small_scores):
    run_ids = [small(seed=seed).run_id for seed in range(3)]
    request = asked("sweep", "a", runs=run_ids, measurements=[small_scores.name, "never-made"])
    how = standing(store, request)
    assert (how.runs, how.done, how.failed, how.complete) == (3, 0, 0, False)
    store.commit(ended(small(seed=0)))
    store.commit(ended(small(seed=1), failed_at=3))
    store.add_measurement(run_ids[0], small_scores, Measured({"r2_in": 0.5}, {"a": [1]}))
    how = standing(store, request)
    assert (how.done, how.failed, how.complete) == (1, 1, False)
    assert (how.measured, how.measurements) == (1, 4)
    store.commit(ended(small(seed=2)))
    assert not standing(store, request).complete
    assert standing(store, request | {"measurements": []}).complete


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"request": "sweep", "name": "a"}'])
def test_a_damaged_request_is_reported_and_the_others_are_read(store, text):
    remember(store, asked("sweep", "b"))
    (store.path / "requests" / "sweep-a.json").write_text(text)
    assert [one["name"] for one in requests(store)] == ["b"]
    assert len(store.problems) == 1 and "sweep-a.json" in store.problems[0]


def test_a_request_under_another_name_is_not_believed(store):
    remember(store, asked("sweep", "b"))
    (store.path / "requests" / "sweep-b.json").rename(store.path / "requests" / "sweep-c.json")
    assert requests(store) == [] and len(store.problems) == 1
