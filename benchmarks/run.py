"""What `make bench` runs: ratios, each from one run on one machine. Nothing here is asserted in a test."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from auditing import auditing
from engine import engine
from latents import latents
from measuring import print_table, row, seconds, side_by_side
from planning import planning
from puzzles import puzzles
from recipes import recipes
from recombine.probes.ridge import RidgePath
from recombine.store.provenance import machine, threads, versions
from sequences import sequences
from spaces import spaces
from stores import stores
from sweeping import sweep, syncing


def probes() -> None:
    """The exact ridge path against scikit-learn's Ridge, nine strengths, on the same arrays."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(2000, 256)), rng.normal(size=(2000, 16))
    strengths = [10.0**power for power in range(-4, 5)]

    def ours() -> list[Any]:
        path = RidgePath(features, targets)
        return [path.weights(strength) for strength in strengths]

    def theirs() -> list[Any]:
        return [Ridge(alpha=strength).fit(features, targets).coef_ for strength in strengths]

    mine, other = side_by_side([ours, theirs])
    row("ridge, 9 strengths, 2000 x 256", f"{other / mine:.1f} x as fast as scikit-learn")


def command_line() -> None:
    """`recombine --help` against starting Python."""

    def call(*arguments: str) -> float:
        return seconds(lambda: subprocess.run(arguments, capture_output=True, check=True).returncode)

    python = call(sys.executable, "-c", "pass")
    helped = call(sys.executable, "-m", "recombine.cli.main", "--help")
    row("recombine --help", f"{helped / python:.1f} x starting Python", f"{helped:.2f} s")


BENCHMARKS = {
    "engine": engine,
    "sequences": sequences,
    "puzzles": puzzles,
    "latents": latents,
    "recipes": recipes,
    "sweep": sweep,
    "syncing": syncing,
    "spaces": spaces,
    "probes": probes,
    "planning": planning,
    "auditing": auditing,
    "store": stores,
    "command-line": command_line,
}


def main() -> None:
    """The benchmarks that are named, or all, and the table."""
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
    print_table(machine() | {"threads": threads()} | versions())


if __name__ == "__main__":
    main()
