"""The recursive model against plain loops: states, gradients, weights and operations."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families import Sudoku
from recombine.models.recursive import GatedMLP, GridBlock, Recursive, RecursiveNetwork, State
from recombine.overrides import validate
from recombine.training.config import RunConfig
from recombine.training.flops import count_flops

CELLS, FEATURES, OUTPUTS = 9, 4, 3


def drawn(**settings: Any) -> RecursiveNetwork:
    model = Recursive(cells=CELLS, width=16, heads=2, **settings)
    network = model.draw(1, FEATURES, OUTPUTS, jax.random.key(0))
    assert isinstance(network, RecursiveNetwork)
    return network


def puzzles(number: int = 2) -> jax.Array:
    return jax.random.normal(jax.random.key(5), (number, CELLS, FEATURES))


@pytest.mark.parametrize(
    "settings", [{"updates": 3, "cycles": 2}, {"updates": 1, "cycles": 1, "networks": 2, "mixing": "mlp"}]
)
def test_states_follow_the_published_loop(settings: Any) -> None:
    """z = net(x + y + z), `updates` times; y = net(y + z); `cycles` times; every step."""
    network, steps = drawn(**settings), 2
    given = puzzles()
    puzzle = given @ network.embedding
    shape = (2, CELLS, 16)
    y, z = (jnp.broadcast_to(own, shape) for own in (network.start.answer, network.start.latent))

    def apply(blocks: tuple[GridBlock, ...], state: jax.Array) -> jax.Array:
        for block in blocks:
            state = block(state)
        return state

    @eqx.filter_jit
    def cycle(network: RecursiveNetwork, y: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        for _ in range(settings["updates"]):
            z = apply(network.blocks, puzzle + y + z)
        return apply(network.answer_blocks or network.blocks, y + z), z

    found = eqx.filter_jit(lambda network: network.unrolled(given, steps))(network)
    for step in range(steps):
        for _ in range(settings["cycles"]):
            y, z = cycle(network, y, z)
        np.testing.assert_allclose(found.answer[step], y, atol=2e-5)
        np.testing.assert_allclose(found.latent[step], z, atol=2e-5)


def test_only_the_end_of_a_step_has_a_gradient() -> None:
    """More cycles without a gradient change the gradient only through the state; a gradient with respect to the state is zero."""
    state = State(jnp.ones((2, CELLS, 16)), jnp.full((2, CELLS, 16), 0.5))

    def size(settings: dict[str, Any]) -> tuple[float, float]:
        @eqx.filter_jit
        def gradients(network: RecursiveNetwork, state: State) -> Any:
            def cost(both: tuple[RecursiveNetwork, State]) -> jax.Array:
                own, before = both
                return jnp.sum(own.logits(own.step(own.embed(puzzles()), before)) ** 2)

            return eqx.filter_grad(cost)((network, state))

        of_network, of_state = gradients(drawn(**settings), state)
        blocks = jax.tree.leaves(eqx.filter(of_network.blocks, eqx.is_array))
        return float(sum(jnp.sum(leaf**2) for leaf in blocks)), float(
            sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(of_state))
        )

    full, one_step = (size({"updates": 3, "cycles": 2, "gradient": kind}) for kind in ("cycle", "update"))
    assert full[0] > 0 and one_step[0] > 0 and full[0] != one_step[0]
    assert full[1] == one_step[1] == 0


@pytest.mark.parametrize("mixing", ["attention", "mlp"])
def test_operations_of_a_step(mixing: Any) -> None:
    """The products by hand: every application of a block counts."""
    model = Recursive(cells=16, width=128, heads=2, updates=2, cycles=3, mixing=mixing)
    network = eqx.filter_eval_shape(model.draw, 1, 5, 4, jax.random.key(0))
    arrays, static = eqx.partition(network, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    grids, cells, width = 8, 16, 128
    state = jax.eval_shape(lambda: State(jnp.zeros((grids, cells, width)), jnp.zeros((grids, cells, width))))

    def step(arrays: Any, puzzle: jax.Array, state: State) -> State:
        return eqx.combine(arrays, static).step(puzzle, state)

    hidden, across = round(4 * width * 2 / 3), round(4 * cells * 2 / 3)
    mixed = (
        4 * 2 * cells * width**2 + 2 * 2 * cells**2 * width if mixing == "attention" else 2 * width * 3 * cells * across
    )
    block = grids * (mixed + 2 * cells * 3 * width * hidden)
    wanted = model.reuse() * model.layers * block
    counted = count_flops(step, arrays, jax.ShapeDtypeStruct((grids, cells, width), jnp.float32), state)
    assert 1 < counted / wanted < 1.06


def test_a_hierarchy_has_as_many_weights() -> None:
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(drawn(networks=n), eqx.is_array))) for n in (1, 2)]
    assert sizes[0] == sizes[1]


def test_the_gate() -> None:
    gate = GatedMLP.draw(6, 4, jax.random.key(1))
    values = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    first, second = np.split(values @ np.asarray(gate.gate_and_up), 2, axis=1)
    np.testing.assert_allclose(
        gate(jnp.asarray(values)), (first / (1 + np.exp(-first)) * second) @ np.asarray(gate.down), rtol=1e-4, atol=1e-5
    )
    assert gate.down.shape == (16, 6)


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="the grids of 'sudoku' have 16 cells"):
        validate(RunConfig, {"family": Sudoku(box=(2, 2))})
    with pytest.raises(BadInput, match="An example is a whole grid of 36 cells"):
        validate(RunConfig, {"family": "sudoku", "recipe": {"kind": "fast", "samples": 8}})
    with pytest.raises(BadInput, match="'mlp' has no state to carry on"):
        validate(RunConfig, {"family": "sudoku", "model": "mlp", "objective": "deep-supervision"})
