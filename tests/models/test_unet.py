"""The U-Net: shapes, sites, what it listens to, and what it refuses."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.encodings.identity import Identity
from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.unet import LATEST, UNet, UNetNetwork, time_embedding, velocity

CODE, PIXELS, SAMPLES = 5, 8, 3
SMALL = UNet(width=6, condition=8)


@functools.cache
def drawn(model: UNet = SMALL, pixels: int = PIXELS, seed: int = 0) -> UNetNetwork:
    """Biases start at zero, where a mistake with them would not be seen."""
    network = jax.jit(lambda key: model.draw(CODE, 3 * pixels**2 + 1, 3 * pixels**2, key))(jax.random.key(seed))
    rng = np.random.default_rng(9)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.1 * rng.normal(size=leaf.shape), jnp.float32), network)


def example(pixels: int = PIXELS, samples: int = SAMPLES, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(samples, 3 * pixels**2 + 1))
    inputs[:, -1] = rng.uniform(size=samples)
    return jnp.asarray(rng.normal(size=CODE), jnp.float32), jnp.asarray(inputs, jnp.float32)


trace = eqx.filter_jit(lambda network, *given: network.trace(*given))


@pytest.mark.parametrize(
    ("model", "pixels", "sites"),
    [
        (SMALL, 8, {"down 1": 6, "middle": 12, "up 1": 6}),
        (UNet(width=4, levels=3, condition=8), 16, {"down 1": 4, "down 2": 8, "middle": 16, "up 1": 8, "up 2": 4}),
        (
            UNet(width=4, blocks=2, condition=8),
            8,
            {"down 1": 4, "down 2": 4, "middle 1": 8, "middle 2": 8, "up 1": 4, "up 2": 4},
        ),
        (UNet(width=4, levels=1, patch_size=4, condition=8), 8, {"middle": 4}),
        (UNet(width=4, levels=1, patch_size=1, condition=8), 3, {"middle": 4}),
    ],
)
def test_sites_and_shapes(model: UNet, pixels: int, sites: dict[str, int]):
    names: list[str] = []

    def traced(key: jax.Array) -> Any:
        network = model.draw(CODE, 3 * pixels**2 + 1, 3 * pixels**2, key)
        outputs, found = network.trace(*example(pixels))
        names.extend(found)  # In the order of the computation: JAX sorts them.
        return outputs, found

    outputs, found = jax.eval_shape(traced, jax.random.key(0))
    assert outputs.shape == (SAMPLES, 3 * pixels**2)
    assert names == list(sites)
    assert {site: values.shape for site, values in found.items()} == {
        site: (SAMPLES, channels) for site, channels in sites.items()
    }


def test_tasks_are_the_calls_one_by_one():
    network = drawn()
    several = [example(seed=seed) for seed in range(4)]
    codes, inputs = (jnp.stack(part) for part in zip(*several, strict=True))
    wanted = eqx.filter_jit(lambda one, *given: jax.vmap(one)(*given))(network, codes, inputs)
    np.testing.assert_allclose(eqx.filter_jit(network.tasks)(codes, inputs), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("site", ["down 1", "middle", "up 1"])
def test_an_edit_shifts_every_position_by_what_it_changed_of_the_mean(site: str):
    """So a change of the mean by d is the same as adding d to the last bias before the site."""
    network, (code, inputs) = drawn(), example()
    stage = {
        "down 1": lambda one: one.down[0][0],
        "middle": lambda one: one.middle[0],
        "up 1": lambda one: one.up[0][0],
    }
    bias = stage[site](network).second.bias
    change = jnp.asarray(np.random.default_rng(1).normal(size=bias.shape), jnp.float32)

    def shifted(name: str, values: jax.Array) -> jax.Array:
        return values + change if name == site else values

    edited, after = trace(network, code, inputs, shifted)
    moved = eqx.tree_at(lambda one: stage[site](one).second.bias, network, bias + change)
    wanted, sites = trace(moved, code, inputs)
    np.testing.assert_allclose(edited, wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(after[site], sites[site], rtol=1e-3, atol=1e-4)
    assert np.abs(edited - trace(network, code, inputs)[0]).max() > 1e-2


def test_an_edit_of_one_image_leaves_the_others():
    network, (code, inputs) = drawn(), example()
    edited, _ = trace(network, code, inputs, lambda site, values: values.at[1].set(0.0))
    moved = np.abs(edited - trace(network, code, inputs)[0]).max(axis=1)
    assert moved[1] > 1e-2
    assert moved[[0, 2]].max() < 1e-5


def test_every_block_listens_to_code_and_time():
    """By itself: with the conditioning of all other blocks cut, each still changes the image."""
    network, (code, inputs) = drawn(), example()
    later = inputs.at[:, -1].add(0.2)

    def films(one: UNetNetwork) -> list[Any]:
        return [block.film.weight for block in (one.down[0][0], one.middle[0], one.up[0][0])]

    for number in range(3):
        kept = [weight if place == number else 0 * weight for place, weight in enumerate(films(network))]
        alone = eqx.tree_at(films, network, kept)
        before = trace(alone, code, inputs)[0]
        assert np.abs(trace(alone, -code, inputs)[0] - before).max() > 1e-3
        assert np.abs(trace(alone, code, later)[0] - before).max() > 1e-3
    deaf = eqx.tree_at(films, network, [0 * weight for weight in films(network)])

    def image(code: jax.Array, inputs: jax.Array) -> jax.Array:
        """The image that the velocity leads to."""
        left = 1 - jnp.minimum(inputs[:, -1:], LATEST)
        return inputs[:, :-1] + left * trace(deaf, code, inputs)[0]

    np.testing.assert_allclose(image(-code, later), image(code, inputs), rtol=1e-3, atol=1e-4)


def test_pixels_are_read_and_written_at_their_place():
    """A change of one pixel of the input moves the output most near it: no axis is turned on the way."""
    network = drawn(UNet(width=6, levels=1, condition=8), 16)
    code, inputs = example(16, samples=1)
    before = trace(network, code, inputs)[0]
    for row, column in ((1, 12), (12, 1)):
        touched = inputs.at[0, 3 * (16 * row + column)].add(1.0)
        moved = np.abs(trace(network, code, touched)[0] - before).reshape(16, 16, 3).sum(axis=-1)
        rows, columns = np.nonzero(moved > 1e-5)
        # The first convolution and the readout reach one square each, the block two.
        assert np.abs(rows - row).max() <= 9
        assert np.abs(columns - column).max() <= 9
        assert np.abs(np.argwhere(moved == moved.max())[0] - [row, column]).max() <= 5


@pytest.mark.parametrize("time", [0.0, 0.4, 0.95])
def test_a_velocity_leads_to_the_image(time: float):
    rng = np.random.default_rng(2)
    image, points = (jnp.asarray(rng.normal(size=(2, 12)), jnp.float32) for _ in range(2))
    at = jnp.full(2, time)
    np.testing.assert_allclose(points + (1 - time) * velocity(image, points, at), image, rtol=1e-4, atol=1e-5)
    assert np.isfinite(velocity(image, points, jnp.ones(2))).all()


def test_times_are_told_apart_and_near_ones_are_alike():
    found = np.asarray(time_embedding(jnp.linspace(0, 1, 101)))
    apart = np.linalg.norm(found[:, None] - found[None], axis=-1)
    assert apart[np.triu_indices(101, 1)].min() > 0.1
    assert np.diagonal(apart, 1).max() < apart[0, -1]


def test_weights_are_matrices_and_vectors():
    """Muon takes every array of two axes as one matrix."""
    network = jax.eval_shape(lambda: SMALL.draw(CODE, 193, 192, jax.random.key(0)))
    assert {leaf.ndim for leaf in jax.tree.leaves(network)} == {1, 2}


def test_no_two_matrices_are_drawn_alike():
    network = jax.jit(lambda key: UNet(width=6, levels=3, blocks=2).draw(CODE, 769, 768, key))(jax.random.key(0))
    matrices = [leaf for leaf in jax.tree.leaves(network) if leaf.ndim == 2]
    flat = [set(np.ravel(matrix)[:30].tolist()) for matrix in matrices]
    assert len(set.union(*flat)) == 30 * len(matrices)


def test_senseless_settings_are_refused():
    with pytest.raises(ValidationError, match="greater than 0"):
        UNet(levels=0)
    with pytest.raises(BadInput, match="square images"):
        UNet().check(Hyperteacher(), Identity(), 8)
    with pytest.raises(BadInput, match="multiple of 4; they are 6"):
        UNet().draw(CODE, 3 * 36 + 1, 3 * 36, jax.random.key(0))
