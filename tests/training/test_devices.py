"""One run over several devices: simulated ones, in a process of its own, as their number is fixed at its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from recombine import RunConfig
from recombine.errors import BadInput
from recombine.recipes import Fast
from recombine.training.program import Program

SCRIPT = """
import json, re
import jax
import numpy as np
from recombine import RunConfig, SubsetSpace
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.training.trainer import Trainer

config = RunConfig(
    space=SubsetSpace(modules=6, max_active=2),
    model=MLP(width=24, depth=2),
    recipe=Fast(steps=40, tasks=32, samples=8),
    eval_every=20,
    validation_tasks=3,
)


def weights(outcome):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(outcome.network)])


def row_counts(trainer):
    (advance,) = trainer.compiler._compiled.values()
    return sorted({int(rows) for rows in re.findall(r"f32\\[(?:1,)?(\\d+),24\\]", advance.compiled.as_text())})


trainers = [Trainer(devices=devices) for devices in (1, 4)]
one, four = (next(trainer.train([config], stack_size=1)) for trainer in trainers)
stacked = list(Trainer(devices=2).train([config, config.replace(validation_tasks=3)], stack_size=2))
print(json.dumps({
    "devices": jax.device_count(),
    "apart": float(np.abs(weights(one) - weights(four)).max()),
    "moved": float(np.abs(weights(one)).max()),
    "stacked": float(np.abs(weights(one) - weights(stacked[0])).max()),
    "curves": [[point["loss"] for point in outcome.curves] for outcome in (one, four)],
    "rows": [row_counts(trainer) for trainer in trainers],
}))
"""


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """One run on one device, on four, and stacked on two; in one process."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_several_devices_give_what_one_gives(answer: dict[str, Any]):
    assert answer["devices"] == 4
    assert answer["moved"] > 0.1
    assert 0 <= answer["apart"] < 1e-3 and answer["stacked"] < 1e-3
    assert answer["curves"][0] == pytest.approx(answer["curves"][1], rel=1e-3)


def test_the_tasks_of_a_step_are_spread(answer: dict[str, Any]):
    """Each device computes on its share of the batch: the shapes of the compiled products show it."""
    alone, spread = answer["rows"]
    assert 256 in alone
    assert 64 in spread and 256 not in spread


def test_bad_numbers_of_devices_are_refused():
    with pytest.raises(BadInput, match="There are 1 devices here, not 3"):
        Program.of(RunConfig(recipe=Fast(tasks=9)), devices=3)
