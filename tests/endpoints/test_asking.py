"""Many questions: each answer is kept as it comes, and what failed is asked again."""

from __future__ import annotations

import json
import threading
import time

import pytest

from recombine.endpoints.answer_cache import AnswerCache
from recombine.endpoints.asking import ERROR, GIVE_UP, ask_items, without_secrets
from recombine.endpoints.chat import RequestFailed, Unavailable
from recombine.endpoints.embers_audit import audit_embers
from recombine.endpoints.function import load_function, source_version
from recombine.errors import BadInput
from recombine.language.items import make_items

ITEMS = make_items(1, tasks=["decode", "encode"])
RIGHT = {item.prompt: item.answer for item in ITEMS}


@pytest.fixture
def kept(tmp_path):
    made = AnswerCache(tmp_path / "out")
    made.begin({"model": "a"})
    return made


def right(prompt):
    return RIGHT[prompt]


@pytest.mark.parametrize("at_once", [1, 5])
def test_all_are_asked_once(kept, at_once):
    asked = []

    def ask(prompt):
        asked.append(prompt)
        return right(prompt) if prompt == ITEMS[0].prompt else "no"

    assert ask_items(ITEMS, ask, kept, at_once=at_once) == []
    assert sorted(asked) == sorted(RIGHT) and len(ITEMS) == 12
    found = kept.read()
    assert [found[item.name]["correct"] for item in ITEMS] == [True] + [False] * 11
    assert found[ITEMS[1].name]["said"] == "no"
    assert ask_items(ITEMS, ask, kept, at_once=at_once) == [] and len(asked) == 12


def test_several_are_under_way_at_once(kept):
    together = threading.Barrier(4, timeout=10)

    def ask(prompt):
        together.wait()
        return "no"

    assert ask_items(ITEMS, ask, kept, at_once=4) == []


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_fails_is_recorded_and_asked_again(kept, at_once):
    bad = {ITEMS[2].prompt: RequestFailed("odd"), ITEMS[5].prompt: RuntimeError("x" * 999)}

    def ask(prompt):
        if prompt in bad:
            raise bad[prompt]
        return None if prompt == ITEMS[7].prompt else right(prompt)

    notes = ask_items(ITEMS, ask, kept, at_once=at_once)
    assert "3 of 12 items have no answer" in notes[0] and "The same command" in notes[-1]
    assert "the answer is a NoneType, not text" in notes[0]
    held = kept.read()
    assert held[ITEMS[2].name]["correct"] is None and held[ITEMS[2].name]["error"] == "odd"
    assert len(held[ITEMS[5].name]["error"]) == ERROR
    asked = []
    assert ask_items(ITEMS, lambda prompt: asked.append(prompt) or right(prompt), kept) == []
    assert sorted(asked) == sorted(ITEMS[place].prompt for place in (2, 5, 7))
    assert all(record["correct"] for record in kept.read().values())


@pytest.mark.parametrize("at_once", [1, 3])
def test_one_that_is_gone_is_left_alone(kept, at_once):
    asked = []

    def ask(prompt):
        asked.append(prompt)
        raise Unavailable("nobody")

    notes = ask_items(ITEMS, ask, kept, at_once=at_once)
    assert GIVE_UP <= len(asked) < len(ITEMS)
    assert (
        notes[0]
        == "12 of 12 items have no answer (9 of them were not asked, because there was no reply to 3 questions in a row): nobody."
    )
    # Those never asked come first next time.
    time.sleep(0.05)
    failed = set(kept.read())
    again = []
    ask_items(ITEMS, lambda prompt: again.append(prompt) or "no", kept)
    names = {item.prompt: item.name for item in ITEMS}
    assert [names[prompt] in failed for prompt in again] == sorted(names[one] in failed for one in again)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("error", [RequestFailed("HTTP 404"), ZeroDivisionError("of \x1b[31mnought"), SystemExit(3)])
def test_where_nothing_is_answered_at_all_few_are_asked(kept, at_once, error):
    asked = []

    def ask(prompt):
        asked.append(prompt)
        raise error

    notes = ask_items(ITEMS, ask, kept, at_once=at_once)
    assert len(asked) == GIVE_UP if at_once == 1 else GIVE_UP <= len(asked) < len(ITEMS)
    assert "12 of 12 items" in notes[0] and "because none of the first 3 was answered): " in notes[0]
    assert "\x1b" not in notes[0] and type(error).__name__ in notes[0] + "RequestFailed"
    time.sleep(0.05)
    failed = set(asked)
    # Again, others come first: what is wrong may be with the first items only.
    asked.clear()
    ask_items(ITEMS, ask, kept)
    assert len(asked) == GIVE_UP and not failed & set(asked[: len(ITEMS) - len(failed)])
    assert ask_items(ITEMS, right, kept, at_once=at_once) == []


