"""Output that fails: a closed pipe or a full disk behind standard output or error ends no training and gives no traceback."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from pathlib import Path

import pytest

from recombine.store.store import Store


class Failing(io.StringIO):
    """A stream that accepts some texts, then fails."""

    def __init__(self, code: int, after: int = 0) -> None:
        super().__init__()
        self.code, self.left = code, after

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(self.code, "No space left on device" if self.code == errno.ENOSPC else "Broken pipe")
        return super().write(text)


def called(monkeypatch, out, err, *arguments) -> int:
    from recombine.cli.main import _guarded

    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    return _guarded([str(argument) for argument in arguments])


@pytest.mark.parametrize("code", [errno.EPIPE, errno.ENOSPC])
@pytest.mark.parametrize("after", [0, 1])
def test_standard_error_that_fails_changes_nothing(cli, small_run, tmp_path, monkeypatch, code, after):
    out = io.StringIO()
    command = ("train", "hyperteacher", *small_run, "--store", tmp_path / "store")
    assert called(monkeypatch, out, Failing(code, after), *command) == 0
    assert "r2_in" in out.getvalue() and len(Store(tmp_path / "store").run_ids()) == 1


def test_standard_output_on_a_full_disk_is_said_and_the_work_is_done(cli, small_run, tmp_path, monkeypatch):
    err = io.StringIO()
    command = ("train", "hyperteacher", *small_run, "--store", tmp_path / "store")
    assert called(monkeypatch, Failing(errno.ENOSPC), err, *command) == 1
    assert "Standard output cannot be written: No space left on device" in err.getvalue()
    assert len(Store(tmp_path / "store").run_ids()) == 1


def test_a_reader_that_left_is_no_error(cli, monkeypatch):
    err = io.StringIO()
    assert called(monkeypatch, Failing(errno.EPIPE), err, "ls", "families") == 0 and err.getvalue() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full")
@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">/dev/full", 1), (">/dev/full 2>/dev/full", 1), ("| true", 0), (">&- 2>&-", 0), ("2>&- | head -c 1", 0)],
)
def test_real_streams_that_fail_give_no_traceback(redirection, code):
    line = f"set -o pipefail; {sys.executable} -m recombine ls families {redirection}"
    answer = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert answer.returncode == code and "Traceback" not in answer.stderr and "Exception" not in answer.stderr


def test_a_closed_standard_error_never_becomes_a_file_of_the_store(tmp_path):
    # The first file that is opened would get number 2, and what a library writes there would be in it.
    program = """
import os, sys
os.close(2)
from recombine.cli.streams import open_closed_streams
open_closed_streams()
with open(sys.argv[1], "wb") as file:
    assert file.fileno() > 2
    os.write(2, b"a warning of a library")
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True)
    assert (tmp_path / "file").read_bytes() == b""
