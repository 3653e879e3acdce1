"""What `make torture` does a hundred times, a few times over: sweeps that are killed, race, and run out of disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "torture" / "run.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="process groups, and disks in memory")
def test_a_little_torture(tmp_path):
    numbers = ["--kills", "3", "--races", "1", "--disks", "1", "--seed", "5"]
    # Programs compiled by earlier tests are not used: what killed processes leave in that folder is tried too.
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, str(TORTURE), *numbers, "--quick", "--disks-if-permitted"],
        capture_output=True,
        text=True,
        timeout=3000,
        env=environment,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "NOT KEPT" not in answer.stdout and "3 times, over" in answer.stdout
    assert list(tmp_path.iterdir()) == []
