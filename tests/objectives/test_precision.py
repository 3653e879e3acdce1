"""bfloat16 products: weights stay in float32, and training goes nearly as well."""

from __future__ import annotations

import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine import RunConfig, SubsetSpace, train
from recombine.models import MLP
from recombine.models.transformer import Transformer
from recombine.recipes import Fast
from recombine.training.config import FORMAT
from recombine.training.prepare import Setting
from recombine.training.program import Program

SPACE = SubsetSpace(modules=6, max_active=2)
K_HOT = {"kind": "hyperteacher", "coefficients": "k-hot"}


def config(precision: str, **changes: object) -> RunConfig:
    parts = {"space": SPACE, "model": MLP(width=32, depth=2)} | changes
    return RunConfig.model_validate(
        parts | {"recipe": Fast(steps=60, tasks=32, precision=precision), "validation_tasks": 32}  # type: ignore[arg-type]
    )


def test_weights_stay_in_float32_and_the_score_hardly_moves():
    whole, half = train(config("float32")), train(config("bfloat16"))
    assert {leaf.dtype for leaf in jax.tree.leaves(half.network)} == {jnp.dtype("float32")}
    assert half.curves[-1]["score_in"] == pytest.approx(whole.curves[-1]["score_in"], abs=0.05)
    assert half.curves != whole.curves


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"encoding": "sentences", "space": {"kind": "product", "factors": {"a": 3, "b": 3}}, "family": K_HOT},
        {"model": Transformer(width=32, layers=1, heads=2)},
    ],
    ids=["mlp", "reader", "transformer"],
)
def test_a_gradient_in_half_precision_points_the_same_way(changes: dict[str, object]):
    states = []
    for precision in ("float32", "bfloat16"):
        one = config(precision, **changes)
        setting = Setting(one)
        after, _ = jax.jit(Program.of(one)._step)(setting.state(), setting.arrays())
        before = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(setting.state().network)])
        states.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(after.network)]) - before)
    whole, half = states
    assert whole @ half / np.linalg.norm(whole) / np.linalg.norm(half) > 0.9


def test_precision_is_part_of_the_run_and_older_runs_keep_their_names():
    assert config("bfloat16").run_id != config("float32").run_id
    assert "precision" not in config("float32").recipe.meaning()
    assert config("bfloat16").recipe.meaning()["precision"] == "bfloat16"
    # What the default run's name hashes is what it hashed before precision existed.
    default = RunConfig()
    parts = default.components().items()
    hashed = {
        "format": FORMAT,
        "config": default.dump() | {name: part.meaning() for name, part in parts},
        "versions": {name: part.version for name, part in parts},
    }
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    assert "precision" not in text
    assert default.run_id == hashlib.sha256(text.encode()).hexdigest()[:16]
