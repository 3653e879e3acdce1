"""The convolutional network against XLA's own convolution and pooling, and what it refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.encodings.unsaid import Unsaid
from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.sprites import Sprites
from recombine.models.convnet import Convnet, ConvnetNetwork, max_pool

CODE, PIXELS, OUTPUTS, SAMPLES = 3, 8, 4, 5
SMALL = Convnet(width=3, levels=2, hidden=6)


def drawn(model: Convnet = SMALL) -> ConvnetNetwork:
    """Biases start at zero, where a mistake with them would not be seen."""
    rng = np.random.default_rng(9)
    network = model.draw(CODE, PIXELS**2, OUTPUTS, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.1 * rng.normal(size=leaf.shape), jnp.float32), network)


def example() -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=CODE), jnp.float32), jnp.asarray(
        rng.normal(size=(SAMPLES, PIXELS**2)), jnp.float32
    )


def test_equals_the_same_network_of_xla():
    network, (code, inputs) = drawn(), example()
    images = inputs.reshape(SAMPLES, PIXELS, PIXELS, 1)
    for layer in network.convolutions:
        kernel = layer.weight.reshape(3, 3, images.shape[-1], -1)
        order = ("NHWC", "HWIO", "NHWC")
        found = jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=order)
        images = jax.nn.relu(found + layer.bias)
        window = (1, 2, 2, 1)
        images = jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, window, window, "VALID")
    flat = images.reshape(SAMPLES, -1)
    hidden = jax.nn.relu(flat @ network.dense.weight + network.dense.bias + code @ network.of_code)
    wanted = hidden @ network.readout.weight + network.readout.bias
    outputs, sites = network.trace(code, inputs)
    np.testing.assert_allclose(outputs, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sites["dense"], hidden, rtol=1e-4, atol=1e-5)
    assert {site: values.shape[1] for site, values in sites.items()} == {
        "convolution 1": 3,
        "convolution 2": 6,
        "dense": 6,
    }


def test_halving_keeps_the_largest_of_four():
    images = np.random.default_rng(1).normal(size=(2, 4, 6, 3)).astype(np.float32)
    found = np.asarray(max_pool(jnp.asarray(images)))
    assert found.shape == (2, 2, 3, 3)
    for image, row, column, channel in np.ndindex(found.shape):
        square = images[image, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, channel]
        assert found[image, row, column, channel] == square.max()


def test_serves_grey_square_images_alone():
    SMALL.check(Sprites(), Unsaid(), 1)
    with pytest.raises(BadInput, match="square grey images; the family has 15 inputs"):
        SMALL.check(Hyperteacher(inputs=15), Unsaid(), 1)
    with pytest.raises(BadInput, match="a multiple of 32; they are 16"):
        Convnet(levels=5).check(Sprites(), Unsaid(), 1)
