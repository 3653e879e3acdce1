"""Workers take cores that no other worker has, as long as there are such, and no more memory than they may."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind processes")

HOLD = """
import sys
from pathlib import Path
from recombine.engines.worker import claim
print(*claim([0, 1, 2, 3, 4], int(sys.argv[1]), Path(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def test_cores_are_taken_once_until_there_are_no_more(tmp_path):
    def start(wanted: int) -> subprocess.Popen:
        command = [sys.executable, "-c", HOLD, str(wanted), str(tmp_path / "cores")]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def cores(process: subprocess.Popen) -> list[int]:
        return [int(word) for word in process.stdout.readline().split()]

    holders = []
    try:
        taken = []
        for wanted in (2, 2, 2):
            holders.append(start(wanted))
            taken.append(cores(holders[-1]))
        assert taken[:2] == [[0, 1], [2, 3]]
        assert 4 in taken[2] and len(set(taken[2])) == 2, "the last one shares what is not enough"
        # One that is killed gives its cores back.
        holders[0].kill()
        holders[0].wait()
        holders.append(start(2))
        assert cores(holders[-1]) == [0, 1]
    finally:
        for process in holders:
            process.kill()
            process.communicate()


COUNT = """
import sys, os
from recombine.engines.worker import limit_cores, limit_memory
limit_cores(1)
assert "jax" not in sys.modules and "numpy" not in sys.modules
from recombine.store.provenance import threads
print(threads())
limit_memory(100_000_000)
try:
    bytearray(200_000_000)
except MemoryError:
    print("refused")
"""


def test_the_execution_plan_shows_the_limit_and_memory_is_refused_beyond_it():
    answer = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["1", "refused"]
