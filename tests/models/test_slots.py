"""Slot attention: the contract, symmetry of slots, and that one slot is a pooled vector."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.encodings import Identity
from recombine.errors import BadInput
from recombine.families import Hyperteacher, Sprites
from recombine.models.slot_attention import SlotAttention, SlotAttentionLayer
from recombine.models.slot_autoencoder import SlotAutoencoder
from recombine.testing import check_model

SIZE = 3 * 12**2
LAYER = SlotAttentionLayer.draw(4, 8, 5, 3, jax.random.key(0))
FEATURES = jax.random.normal(jax.random.key(1), (2, 9, 5))
APPLY = eqx.filter_jit(lambda layer: layer(FEATURES))
ANSWER = eqx.filter_jit(lambda network, code, inputs: network(code, inputs))


@pytest.mark.parametrize("slots", [1, 3])
def test_the_contract_of_slot_attention(slots):
    check_model(SlotAttention(slots=slots, width=8, channels=8, hidden=16), input_size=SIZE, output_size=2)


def test_the_contract_of_the_slot_autoencoder():
    check_model(SlotAutoencoder(slots=3, width=8, channels=8, hidden=16), input_size=12**2, output_size=12**2)


@given(st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_slots_are_permuted_with_their_first_values(order):
    order = np.array(order)
    slots, attention = APPLY(LAYER)
    turned = eqx.tree_at(lambda layer: layer.first, LAYER, LAYER.first[order])
    other_slots, other_attention = APPLY(turned)
    np.testing.assert_allclose(other_slots, slots[:, order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(other_attention, attention[..., order], rtol=1e-4, atol=1e-5)
    assert float(jnp.abs(slots[:, 0] - slots[:, 1]).max()) > 0.01, "the slots differ, or the order would not matter"


@given(st.permutations(range(3)))
@settings(max_examples=5, deadline=None)
def test_answers_do_not_depend_on_the_order_of_slots(order):
    network = SlotAttention(slots=3, width=8, channels=8).draw(5, SIZE, 2, jax.random.key(0))
    code, inputs = jax.random.normal(jax.random.key(1), (5,)), jax.random.normal(jax.random.key(2), (4, SIZE))
    turned = eqx.tree_at(lambda network: network.layer.first, network, network.layer.first[np.array(order)])
    np.testing.assert_allclose(ANSWER(turned, code, inputs), ANSWER(network, code, inputs), rtol=1e-4, atol=1e-5)


def test_positions_are_divided_among_slots():
    _, attention = APPLY(LAYER)
    np.testing.assert_allclose(attention.sum(axis=-1), 1, rtol=1e-5)


def test_a_single_slot_sees_only_the_mean_over_positions():
    single = SlotAttentionLayer.draw(1, 8, 5, 3, jax.random.key(0))
    slots, attention = single(FEATURES)
    np.testing.assert_allclose(attention, 1)
    # Positions in another order, or with other values around the same mean, give the same vector.
    np.testing.assert_allclose(single(FEATURES[:, ::-1])[0], slots, rtol=1e-4, atol=1e-5)
    expected = jnp.broadcast_to(single.first, slots.shape)
    for _ in range(3):
        expected = single.updated(expected, single.value(FEATURES.mean(axis=1, keepdims=True)))
    np.testing.assert_allclose(slots, expected, rtol=1e-3, atol=1e-4)


def test_masks_of_the_autoencoder_divide_pixels_and_change_with_the_image():
    network = SlotAutoencoder(slots=3, width=8).draw(1, 16**2, 16**2, jax.random.key(0))
    images = jax.random.bernoulli(jax.random.key(1), 0.5, (2, 16**2)).astype(jnp.float32)
    masks = eqx.filter_jit(lambda network, images: network.masks(jnp.zeros(1), images))(network, images)
    assert masks.shape == (2, 3, 16**2)
    np.testing.assert_allclose(masks.sum(axis=1), 1, rtol=1e-5)
    assert not np.allclose(masks[0], masks[1])


def test_what_is_no_image_is_refused():
    with pytest.raises(BadInput, match="square images"):
        SlotAttention().check(Hyperteacher(inputs=15), Identity(), 1)
    with pytest.raises(BadInput, match="restores its input"):
        SlotAutoencoder().check(Sprites(), Identity(), 1)
