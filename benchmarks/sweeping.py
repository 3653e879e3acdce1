"""A sweep of many small runs: what is not training?"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import row

SWEEP = """
import json, sys, time
begin = time.perf_counter()
from recombine import LocalEngine, RunConfig, Seeds, Store
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.supports import Random
from recombine.probes import Scores
from recombine.training.trainer import Trainer
configs = [
    RunConfig(
        support=Random(number=number, reserve=200),
        model=MLP(width=128, depth=2),
        recipe=Fast(steps=600),
        eval_every=100,
        seeds=Seeds.replicate(seed),
    )
    for number in (40, 80, 160, 320)
    for seed in range(int(sys.argv[2]))
]
started = time.perf_counter()
sweep = LocalEngine().run(Store(sys.argv[1]), configs)
print(json.dumps({
    "start-up": started - begin,
    "compiling": sweep.compile_seconds,
    "training": sweep.train_seconds,
    "all": time.perf_counter() - begin,
    "compilations": sweep.compilations,
}))
"""


SYNCING = """
import os, time
spent, real = [0.0, 0], os.fsync
def fsync(handle):
    begin = time.perf_counter()
    real(handle)
    spent[0] += time.perf_counter() - begin
    spent[1] += 1
os.fsync = fsync
"""


def syncing() -> None:
    """The share of a sweep of 48 small runs that waits for the disk, so that a loss of power loses nothing."""
    with tempfile.TemporaryDirectory() as folder:
        program = SYNCING + SWEEP + "print(json.dumps(spent + [time.perf_counter() - begin]))"
        command = [sys.executable, "-c", program, f"{folder}/runs", "12"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    spent, number, whole = json.loads(answer.stdout.splitlines()[-1])
    row(
        "syncing, 48 small runs", f"{spent / whole:.1%} of the sweep", f"{spent:.2f} s of {whole:.1f} s, {number} syncs"
    )


def _run(folder: Path, replicates: int, cache: Path) -> dict[str, float]:
    import os

    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(cache)}
    begin = time.perf_counter()
    answer = subprocess.run(
        [sys.executable, "-c", SWEEP, str(folder), str(replicates)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = json.loads(answer.stdout.splitlines()[-1])
    return found | {"process": time.perf_counter() - begin}


def sweep() -> None:
    """48 runs, four sizes of support, 12 replicates, with an empty cache of compiled programs and with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("an empty cache", "a full cache"):
            found = _run(place / name.replace(" ", "-"), 12, place / "cache")
            other = found["process"] - found["training"]
            storing = found["all"] - found["start-up"] - found["compiling"] - found["training"]
            row(
                f"sweep of 48 runs, 2 x 128, 600 steps, {name}",
                f"{other / found['process']:.3f} of the time is not training",
                f"of {found['process']:.0f} s: start-up {found['process'] - found['all'] + found['start-up']:.1f}, compiling "
                f"{found['compiling']:.1f} ({found['compilations']} programs), storing and drawing {storing:.1f}",
            )
        # One run a process start is the price without a sweep; here: training alone, in the same program.
        alone = _run(place / "alone", 1, place / "cache")
        row("  a run of it", f"{(alone['training'] / 4) / (found['training'] / 48):.2f} x as fast as in a sweep of 4")
