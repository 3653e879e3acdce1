"""Starting the viewer: what is refused before it listens, and where it listens."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from recombine.errors import BadInput, StoreError
from recombine.view.serve import listen, serve


def test_a_port_in_use_is_refused():
    with listen(0) as taken:
        with pytest.raises(BadInput, match="cannot be used") as error:
            listen(taken.getsockname()[1])
        assert "--port 0" in str(error.value)


def test_it_listens_on_loopback_only():
    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert listener.family == socket.AF_INET


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        serve(tmp_path / "file", port=0)
    with pytest.raises(StoreError, match="no store"):
        serve(tmp_path, port=0)
    with pytest.raises(BadInput, match="no folder"):
        serve(tmp_path / "new", port=0, evidence=[tmp_path / "nothing"])


def test_the_command_prints_its_link_and_ends_with_an_interrupt(tmp_path):
    command = [sys.executable, "-m", "recombine", "view", "--store", str(tmp_path / "new"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        link = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S{20,}", line)
        assert link, line
        request = urllib.request.Request(link[0])
        with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(request, timeout=60) as answer:
            assert b"recombine" in answer.read() and "token" not in answer.url
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not (tmp_path / "new").exists(), "looking creates nothing"
