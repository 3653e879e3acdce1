"""One run over several devices: simulated ones, in a process of its own, as their number is fixed at its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from recombine import Fast, RunConfig
from recombine.errors import BadInput
from recombine.training.program import Program

SCRIPT = """
import json
import jax
import numpy as np
from recombine import MLP, Fast, RunConfig, SubsetSpace, train
from recombine.training.train import Trainer

config = RunConfig(
    space=SubsetSpace(modules=6, max_active=2),
    model=MLP(width=32, depth=2),
    recipe=Fast(steps=40, tasks=32),
    every=20,
    validation_tasks=32,
)


def weights(outcome):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(outcome.network)])


one, four = train(config), train(config, devices=4)
stacked = list(Trainer(devices=2).train([config, config.model_copy(update={"validation_tasks": 32})], lanes=2))
print(json.dumps({
    "devices": jax.device_count(),
    "apart": float(np.abs(weights(one) - weights(four)).max()),
    "moved": float(np.abs(weights(one)).max()),
    "stacked": float(np.abs(weights(one) - weights(stacked[0])).max()),
    "curves": [[point["loss"] for point in outcome.curves] for outcome in (one, four)],
}))
"""


def test_several_devices_give_what_one_gives():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    assert found["devices"] == 4
    assert found["moved"] > 0.1
    assert 0 <= found["apart"] < 1e-3 and found["stacked"] < 1e-3
    assert found["curves"][0] == pytest.approx(found["curves"][1], rel=1e-3)


def test_the_tasks_of_a_step_are_spread():
    """Each device computes on its share of the batch: seen in the shapes of the compiled products."""
    script = """
import re
import jax.numpy as jnp
from recombine import MLP, Fast, RunConfig, Setting, SubsetSpace
from recombine.training.program import Compiler, Program, stack

config = RunConfig(
    space=SubsetSpace(modules=6, max_active=2),
    model=MLP(width=24, depth=2),
    recipe=Fast(steps=4, tasks=32, samples=8),
    validation_tasks=1,
)
setting = Setting(config)
for devices in (1, 4):
    program = Program.of(config, 1, devices)
    state, lane, active = (program.place(stack([one])) for one in (setting.state(), setting.lane(), jnp.array(True)))
    text = Compiler().advance(program, state, lane, active).compiled.as_text()
    print(devices, *sorted(set(re.findall(r"f32\\[(?:1,)?(\\d+),24\\]", text)), key=int))
"""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    answer = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    rows = dict(line.split(" ", 1) for line in answer.stdout.splitlines())
    assert "256" in rows["1"].split()
    assert "64" in rows["4"].split() and "256" not in rows["4"].split()


def test_bad_numbers_of_devices_are_refused():
    with pytest.raises(BadInput, match="There are 1 devices here, not 3"):
        Program.of(RunConfig(recipe=Fast(tasks=9)), devices=3)
