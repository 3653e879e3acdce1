"""Ctrl-C: finished runs are kept, the exit code is 130, a line says how to go on, and going on works."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from recombine import interrupts
from recombine.progress import ProgressBar
from recombine.store.store import Store
from recombine.training.trainer import Trainer

STEPS = 3_000
"""Of a tiny network: about a second a run, so that the signal comes in the middle of one."""

# A test that runs in the background may have been told to ignore this signal, and its children with it.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from recombine.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def study(small_study, tmp_path):
    settings = [*small_study, "replicates=1", f"steps={STEPS}"]
    return ["run", "data-scaling", "--profile", "smoke", *settings, "--store", str(tmp_path / "store")]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_finished_runs_and_the_same_command_goes_on(cli, study, tmp_path):
    command = [sys.executable, "-c", PROGRAM, *study]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "store" / "runs").glob("*/manifest.json")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "no run ended"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "Interrupted. Finished runs are kept." in err and "run the same command again to continue" in err
    assert "Traceback" not in err

    store = Store(tmp_path / "store")
    kept = {run: (store.folder(run) / "weights.safetensors").stat().st_mtime_ns for run in store.run_ids()}
    assert 1 <= len(kept) < 4 and store.problems == []

    # In this process, which has the programs that follow already.
    answer = cli(*study, "--json")
    assert answer.code == 0, answer.err
    document = answer.document
    assert document["sweep"]["found"] == len(kept) and document["sweep"]["trained"] == 4 - len(kept)
    assert len(document["verdicts"]) == 11
    for run, time_of_weights in kept.items():
        assert (store.folder(run) / "weights.safetensors").stat().st_mtime_ns == time_of_weights


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_term_makes_a_checkpoint_first_and_the_run_ends_with_the_same_bits(cli, small_run, tmp_path, monkeypatch):
    """In this process, which has the program already: the signal comes in the middle of a chunk."""
    settings = [*small_run, "steps=40"]
    assert cli("train", "hyperteacher", *settings, "--store", tmp_path / "whole").code == 0
    real, chunks = Trainer._record, []

    def signalled(self, run, evaluation):
        chunks.append(run.step)
        if len(chunks) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, run, evaluation)

    monkeypatch.setattr(Trainer, "_record", signalled)
    answer = cli("train", "hyperteacher", *settings, "--store", tmp_path / "store")
    assert answer.code == 143 and "Finished runs are kept." in answer.err
    assert len(chunks) == 2 and len(list((tmp_path / "store" / "checkpoints").glob("*.safetensors"))) == 1
    assert cli("train", "hyperteacher", *settings, "--store", tmp_path / "store").code == 0
    assert chunks[2:] == [20, 30], "it goes on from the checkpoint"
    files = [next((tmp_path / name / "runs").glob("*/weights.safetensors")) for name in ("whole", "store")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_that_a_library_drops_is_raised_again():
    with interrupts.installed():
        signal.signal(signal.SIGINT, interrupts._handle)  # Pytest in the background ignores it.
        with contextlib.suppress(KeyboardInterrupt):  # As a callback of a library would.
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.requested()
        with pytest.raises(KeyboardInterrupt):
            ProgressBar("reading").update(1)
    assert not interrupts.requested()


STUCK = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from recombine import interrupts
with interrupts.installed(), interrupts.deferred():
    print("ready", flush=True)
    while True:
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_at_once(number):
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        time.sleep(interrupts.TWICE_SECONDS + 0.2)
        assert process.poll() is None
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 128 + number and err == "Ended at once. Finished runs are kept.\n"


def test_with_json_an_interrupt_is_one_document_too(cli, small_run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train", interrupted)
    answer = cli("train", "hyperteacher", *small_run, "--json")
    assert answer.code == 130
    assert answer.document["exit_code"] == 130 and "again" in answer.document["fix"]
    assert "next: run the same command again" in answer.err
