"""Ctrl-C: finished runs are kept, the exit code is 130, a line says how to go on, and going on works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from recombine.store.store import Store

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


def test_with_json_an_interrupt_is_one_document_too(cli, small_run, monkeypatch):
    from recombine.training.trainer import Trainer

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train", interrupted)
    answer = cli("train", "hyperteacher", *small_run, "--json")
    assert answer.code == 130
    assert answer.document["exit_code"] == 130 and "again" in answer.document["fix"]
    assert "next: run the same command again" in answer.err
