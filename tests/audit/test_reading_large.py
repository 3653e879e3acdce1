"""A large table is counted by the database: Python never holds its rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CHILD = """
import json, resource, sys, time
from recombine.audit.reading.read import read_cells
read_cells(sys.argv[2], factors=["colour", "object"], scores=["quality"])  # What the libraries take by themselves.
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.monotonic()
cells = read_cells(sys.argv[1], factors=["colour", "object"], scores=["success", "quality"], where="quality > 0.1", memory=128 * 2**20)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cells": len(cells.count), "rows": int(cells.count.sum()), "mean": float(cells.mean[:, 1].mean()),
                  "extra": (after - before) / 1024, "peak": after / 1024, "seconds": time.monotonic() - began}))
"""

BLOCK = 20_000
"""Rows that are written again and again."""


def write(path: Path, megabytes: int) -> tuple[int, int]:
    """A table of about that size; its combinations and the rows that the filter keeps."""
    rng = np.random.default_rng(0)
    colour, thing = rng.integers(0, 12, BLOCK), rng.integers(0, 80, BLOCK)
    quality = np.round(rng.random(BLOCK), 4)
    block = "".join(
        f'colour {c},"object, number {o}",a longer prompt that nobody asks for {n},{q:.4f},{n % 2}\n'
        for n, (c, o, q) in enumerate(zip(colour, thing, quality, strict=True))
    ).encode()
    times = megabytes * 10**6 // len(block) + 1
    with path.open("wb") as stream:
        stream.write(b"colour,object,prompt,quality,success\n")
        for _ in range(times):
            stream.write(block)
    kept = quality > 0.1
    return len({*zip(colour[kept].tolist(), thing[kept].tolist(), strict=True)}), int(kept.sum()) * times


def check(folder: Path, megabytes: int, extra: float) -> None:
    number, rows = write(folder / "big.csv", megabytes)
    (folder / "small.csv").write_text("colour,object,quality\nred,x,1\nblue,x,0\n")
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder / "big.csv"), str(folder / "small.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    said = json.loads(answer.stdout)  # Nothing else is on standard output, no progress bar either.
    assert said["cells"] == number and said["rows"] == rows
    assert said["extra"] < extra, said


def test_20_megabytes(tmp_path):
    check(tmp_path, 20, extra=160)


@pytest.mark.slow
def test_200_megabytes_take_no_more_memory(tmp_path):
    check(tmp_path, 200, extra=160)
