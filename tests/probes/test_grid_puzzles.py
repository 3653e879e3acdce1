"""Outer steps and wrong identifiers, measured on networks whose answers are known."""

from __future__ import annotations

import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.models.recursive import Recursive, RecursiveNetwork, State
from recombine.overrides import apply, validate
from recombine.probes import OuterSteps, WrongIdentifier
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

STEPS = 4


class Scripted(RecursiveNetwork):
    """Copies the grid from step c on, where c is its first colour; stops from step 3 on. `tasks` copies it where the code is c - 1."""

    def embed(self, inputs: jax.Array, codes: jax.Array | None = None) -> jax.Array:
        return jnp.pad(inputs, ((0, 0), (0, 0), (0, 1)))

    def step(self, puzzle: jax.Array, state: State) -> State:
        return State(state.answer + 1, puzzle)

    def logits(self, state: State) -> jax.Array:
        known = state.answer[..., :1, :1] >= jnp.argmax(state.latent[..., :1, :], axis=-1)[..., None]
        return jnp.where(known, 1, -1) * state.latent[..., :11]

    def halting(self, state: State) -> jax.Array:
        return state.answer[..., 0, 0] - 2.5

    def tasks(self, codes: jax.Array, inputs: jax.Array) -> jax.Array:
        told = jnp.argmax(codes, axis=-1) == jnp.argmax(inputs[:, 0], axis=-1) - 1
        return jnp.where(told, 1, -1)[:, None, None] * inputs


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """Puzzle number p - 1 copies grids whose first colour is p."""
    folder = tmp_path_factory.mktemp("copies")
    for first in range(1, 7):
        pairs = [{"input": [[first, other]], "output": [[first, other]]} for other in range(10)]
        (folder / f"{first}.json").write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))
    changes = [f"family.folder={folder}", "augmentations=1", "model.width=12", "heads=2", f"model.steps={STEPS}"]
    return Setting(apply(validate(RunConfig, {"family": "arc"}), changes))


@pytest.fixture(scope="module")
def network(setting: Setting) -> Scripted:
    model = setting.config.model
    assert isinstance(model, Recursive)
    drawn: Any = model.draw(6, 11, 11, jax.random.key(0))
    drawn = eqx.tree_at(lambda own: own.start, drawn, State(jnp.zeros(12), jnp.zeros(12)))
    return Scripted(**{name: getattr(drawn, name) for name in drawn.__dataclass_fields__})


def first_colours(setting: Setting) -> np.ndarray:
    """Of the held-out grids that are scored: eight test pairs per puzzle follow two training pairs of each."""
    rows = setting.regions.require("held_out", 512, "test")[:, 0]
    assert len(rows) > 20
    return 1 + (rows - 12) // 8


def test_accuracy_after_each_step(setting: Setting, network: Scripted) -> None:
    first, found = first_colours(setting), OuterSteps(times=2).measure(setting, network)
    solved = [float((first <= step).mean()) for step in range(1, 2 * STEPS + 1)]
    np.testing.assert_allclose(found.columns["accuracy"], solved, atol=1e-6)
    assert found.columns["stops"] == [0, 0, 1, 1, 1, 1, 1, 1] and found.columns["step"] == list(range(1, 9))
    wanted = {"first": solved[0], "last": solved[3], "beyond": 1.0, "halted": solved[2]}
    assert {name: found.summary[f"accuracy_{name}"] for name in wanted} == pytest.approx(wanted)
    assert found.summary["steps_halted"] == 3 and 0 < solved[0] < solved[2] < solved[3] < 1


def test_a_grid_that_is_never_called_right_is_read_at_the_end(setting: Setting, network: Scripted) -> None:
    class Unsure(Scripted):
        def halting(self, state: State) -> jax.Array:
            return -jnp.ones_like(state.answer[..., 0, 0])

    unsure = Unsure(**{name: getattr(network, name) for name in network.__dataclass_fields__})
    found = OuterSteps(times=2).measure(setting, unsure).summary
    assert found["steps_halted"] == STEPS and found["accuracy_halted"] == found["accuracy_last"]


def test_wrong_identifiers(setting: Setting, network: Scripted) -> None:
    found = WrongIdentifier().measure(setting, network).summary
    assert found["identifier_own"] == 1 and found["identifier_other"] == 0
    # No identifier: all numbers are zero, and the largest is the first.
    assert found["identifier_none"] == pytest.approx((first_colours(setting) == 1).mean())


def test_what_cannot_be_measured(setting: Setting, network: Scripted) -> None:
    plain = Setting(RunConfig())
    assert "takes no outer steps" in OuterSteps().measure(plain, plain.network_shapes()).refused
    assert "no puzzle identifier" in WrongIdentifier().measure(plain, plain.network_shapes()).refused