def test_once_there_is_an_answer_each_is_asked(kept):
    number = iter(range(100))

    def ask(prompt):
        if next(number):
            raise RequestFailed("HTTP 400")
        return "no"

    for _ in range(2):
        notes = ask_items(ITEMS, ask, kept)
        assert len(kept.read()) == 12 and notes[0] == "11 of 12 items have no answer: HTTP 400."
    assert next(number) == 1 + 11 + 11


def test_an_error_now_and_then_is_not_being_gone(kept):
    number = iter(range(100))

    def ask(prompt):
        if next(number) % 3:
            raise Unavailable("busy")
        return "no"

    notes = ask_items(ITEMS, ask, kept)
    assert len(kept.read()) == 12 and not any("in a row" in note for note in notes)


def test_an_interrupt_loses_nothing(kept):
    """The main thread is interrupted while others are asking."""
    done = []

    def on(what, share):
        done.append(share)
        if len(done) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_items(ITEMS, right, kept, at_once=4, on=on)
    assert len(kept.read()) >= 5
    asked = []
    time.sleep(0.05)
    before = len(kept.read())
    ask_items(ITEMS, lambda prompt: asked.append(prompt) or right(prompt), kept)
    assert len(asked) == 12 - before and len(kept.read()) == 12


def test_errors_of_the_disk_are_raised(kept, monkeypatch):
    def full(record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "add", full)
    for at_once in (1, 3):
        with pytest.raises(OSError, match="No space"):
            ask_items(ITEMS, right, kept, at_once=at_once)


def test_what_is_kept_is_cut_and_has_no_secrets(kept, monkeypatch):
    monkeypatch.setenv("SOME_API_TOKEN", "hush-hush")

    def ask(prompt):
        if prompt == ITEMS[0].prompt:
            raise RuntimeError("the token hush-hush is wrong")
        return "hush-hush \ud800" + "y" * 5000

    notes = ask_items(ITEMS, ask, kept)
    text = kept.answers.read_text()
    assert "hush-hush" not in text + " ".join(notes) and "[key]" in text
    assert kept.read()[ITEMS[1].name]["said"].startswith("[key] ?yy")
    assert max(len(record["said"]) for record in kept.read().values()) == 500
    assert without_secrets("plain") == "plain"


def test_a_line_that_was_cut_off_does_not_count(kept):
    kept.add({"item": "a", "correct": True})
    with open(kept.answers, "a") as file:
        file.write('{"item": "b", "corr')
    kept.add({"item": "c", "correct": True})
    with open(kept.answers, "a") as file:
        file.write('[]\n{"item": 3}\n\xff\n')
    assert set(kept.read()) == {"a", "c"}


def test_other_settings_are_refused_once_there_are_answers(kept):
    kept.begin({"model": "b"})
    kept.add({"item": "a", "correct": True})
    kept.begin({"model": "b"})
    with pytest.raises(BadInput, match=r"model 'b' \(now 'a'\)"):
        kept.begin({"model": "a"})


def test_folders_that_are_no_audits_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="not empty"):
        AnswerCache(tmp_path).begin({})
    with pytest.raises(BadInput, match="is a file"):
        AnswerCache(tmp_path / "file").begin({})


def test_settings_that_were_damaged_are_told(kept):
    place = kept.path / "settings.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"model": "c"}))
    with pytest.raises(BadInput, match="damaged"):
        kept.check({"model": "a"})


def test_functions_by_name(tmp_path, monkeypatch):
    (tmp_path / "my_llm_module.py").write_text("def say(prompt): return 'a'\nword = 3\n")
    (tmp_path / "my_raising_llm.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = load_function("my_llm_module:say")
    assert found("x") == "a" and len(source_version(found)) == 16 and source_version(len) == ""
    for spec, said in (
        ("my_llm_module:word", "not a function"),
        ("my_llm_module:none", "cannot be imported"),
        ("my_raising_llm:f", "cannot be imported"),
        ("no_such_module:f", "cannot be imported"),
        ("word", "not understood"),
        (":f", "not understood"),
    ):
        with pytest.raises(BadInput, match=said):
            load_function(spec)


def test_at_least_one_at_once(kept):
    with pytest.raises(BadInput, match="At least one"):
        ask_items(ITEMS, right, kept, at_once=0)


def test_a_result_shows_itself(tmp_path):
    result = audit_embers(right, ITEMS, tmp_path / "out", {"model": "<b>\x1b"})
    assert repr(result) == r"EmbersAudit('<b>\\x1b', 12 items, 12 answered)"
    page = result._repr_html_()
    assert "&lt;b&gt;" in page and "<b>\x1b" not in page and "verdict" in page
