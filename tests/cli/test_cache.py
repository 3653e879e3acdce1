"""Compiled programs outlive the process: a second start compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import collections, json, sys
import jax
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: seen.update([event]))
from recombine.cli.main import app
try:
    app([*sys.argv[1:], "--json"])
except SystemExit:
    pass
print(json.dumps(seen), file=sys.stderr)
"""

SMALL = (
    *("train", "hyperteacher", "model.width=8", "model.depth=1", "recipe.steps=4", "recipe.tasks=4"),
    *("space.modules=6", "space.max_active=2", "validation_tasks=4"),
)


def start(cache: Path, *arguments: str) -> tuple[int, int]:
    """A new process; how many programs it found in the cache, and how many it had to compile."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        env=environment | {"XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(answer.stderr.splitlines()[-1])
    event = "/jax/compilation_cache/cache_"
    return seen.get(f"{event}hits", 0), seen.get(f"{event}misses", 0)


def test_a_second_start_compiles_nothing(tmp_path: Path):
    found, compiled = start(tmp_path, *SMALL, "--store", str(tmp_path / "one"))
    assert found == 0 and compiled > 0
    found_again, compiled_again = start(tmp_path, *SMALL, "seeds.teacher=7", "--store", str(tmp_path / "two"))
    assert (found_again, compiled_again) == (compiled, 0)
