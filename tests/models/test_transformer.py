"""The transformer, against loops in numpy; what its positions and its mask promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.models.layers import Block, RotaryEmbedding, attend, causal, rms_norm
from recombine.models.transformer import Transformer, TransformerNetwork, causal_block
from recombine.overrides import validate
from recombine.training.config import RunConfig

CODE, INPUTS, OUTPUTS, SAMPLES = 5, 4, 3, 6
SMALL = Transformer(width=16, layers=2, heads=2, mlp_ratio=3)


def drawn(model: Transformer = SMALL, seed: int = 0) -> TransformerNetwork:
    """Scales and biases start at one and zero, where a mistake with them would not be seen."""
    network = jax.jit(lambda key: model.draw(CODE, INPUTS, OUTPUTS, key))(jax.random.key(seed))
    rng = np.random.default_rng(9)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.2 * rng.normal(size=leaf.shape), jnp.float32), network)


@jax.jit
def answer(network: TransformerNetwork, code: jax.Array, inputs: jax.Array) -> jax.Array:
    return network(code, inputs)


def example(seed: int = 0, samples: int = SAMPLES) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    code, inputs = rng.normal(size=CODE), rng.normal(size=(samples, INPUTS))
    return jnp.asarray(code, jnp.float32), jnp.asarray(inputs, jnp.float32)


def naive_norm(vector: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return scale * vector / np.sqrt(np.mean(vector**2) + 1e-6)


def naive_turn(vector: np.ndarray, position: int) -> np.ndarray:
    """Pairs as complex numbers, turned."""
    half = len(vector) // 2
    pairs = vector[:half] + 1j * vector[half:]
    turned = pairs * np.exp(1j * position * 10_000.0 ** (-np.arange(half) / half))
    return np.concatenate([turned.real, turned.imag])


def rotate(values: jax.Array) -> jax.Array:
    """Values of tokens at positions 0, 1, ..., turned."""
    return RotaryEmbedding.first(len(values), values.shape[-1], values.dtype).rotate(values)


def naive_block(block: Block, stream: np.ndarray, heads: int) -> np.ndarray:
    """One block, token by token and head by head, in double precision."""
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, float), block)
    part, mlp = weights.attention, weights.mlp
    read = np.array([naive_norm(token, weights.norm) for token in stream])
    size = stream.shape[1] // heads
    mixed = np.zeros_like(stream)
    for head in range(heads):
        mine = slice(head * size, (head + 1) * size)
        for token in range(len(stream)):
            query = naive_turn(naive_norm(read[token] @ part.query[:, mine], part.query_scale), token)
            odds = []
            for other in range(token + 1):
                key = naive_turn(naive_norm(read[other] @ part.key[:, mine], part.key_scale), other)
                odds.append(np.exp(query @ key / np.sqrt(size)))
            for other, odd in enumerate(odds):
                mixed[token, mine] += odd / sum(odds) * (read[other] @ part.value[:, mine])
    stream = stream + mixed @ part.out
    for token in range(len(stream)):
        wide = naive_norm(stream[token], mlp.norm) @ mlp.up.weight + mlp.up.bias
        stream[token] += np.maximum(wide, 0) @ mlp.down.weight + mlp.down.bias
    return stream


@pytest.mark.parametrize("model", [SMALL, Transformer(width=8, layers=1, heads=4), Transformer(width=6, heads=1)])
def test_equals_numpy_at_every_site(model: Transformer):
    network, (code, inputs) = drawn(model), example()
    outputs, sites = jax.jit(lambda *given: network.trace(*given))(code, inputs)
    part = jax.tree.map(lambda leaf: np.asarray(leaf, float), network)
    tokens = np.asarray(inputs, float) @ part.of_input.weight + part.of_input.bias
    stream = np.concatenate([[np.asarray(code, float) @ part.of_code.weight + part.of_code.bias], tokens])
    assert list(sites) == [f"block {number}" for number in range(1, model.layers + 1)]
    for block, values in zip(network.blocks, sites.values(), strict=True):
        stream = naive_block(block, stream, model.heads)
        assert values.shape == (SAMPLES, model.width)
        np.testing.assert_allclose(values, stream[1:], rtol=1e-3, atol=1e-4)
    read = np.array([naive_norm(token, part.readout_norm) for token in stream[1:]])
    np.testing.assert_allclose(outputs, read @ part.readout.weight + part.readout.bias, rtol=1e-3, atol=1e-4)


def test_a_later_input_changes_nothing_before_it():
    network, (code, inputs) = drawn(), example()
    before = answer(network, code, inputs)
    for place in range(SAMPLES):
        after = answer(network, code, inputs.at[place].add(1.0))
        np.testing.assert_allclose(after[:place], before[:place], rtol=1e-5, atol=1e-6)
        moved = np.abs(after - before).max(axis=1)
        assert (moved[place:] > 1e-4).all(), "and it changes itself and all that come after"


@pytest.mark.parametrize("samples", [4, 8, 11])
def test_more_inputs_than_the_context_are_read_as_several_sequences(samples: int):
    """At every site as if each sequence stood alone, so that no position is new to the network."""
    network = drawn(Transformer(width=16, layers=2, heads=2, context=4))
    code, inputs = example(samples=samples)
    trace = jax.jit(lambda *given: network.trace(*given))
    outputs, sites = trace(code, inputs)
    alone = [trace(code, inputs[start : start + 4]) for start in range(0, samples, 4)]
    np.testing.assert_allclose(outputs, np.concatenate([one for one, _ in alone]), rtol=1e-4, atol=1e-5)
    for site, values in sites.items():
        assert values.shape == (samples, 16)
        np.testing.assert_allclose(values, np.concatenate([one[site] for _, one in alone]), rtol=1e-4, atol=1e-5)


def test_an_edit_reaches_every_sequence():
    network = drawn(Transformer(width=16, layers=2, heads=2, context=4))
    code, inputs = example(samples=7)
    met: dict[str, tuple[int, ...]] = {}

    def wipe(site: str, values: jax.Array) -> jax.Array:
        met[site] = values.shape
        return values.at[5].set(0.0) if site == "block 1" else values

    edited, sites = jax.jit(lambda *given: network.trace(*given, wipe))(code, inputs)
    moved = np.abs(edited - answer(network, code, inputs)).max(axis=1) > 1e-4
    assert moved.tolist() == [False] * 5 + [True] * 2
    assert met == {"block 1": (7, 16), "block 2": (7, 16)}
    assert not np.any(sites["block 1"][5])


def test_a_shorter_sequence_is_the_beginning_of_a_longer_one():
    network, (code, inputs) = drawn(), example()
    np.testing.assert_allclose(
        answer(network, code, inputs[:2]), answer(network, code, inputs)[:2], rtol=1e-5, atol=1e-6
    )


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.integers(0, 2**16), st.integers(0, 5), st.integers(0, 5))
def test_rotary_products_depend_on_distance_alone(seed: int, distance: int, shift: int):
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, 1, 2, 6))
    queries, keys = (np.asarray(rotate(jnp.asarray(np.tile(one, (12, 1, 1))))) for one in (query, key))
    found = np.sum(queries[distance] * keys[0], axis=-1)
    shifted = np.sum(queries[distance + shift] * keys[shift], axis=-1)
    np.testing.assert_allclose(shifted, found, rtol=1e-4, atol=1e-4)
    lengths = np.linalg.norm(queries, axis=-1)
    np.testing.assert_allclose(lengths, np.tile(np.linalg.norm(query, axis=-1), (12, 1)), rtol=1e-5)


def test_attention_tells_positions_apart():
    values = jnp.asarray(np.random.default_rng(0).normal(size=(1, 1, 4)), jnp.float32)
    turned = rotate(jnp.tile(values, (5, 1, 1)))
    np.testing.assert_allclose(turned[0], values[0], rtol=1e-6)
    assert np.linalg.norm(np.diff(turned, axis=0), axis=-1).min() > 0.1


def test_attention_to_equal_keys_is_the_mean_so_far():
    values = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2, 4)), jnp.float32)
    found = attend(jnp.ones((5, 2, 4)), jnp.ones((5, 2, 4)), values, causal(5))
    for token in range(5):
        np.testing.assert_allclose(found[token], values[: token + 1].mean(0), rtol=1e-5, atol=1e-6)


def test_queries_and_keys_of_any_size_attend_alike():
    """They are normed: the scale of their weights does not count."""
    block = drawn().blocks[0]
    attention = dataclasses.replace(block.attention, query=30 * block.attention.query, key=0.2 * block.attention.key)
    larger = dataclasses.replace(block, attention=attention)
    stream = jnp.asarray(np.random.default_rng(0).normal(size=(5, 16)), jnp.float32)
    run = jax.jit(lambda chosen: causal_block(chosen, stream))
    np.testing.assert_allclose(run(larger), run(block), rtol=1e-3, atol=1e-4)


def test_normed_values_have_the_scale():
    values = 7 * jnp.asarray(np.random.default_rng(0).normal(size=(3, 8)), jnp.float32)
    rms = jnp.sqrt(jnp.mean(rms_norm(values, jnp.full(8, 2.0)) ** 2, axis=-1))
    np.testing.assert_allclose(rms, 2.0, rtol=1e-5)
    assert not np.any(rms_norm(jnp.zeros(8), jnp.ones(8)))


def test_an_edit_stays_at_its_inputs_and_flows_on():
    network, (code, inputs) = drawn(), example()

    def wipe(place: int) -> Callable[..., Any]:
        return lambda site, values: values.at[place].set(0.0) if site == "block 1" else values

    plain = answer(network, code, inputs)
    edited = jax.jit(lambda *given: network.trace(*given, wipe(3))[0])(code, inputs)
    np.testing.assert_allclose(edited[:3], plain[:3], rtol=1e-5, atol=1e-6)
    assert (np.abs(edited - plain).max(axis=1)[3:] > 1e-4).all()


def test_weights_are_matrices_and_vectors():
    """Muon takes every array of two or more axes as one matrix."""
    network = jax.eval_shape(lambda: SMALL.draw(CODE, INPUTS, OUTPUTS, jax.random.key(0)))
    assert {leaf.ndim for leaf in jax.tree.leaves(network)} == {1, 2}


def test_first_weights_are_lecun_normal():
    network = jax.jit(lambda key: Transformer(width=128, layers=1).draw(40, 60, 50, key))(jax.random.key(0))
    block = network.blocks[0]
    attention, mlp = block.attention, block.mlp
    matrices = [attention.query, attention.key, attention.value, attention.out, mlp.up.weight, mlp.down.weight]
    matrices += [network.of_code.weight, network.of_input.weight, network.readout.weight]
    for matrix in matrices:
        assert np.var(matrix) == pytest.approx(1 / len(matrix), rel=0.06)
    flat = [set(np.ravel(matrix)[:50].tolist()) for matrix in matrices]
    assert len(set.union(*flat)) == 50 * len(matrices), "no two are drawn alike"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 30, "heads": 4}, "multiple of 8"),
        ({"width": 12, "heads": 4}, "multiple of 8"),
        ({"width": 0}, "greater than 0"),
        ({"layers": 0}, "greater than 0"),
        ({"head": 2}, "not permitted"),
    ],
)
def test_senseless_sizes_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        Transformer(**fields)


def test_a_context_longer_than_what_training_shows_is_refused():
    with pytest.raises(BadInput, match="16 inputs per sequence"):
        validate(RunConfig, {"model": {"kind": "transformer", "context": 16}, "recipe": "fast"})
    validate(RunConfig, {"model": {"kind": "transformer", "context": 16}, "recipe": "paper"})
