"""An audit of a table that is larger than the memory it may take: against just counting its rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from measuring import row

GIGABYTES = float(os.environ.get("BENCH_TABLE_GB", "5"))
CAP = 512 * 2**20
"""What the database may take."""
BLOCK = 50_000
"""Rows that are written again and again."""

COUNT = """
import duckdb, json, resource, sys, time
began = time.perf_counter()
connection = duckdb.connect(config={"memory_limit": f"{int(sys.argv[2]) // 2**20}MiB"})
connection.execute("SET enable_progress_bar = false")
rows = connection.execute("SELECT count(*) FROM read_csv(?)", [sys.argv[1]]).fetchone()[0]
print(json.dumps({"rows": rows, "seconds": time.perf_counter() - began,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
AUDIT = """
import json, resource, sys, time
from recombine.audit import audit_table
began = time.perf_counter()
found = audit_table(sys.argv[1], factors=["colour", "object"], scores=["success"], split=("split", "train"), memory=int(sys.argv[2]))
print(json.dumps({"rows": found.rows, "combinations": found.combinations, "seconds": time.perf_counter() - began,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def auditing() -> None:
    """A CSV of five gigabytes (BENCH_TABLE_GB), read under a memory cap of half of one."""
    with tempfile.TemporaryDirectory() as folder:
        free = shutil.disk_usage(folder).free
        if free < 1.2e9 * GIGABYTES:
            row(f"audit of {GIGABYTES:g} GB", "not measured", f"{free / 1e9:.1f} GB free where temporary files go")
            return
        path = Path(folder) / "table.csv"
        size = _write(path)
        plain, ours = _child(COUNT, path), _child(AUDIT, path)
        assert ours["rows"] == plain["rows"]
    row(
        f"audit of a CSV of {size / 1e9:.1f} GB",
        f"{ours['seconds'] / plain['seconds']:.1f} x the time of counting its rows",
        f"{ours['seconds']:.0f} s, {ours['rows']:,} rows, peak {ours['peak']:.0f} MiB where the database may take "
        f"{CAP // 2**20} (counting: {plain['peak']:.0f} MiB)",
    )


def _write(path: Path) -> int:
    rng = np.random.default_rng(0)
    colour, thing = rng.integers(0, 12, BLOCK), rng.integers(0, 80, BLOCK)
    chance = 0.9 - 0.5 * ((colour + thing) % 5 == 0)
    success = (rng.random(BLOCK) < chance).astype(int)
    block = "".join(
        f'colour {c},"object, number {o}",a longer prompt that nobody asks for {n},{s},{"test" if (c + o) % 5 == 0 else "train"}\n'
        for n, (c, o, s) in enumerate(zip(colour, thing, success, strict=True))
    ).encode()
    with path.open("wb") as stream:
        stream.write(b"colour,object,prompt,success,split\n")
        for _ in range(int(GIGABYTES * 1e9 / len(block)) + 1):
            stream.write(block)
    return path.stat().st_size


def _child(code: str, path: Path) -> dict[str, float]:
    """In a process of its own, so that the peak of memory is its own."""
    answer = subprocess.run(
        [sys.executable, "-c", code, str(path), str(CAP)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(answer.stdout)
