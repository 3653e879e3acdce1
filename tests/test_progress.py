"""The one progress bar: silent when work is quick, lines in logs, a bar in a terminal."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from recombine import progress
from recombine.progress import ProgressBar
from recombine.training.outcome import Outcome
from recombine.training.prepare import Setting
from recombine.training.progress import ProgressDisplay


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 1e-6)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)


def said(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def settle(on: ProgressBar) -> None:
    """The timer speaks from a thread of its own."""
    on._timer.join(5)


def test_work_that_is_soon_done_is_not_told(capsys):
    with ProgressBar("planning") as on:
        on("planning", 0.5)
    assert said(capsys) == []


def test_slow_work_tells_its_stage_and_the_time_left(hurried, capsys):
    with ProgressBar("reading") as on:
        settle(on)
        time.sleep(0.02)
        on("fitting")
        on("fitting", 0.25)
    lines = said(capsys)
    assert lines[:2] == ["reading ...", "fitting ..."]
    assert re.fullmatch(r"fitting \.\.\. 25%, about \d+ s left", lines[2])


def test_lines_come_now_and_then_and_at_once_for_a_new_stage(hurried, monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 1000.0)
    with ProgressBar("reading") as on:
        settle(on)
        for share in (0.1, 0.2, 0.3):
            on("fitting", share)
    assert len(said(capsys)) == 2


def test_quiet_says_nothing(hurried, capsys):
    with ProgressBar("planning", quiet=True) as on:
        on("planning", 0.5)
    assert said(capsys) == []


def test_names_from_data_do_not_act_on_the_terminal(hurried, capsys):
    with ProgressBar("\x1b[2Jscore") as on:
        settle(on)
    assert "\x1b" not in "".join(said(capsys))


def test_nothing_is_said_after_the_end(hurried, capsys):
    with ProgressBar("planning") as on:
        settle(on)
    capsys.readouterr()
    on("planning", 0.9)
    assert said(capsys) == []


def test_counts_have_their_unit_and_a_note(hurried, capsys):
    with ProgressBar("checking", unit="runs", patience=0.0) as bar:  # No timer: it would race with `start`.
        bar.start("training 2 runs", 1000, "steps")
        bar.update(250, note="in 0.900")
        bar.rename("training 1/2 runs")
        bar.update(500, 800)
    lines = said(capsys)
    assert lines[0] == "training 2 runs ... 1,000 steps"
    assert re.fullmatch(r"training 2 runs \.\.\. 250 of 1,000 steps, about \d+ s left; in 0.900", lines[1])
    assert lines[-1].startswith("training 1/2 runs ... 500 of 800 steps, about ")


def test_a_terminal_shows_a_bar_and_keeps_messages(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar("checking", unit="runs", patience=0.0) as bar:
        bar.update(3, 4)
        bar._bar.refresh()
        bar.message("run abc failed")
        bar.start("[b]measuring", 7, "measurements")
        bar.update(2, note="\x1b[2J")
        bar._bar.refresh()
    text = screen.getvalue()
    assert "3 of 4 runs" in text and "2 of 7 measurements" in text and "run abc failed" in text
    assert "[b]measuring" in text and "\x1b[2J" not in text and "\\x1b[2J" in text


def test_training_and_measurements_are_one_display(tiny, monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    config = tiny()
    network = Setting(config).network()
    failed = Outcome(config, network, [], 10, 1.0, 0.0, None, failed_at=10, stack_size=1)
    with ProgressDisplay() as display:
        display.started(2, 60)
        display.compiling(config)
        display.stepped(10, config, {"step": 10, "score_in": 0.5, "score_held_out": 0.25})
        display.finished(failed)
        display.measuring(0, 4)
        display.measuring(4, 4)
    text = "\n".join(said(capsys))
    for words in (
        "training 2 runs ... 60 steps",
        "10 of 60 steps",
        "in 0.500  held out 0.250",
        f"run {config.run_id} failed: its loss was not finite at step 10",
        "training 1/2 runs ... 10 of 40 steps",
        "measuring ... 4 measurements",
        "4 of 4 measurements",
    ):
        assert words in text
    with ProgressDisplay(quiet=True) as display:
        display.started(2, 60)
    assert said(capsys) == []
