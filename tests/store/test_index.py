"""The index of a store answers as reading the files one by one does, whatever happened to the store or to the index."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from recombine.errors import BadInput
from recombine.store.index import file
from recombine.store.index.columns import column, frame_of, joined, table_of, values_of
from recombine.store.index.query import full_name
from recombine.store.store import Store, load_store
from recombine.store.tags import add_tag

OWN = ("made", "measured", "tags", "note")
"""What only the index has."""


@pytest.fixture(scope="module")
def made(ended, small, small_scores, tmp_path_factory):
    """A store of five runs; one failed, and two are measured. Tests copy it, as it is not cheap to make."""
    store = Store(tmp_path_factory.mktemp("made") / "store")
    for seed, number in enumerate((12, 14, 16, 18)):
        store.commit(ended(small(number, seed)))
    store.commit(ended(small(12, 4), failed_at=20))
    for config in (small(12, 0), small(14, 1)):
        store.add_measurement(config.run_id, small_scores, store.load(config).measure(small_scores))
    return store.path


@pytest.fixture
def filled(made, tmp_path):
    return Store(shutil.copytree(made, tmp_path / "filled"))


def one_by_one(path):
    """What the files say, without the index, and what is wrong with them."""
    store = load_store(path)
    return {row["run"]: present(row) for row in store.runs_df().to_dict("records")}, set(store.problems)


def indexed(store):
    rows = [present(row) for row in store.index.frame().to_dict("records")]
    table = {row["run"]: {name: value for name, value in row.items() if name not in OWN} for row in rows}
    return table, set(store.index.problems)


def present(row):
    """What a row has: a missing value is not a number in one table and nothing in another."""
    return {name: value for name, value in row.items() if isinstance(value, list) or not pd.isna(value)}


def move_in(path, made, chance):
    """A run arrives as a commit does: under its name in one step."""
    missing = sorted(set(os.listdir(made / "runs")) - set(os.listdir(path / "runs")))
    if missing:
        name = chance.choice(missing)
        part = Path(tempfile.mkdtemp(dir=path / "temporary")) / name
        shutil.copytree(made / "runs" / name, part)
        os.rename(part, path / "runs" / name)


def move_out(path, made, chance):
    there = sorted(os.listdir(path / "runs"))
    if there:
        shutil.rmtree(path / "runs" / chance.choice(there))


def files_of(path):
    return sorted(each for each in (path / "runs").rglob("*") if each.is_file())


def damage(path, made, chance):
    """A bit in place, with the old length and time; a cut; or a file that is gone."""
    files = files_of(path)
    if not files:
        return
    victim = chance.choice(files)
    data, state = bytearray(victim.read_bytes()), victim.stat()
    way = chance.choice(["bit", "cut", "gone"])
    if way == "gone" or not data:
        victim.unlink()
    elif way == "cut":
        victim.write_bytes(data[: len(data) // 2])
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        victim.write_bytes(data)
        os.utime(victim, ns=(state.st_atime_ns, state.st_mtime_ns))


def mend(path, made, chance):
    """A file comes back from a backup, with its old time."""
    files = [each for each in files_of(made) if (path / each.relative_to(made)).parent.is_dir()]
    if files:
        each = chance.choice(files)
        shutil.copy2(each, path / each.relative_to(made))


def damage_index(path, made, chance):
    place = path / file.NAME
    if place.exists():
        data = bytearray(place.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        place.write_bytes(data[: chance.choice([len(data), len(data) // 2, 5])])


def delete_index(path, made, chance):
    (path / file.NAME).unlink(missing_ok=True)


def look_elsewhere(path, made, chance):
    """Another process refreshes and writes the index."""
    load_store(path).index.refresh()


STEPS = [move_in, move_out, damage, mend, damage_index, delete_index, look_elsewhere]


@settings(max_examples=10)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6), chance=st.randoms(use_true_random=False))
def test_after_any_history_it_says_what_the_files_say(made, steps, chance):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copytree(made, Path(folder) / "store"))
        kept = load_store(path)
        # The copies are older than the time in which a change could go unseen.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recombine.store.index.stamps.SETTLED_NS", -(10**18))
            for step in steps:
                step(path, made, chance)
                assert indexed(kept) == one_by_one(path)
            assert indexed(load_store(path)) == one_by_one(path)


def test_old_runs_are_not_read_again(filled, made, monkeypatch):
    from recombine.store import tables

    monkeypatch.setattr("recombine.store.index.stamps.SETTLED_NS", -(10**18))
    gone = sorted(os.listdir(filled.path / "runs"))[0]
    os.rename(filled.folder(gone), filled.path / "temporary" / "gone")
    filled.index.refresh()
    read, real = [], tables.index_records
    monkeypatch.setattr(tables, "index_records", lambda store, runs: read.extend(runs) or real(store, runs))
    assert not load_store(filled.path).index.refresh() and read == []
    os.rename(filled.path / "temporary" / "gone", filled.folder(gone))
    changes = load_store(filled.path).index.refresh()
    assert changes.new == (gone,) and read == [gone]
    shutil.rmtree(filled.folder(gone))
    assert load_store(filled.path).index.refresh().removed == (gone,) and read == [gone]


def test_a_run_that_changed_a_moment_ago_is_read_again(filled):
    """Two changes within a tick of the clock leave one time, so that only settled files are trusted."""
    filled.index.refresh()
    table, _ = file.read(filled.path / file.NAME)
    assert values_of(table, "#stamp") == [None] * 5
    for path in files_of(filled.path):
        os.utime(path, (0, 0))
    assert not filled.index.refresh(), "it was read again, and nothing had changed"


def test_a_new_measurement_is_noticed(filled, small, small_scores):
    filled.index.refresh()
    run = small(16, 2).run_id
    assert filled.index.held([run, "0" * 16]) == {run: ("complete", frozenset()), "0" * 16: (None, frozenset())}
    filled.add_measurement(run, small_scores, filled.load(run).measure(small_scores))
    assert filled.index.refresh().changed == (run,)
    assert filled.index.held([run])[run] == ("complete", frozenset({small_scores.name}))
    assert indexed(filled) == one_by_one(filled.path)


# Two writers, and none


def test_many_may_refresh_at_once(filled):
    stores = [load_store(filled.path) for _ in range(4)]
    answers = [None] * 8

    def look(number):
        answers[number] = indexed(stores[number % 4])

    threads = [threading.Thread(target=look, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [one_by_one(filled.path)] * 8
    assert file.read(filled.path / file.NAME) is not None and not list((filled.path / "temporary").iterdir())


def test_a_store_that_cannot_be_written_has_its_index_in_memory(filled, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(file, "replacing", refuse)
    assert indexed(filled) == one_by_one(filled.path)
    assert not (filled.path / file.NAME).exists() and not filled.problems


@pytest.mark.parametrize("marker", ['{"format": 99}', "{"])
def test_a_newer_or_damaged_store_is_not_written(filled, marker):
    (filled.path / "recombine.json").write_text(marker)
    before = sorted(filled.path.rglob("*"))
    assert len(load_store(filled.path).index.frame()) == 5
    assert sorted(filled.path.rglob("*")) == before


def test_another_headline_metric_makes_it_anew(filled, monkeypatch):
    from recombine.store import tables

    filled.index.refresh()
    before = load_store(filled.path).index.frame()
    monkeypatch.setattr(tables, "metric_of", lambda family: "correlation")
    after = load_store(filled.path).index.frame()
    assert set(after["metric"]) == {"correlation"} and set(before["metric"]) == {"r2"}
    scored = after.dropna(subset=["score_in"])
    assert len(scored) == 2 and scored["score_in"].tolist() == scored["correlation_in"].tolist()


# Answers


@settings(max_examples=15)
@given(
    column=st.sampled_from(["support.number", "seeds.data", "steps", "score_in", "status", "failed_at"]),
    sign=st.sampled_from(["<", ">=", "=", "<>"]),
    row=st.integers(0, 4),
    sort=st.lists(st.sampled_from(["-number", "score_in", "-status", "seeds.init", "-failed_at"]), max_size=2),
    limit=st.none() | st.integers(0, 4),
    offset=st.integers(0, 3),
)
def test_filters_and_sorting_are_those_of_pandas(shared, column, sign, row, sort, limit, offset):
    frame = shared.runs_df()
    value = frame[column].astype(object).iloc[row]
    if pd.isna(value):
        where, kept = f'"{column}" IS NULL', frame[column].isna()
    else:
        compare = {"<": np.less, ">=": np.greater_equal, "=": np.equal, "<>": np.not_equal}[sign]
        where, there = f'"{column}" {sign} {value!r}', frame[column].notna()
        kept = there & pd.Series([there[at] and bool(compare(frame[column][at], value)) for at in frame.index])
    expected = frame[kept].sort_values("run", kind="stable")
    for key in reversed(sort):
        name = "support.number" if key == "-number" else key.lstrip("-")
        expected = expected.sort_values(name, ascending=not key.startswith("-"), kind="stable", na_position="last")
    found = shared.index.frame(where=where, sort=sort, columns="run", limit=limit, offset=offset)
    end = None if limit is None else offset + limit
    assert found["run"].tolist() == expected["run"].tolist()[offset:end]


@pytest.fixture(scope="module")
def shared(made):
    return load_store(made)


def test_groups_are_means_with_intervals_over_replicates(filled, ended, small):
    for seed in (0, 2):  # The same seeds with two numbers of combinations: one replicate.
        filled.commit(ended(small(20, seed), steps=50))
    frame = filled.index.frame(group="status", columns=("steps", "number"), where="number <> 18")
    assert frame["status"].tolist() == ["complete", "failed"] and frame["runs"].tolist() == [5, 1]
    expected = np.array([40.0, 30.0, 40.0])  # Replicates 0, 1 and 2.
    low, high = stats.t.interval(0.95, 2, expected.mean(), stats.sem(expected))
    row = frame.iloc[0]
    assert (row["steps"], row["steps_n"]) == (pytest.approx(expected.mean()), 3)
    assert (row["steps_low"], row["steps_high"]) == (pytest.approx(low), pytest.approx(high))
    assert row["support.number"] == pytest.approx(np.mean([16, 14, 18]))
    assert frame.iloc[1][["steps_low", "steps_high"]].isna().all(), "one replicate has no interval"
    assert filled.index.frame(group="number", columns="steps", sort="-number")["support.number"].iloc[0] == 20
    with pytest.raises(BadInput, match="has no mean"):
        filled.index.frame(group="number", columns="status")


WRONG = {
    "numbr > 3": "did you mean 'number'",
    "steps": "neither true nor false",
    "length(repeat('x', 2000000000)) > 1": "calls repeat",
    "(select 1) = 1": "is not one expression",
    "steps = 1; drop table runs": "cannot be used",
    "steps = 1) OR (1 = 1": "cannot be used",
    "status > 3": "Cannot compare",
    "CAST(status AS INTEGER) = 1": "cannot be compared",
    "read_text('/etc/passwd') = ''": "cannot be used",
    "seeds = 1": "There is no column called 'seeds'",
    "init = 1 or data = 1 or in_ = 2": "There is no column",
    "": "cannot be used",
}


@pytest.mark.parametrize("where", WRONG)
@pytest.mark.parametrize("group", [(), ("status",)])
def test_filters_say_what_is_wrong_with_them(shared, where, group):
    with pytest.raises(BadInput) as error:
        shared.index.frame(where=where, group=group)
    assert WRONG[where] in str(error.value)


def test_names_may_be_short_but_must_be_clear(shared):
    found = shared.index.frame(where="support.number >= 16 AND STATUS = 'complete'", columns=("Number", "model.width"))
    assert list(found.columns) == ["support.number", "model.width"] and len(found) == 2
    with pytest.raises(BadInput, match=r"could be any of space\.modules, x\.modules"):
        full_name(["space.modules", "x.modules"], "modules")
    assert shared.index.frame(where="steps = 30", columns="steps").columns.tolist() == ["steps"]


def test_records_keep_whole_numbers(shared):
    first = shared.index.records(where="status = 'failed'", columns=("run", "failed_at", "score_in"))
    assert first == [{"run": first[0]["run"], "failed_at": 20, "score_in": None}] and type(first[0]["failed_at"]) is int


def test_tags_are_a_column(filled, small):
    filled.index.refresh()
    add_tag(filled, "best", [small(12, 0).run_id])
    add_tag(filled, "old", [small(12, 0).run_id, small(14, 1).run_id])
    assert filled.index.frame(sort="seeds.data")["tags"].dropna().tolist() == ["best old", "old"]
    assert len(filled.index.frame(where="tags LIKE '%best%'")) == 1


def test_an_empty_store(store):
    assert store.index.frame(where="width > 3").empty and list(store.index.frame().columns) == ["run"]
    assert store.index.records() == [] and Store(store.path).index.kinds == {"run": "text"}
    with pytest.raises(BadInput, match="calls repeat"):
        store.index.frame(where="repeat('x', 10) = 'x'")


# Columns of any values

LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=3)
RECORDS = st.lists(
    st.dictionaries(st.sampled_from("abc"), LEAVES | st.lists(LEAVES, max_size=2), max_size=3), max_size=5
)


@settings(max_examples=40)
@given(st.lists(RECORDS, min_size=1, max_size=3))
def test_records_of_any_values_come_back(parts):
    named = [[record | {"run": f"{number}"} for number, record in enumerate(part)] for part in parts]
    table = joined([table_of(part) for part in named])
    rows = [record for part in named for record in part]
    for name in {name for row in rows for name in row}:
        found, given_ = values_of(table, name), [row.get(name) for row in rows]
        assert found == given_
        assert [isinstance(value, bool) for value in found] == [isinstance(value, bool) for value in given_]
    assert len(frame_of(table, table.column_names)) == len(rows)


def test_a_text_that_is_no_unicode_is_kept():
    field, array = column(["\ud800", "a"])
    assert field.metadata and array.to_pylist() == ['"\\ud800"', '"a"']
