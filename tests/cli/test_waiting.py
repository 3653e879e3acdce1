import re
import time

import pytest

from recombine.cli import waiting
from recombine.cli.waiting import Waiting


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "LINE_SECONDS", 0.0)


def said(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def settle(on: Waiting) -> None:
    """The timer speaks from a thread of its own."""
    on._timer.join(5)


def test_work_that_is_soon_done_is_not_told(capsys):
    with Waiting("planning") as on:
        on("planning", 0.5)
    assert said(capsys) == []


def test_slow_work_tells_its_stage_and_the_time_left(hurried, capsys):
    with Waiting("reading") as on:
        settle(on)
        time.sleep(0.02)
        on("fitting")
        on("fitting", 0.25)
    lines = said(capsys)
    assert lines[:2] == ["reading ...", "fitting ..."]
    assert re.fullmatch(r"fitting \.\.\. 25%, about \d+ s left", lines[2])


def test_lines_come_now_and_then_and_at_once_for_a_new_stage(hurried, monkeypatch, capsys):
    monkeypatch.setattr(waiting, "LINE_SECONDS", 1000.0)
    with Waiting("reading") as on:
        settle(on)
        for share in (0.1, 0.2, 0.3):
            on("fitting", share)
    assert len(said(capsys)) == 2


def test_quiet_says_nothing(hurried, capsys):
    with Waiting("planning", quiet=True) as on:
        on("planning", 0.5)
    assert said(capsys) == []


def test_names_from_data_do_not_act_on_the_terminal(hurried, capsys):
    with Waiting("\x1b[2Jscore") as on:
        settle(on)
    assert "\x1b" not in "".join(said(capsys))


def test_nothing_is_said_after_the_end(hurried, capsys):
    with Waiting("planning") as on:
        settle(on)
    capsys.readouterr()
    on("planning", 0.9)
    assert said(capsys) == []
