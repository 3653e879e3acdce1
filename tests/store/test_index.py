"""The index of a store answers as reading the files one by one does, whatever happened to the store or to the index."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.store.store import Store, load_store


@pytest.fixture
def filled(store, ended, small, small_scores):
    """A store of four runs; one failed, and one is measured."""
    for seed, number in enumerate((12, 14, 16)):
        store.commit(ended(small(number, seed)))
    store.commit(ended(small(12, 3), failed_at=20))
    store.add_measurement(small().run_id, small_scores, store.load(small()).measure(small_scores))
    return store


def one_by_one(store):
    """What the files say: the table of the store, without the index."""
    return {row["run"]: present(row) for row in load_store(store.path).runs_df().to_dict("records")}


def indexed(store, **asked):
    extra = ("made", "measured", "tags", "note")
    rows = store.index.frame(**asked).to_dict("records")
    return {row["run"]: {name: value for name, value in present(row).items() if name not in extra} for row in rows}


def present(row):
    """What a row has: a missing value is not a number in one table and nothing in another."""
    return {name: value for name, value in row.items() if isinstance(value, list) or not pd.isna(value)}


def test_it_answers_as_the_files_do(filled):
    assert indexed(filled) == one_by_one(filled)
    again = load_store(filled.path)
    assert indexed(again) == one_by_one(filled) and not again.index.refresh()


def test_what_is_new_changed_or_gone_is_noticed(filled, ended, small, small_scores):
    filled.index.refresh()
    other = load_store(filled.path)
    assert not other.index.refresh()
    filled.commit(ended(small(18, 4)))
    assert other.index.refresh().new == (small(18, 4).run_id,)
    second = small(14, 1).run_id
    filled.add_measurement(second, small_scores, filled.load(second).measure(small_scores))
    changes = other.index.refresh()
    assert changes.changed == (second,) and not changes.new and not changes.removed
    os.rename(filled.folder(second), filled.path / "temporary" / "gone")
    assert other.index.refresh().removed == (second,)
    assert indexed(other) == one_by_one(filled)


def test_filters_name_what_is_wrong(filled):
    frame = filled.index.frame(
        where="number >= 14 and status = 'complete'", sort="-support.number", columns=("number",)
    )
    assert frame["support.number"].tolist() == [16, 14]
    for where, says in {
        "numbr > 3": "did you mean 'number'",
        "steps": "neither true nor false",
        "length(repeat('x', 2000000000)) > 1": "calls repeat",
        "(select 1) = 1": "is not one expression",
        "steps = 1; drop table runs": "cannot be used",
        "status > 3": "cannot be compared",
    }.items():
        with pytest.raises(BadInput) as error:
            filled.index.frame(where=where)
        assert says in str(error.value), where


def test_an_empty_store(store):
    assert store.index.frame(where="width > 3").empty and list(store.index.frame().columns) == ["run"]
    assert Store(store.path).index.kinds == {"run": "text"}
