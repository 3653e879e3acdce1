"""Times of this machine: kept under several names, shared by processes, and never an error."""

from __future__ import annotations

import json

import pytest

from recombine.training.timings import FILE, MOST_NAMES, Timings, names_of


def test_the_most_exact_name_that_has_times_counts(tmp_path, tiny):
    known = Timings(tmp_path)
    config = tiny()
    names = names_of("start cold", "key", config)
    assert known.seconds(names) is None
    known.note(names[1:], 4.0)
    assert known.seconds(names) == 4 and not known.knows(names[0])
    for seconds in (1.0, 2.0, 30.0):
        known.note(names, seconds)
    assert known.seconds(names) == 2 and known.seconds(names[1:]) == 3
    other = tiny(model={"kind": "hypernetwork"})
    assert known.seconds(names_of("start cold", "other", other)[:-1]) is None
    assert known.seconds(names_of("start cold", "other", other)) == 3, "at last, any program"


def test_only_recent_times_are_kept(tmp_path):
    known = Timings(tmp_path)
    for seconds in (100, 100, 100, 1, 1, 1, 1, 1):
        known.note(["step"], seconds)
    assert known.seconds(["step"]) == 1


def test_processes_add_to_one_file(tmp_path):
    first, second = Timings(tmp_path / "cache"), Timings(tmp_path / "cache")
    first.note(["a"], 1.0)
    second.note(["a"], 3.0)
    second.note(["b"], 5.0)
    first.save()
    second.save()
    again = Timings(tmp_path / "cache")
    assert again.seconds(["a"]) == 2 and again.seconds(["b"]) == 5
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [FILE], "nothing temporary is left"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 3}', '{"a": ["x"]}', '{"a": null}'])
def test_a_damaged_file_has_no_times(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    known = Timings(tmp_path)
    assert known.seconds(["a"]) is None
    known.note(["a"], 1.0)
    known.save()
    assert json.loads((tmp_path / FILE).read_text()) == {"a": [1.0]}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    known = Timings(tmp_path / "file")
    known.note(["a"], 1.0)
    known.save()
    assert known.seconds(["a"]) == 1


def test_the_oldest_names_are_forgotten(tmp_path):
    (tmp_path / FILE).write_text(json.dumps({str(number): [1.0] for number in range(MOST_NAMES)}))
    known = Timings(tmp_path)
    known.note(["0"], 2.0)
    known.note(["new"], 3.0)
    known.save()
    again = Timings(tmp_path)
    assert again.knows("0") and again.knows("new") and not again.knows("1") and again.knows("2")
