"""Tags stand beside the runs and are written whole."""

from __future__ import annotations

import os

import pytest

from recombine.errors import BadInput, StoreError
from recombine.store.tags import add_tag, drop_tag, tagged, tags


def test_tags_are_given_and_taken(store):
    assert tags(store) == {}
    assert add_tag(store, "best", ["b", "a", "b"]) == ["b", "a"]
    assert add_tag(store, "best", ["a", "c"]) == ["c"]
    assert tags(store) == {"best": ["a", "b", "c"]} and tagged(store, "best") == ["a", "b", "c"]
    assert drop_tag(store, "best", ["a", "x"]) == ["a"]
    assert drop_tag(store, "best") == ["b", "c"]
    assert tags(store) == {} and list((store.path / "tags").iterdir()) == []


def test_a_tag_changes_nothing_of_its_run(store, ended, small):
    store.commit(ended(small()))
    before = {path: path.stat().st_mtime_ns for path in store.folder(small().run_id).rglob("*")}
    add_tag(store, "best", [small().run_id])
    assert {path: path.stat().st_mtime_ns for path in store.folder(small().run_id).rglob("*")} == before


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "a" * 101, "ä"])
def test_names_that_cannot_be_files_are_refused(store, name):
    with pytest.raises(BadInput, match="cannot be a tag"):
        add_tag(store, name, ["a"])
    assert not (store.path / "tags").exists()


def test_an_unknown_tag_gets_a_did_you_mean(store):
    add_tag(store, "best", ["a"])
    for call in (tagged, drop_tag):
        with pytest.raises(BadInput) as caught:
            call(store, "bets")
        assert "did you mean 'best'" in str(caught.value)


def test_killed_while_writing_the_old_tag_stays(store, monkeypatch):
    add_tag(store, "best", ["a"])

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        add_tag(store, "best", ["b", "c"])
    monkeypatch.undo()
    assert tags(store) == {"best": ["a"]}
    assert [path.name for path in (store.path / "tags").iterdir()] == ["best.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"runs": [1]}', '{"runs": "a"}'])
def test_a_damaged_tag_is_reported_and_never_overwritten(store, text):
    add_tag(store, "good", ["a"])
    (store.path / "tags" / "bad.json").write_text(text)
    assert tags(store) == {"good": ["a"]}
    assert len(store.problems) == 1 and "bad.json" in store.problems[0]
    with pytest.raises(StoreError):
        add_tag(store, "bad", ["a"])
    assert (store.path / "tags" / "bad.json").read_text() == text
