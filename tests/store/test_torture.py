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
    numbers = ["--kills", "3", "--races", "1", "--disks", "1", "--power-cuts", "1", "--containers", "1", "--seed", "5"]
    numbers += ["--interrupts", "3", "--outputs", "2", "--damages", "6", "--ray-nodes", "0"]  # test_ray.py loses nodes.
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
    assert "NOT KEPT" not in answer.stdout + answer.stderr and "over 1 sweeps" in answer.stdout
    assert list(tmp_path.iterdir()) == []
