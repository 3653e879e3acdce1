"""Sequence models: what is said with a cache is what is said without, pads and later words change nothing."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.language.vocabulary import BEGIN, END, PAD, SPECIAL
from recombine.models.base import Model
from recombine.models.decoder import Decoder, DecoderNetwork, _preceding
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.models.layers import Attention, KVCache, RotaryEmbedding, matmul
from recombine.models.sequence import SequenceNetwork
from recombine.models.syntactic_attention import SyntacticAttention
from recombine.overrides import validate
from recombine.training.config import RunConfig

PROMPT, LONGEST, VOCABULARY = 5, 6, 9
MODELS = [
    Decoder(width=16, layers=2, heads=2, mlp_ratio=2),
    EncoderDecoder(width=16, layers=2, heads=2, mlp_ratio=2),
    Decoder(width=16, layers=1, heads=1, mlp_ratio=1, tied_embeddings=False),
]
WINDOWED = Decoder(width=16, layers=1, heads=2, mlp_ratio=2, window=2)
SYNTACTIC = SyntacticAttention(width=16, separate=False)


@eqx.filter_jit
def generated(network: SequenceNetwork, codes: jax.Array, steps: jax.Array | None = None) -> jax.Array:
    return network.generate(codes, steps)


@eqx.filter_jit
def expected(network: SequenceNetwork, code: jax.Array, shown: jax.Array, steps: jax.Array) -> jax.Array:
    return network.trace_at(code, shown[None], steps)[0].reshape(LONGEST, -1)


def drawn(model: Model, seed: int = 0) -> SequenceNetwork:
    """Scales and biases begin at one and zero, where a mistake with them would not be seen; END comes late."""
    network = model.draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(seed))
    rng = np.random.default_rng(seed)
    network = jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.3 * rng.normal(size=leaf.shape), jnp.float32), network)
    assert isinstance(network, SequenceNetwork)
    return network


def prompts(seed: int, number: int = 8) -> jax.Array:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(SPECIAL, VOCABULARY, (number, PROMPT))
    tokens[np.arange(PROMPT) >= rng.integers(1, PROMPT + 1, number)[:, None]] = PAD
    return jnp.asarray(tokens, jnp.float32)


def one_by_one(network: SequenceNetwork, code: jax.Array, steps: jax.Array) -> np.ndarray:
    """The answer without a cache: the whole sequence is computed anew for every token."""
    said: list[int] = []
    while len(said) < LONGEST and (not said or said[-1] != END):
        shown = np.full(LONGEST, PAD, np.float32)
        shown[: len(said) + 1] = [BEGIN, *said]
        words = np.array(expected(network, code, jnp.asarray(shown), steps)[len(said)])
        words[[PAD, BEGIN]] = -np.inf
        said.append(int(words.argmax()))
    return np.array(said + [PAD] * (LONGEST - len(said)))


CACHED = [(model, apart) for apart in (False, True) for model in MODELS] + [(WINDOWED, True), (SYNTACTIC, False)]


@pytest.mark.parametrize(("model", "apart"), CACHED)
def test_what_is_said_with_a_cache_is_what_is_said_without(model: Model, apart: bool) -> None:
    network, codes = drawn(model, 3), prompts(1)
    places = np.arange(PROMPT + LONGEST)
    places = np.sort(np.random.default_rng(0).permutation(40)[: len(places)]) if apart else places
    steps = jnp.broadcast_to(jnp.asarray(places), (len(codes), len(places)))
    found = np.asarray(generated(network, codes, steps if apart else None))
    wanted = np.stack([one_by_one(network, code, steps[0]) for code in codes])
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(found, axis=0)) > 1
    assert not ((found == PAD) & (np.cumsum(found == END, axis=1) == 0)).any()


@pytest.mark.parametrize("model", [*MODELS[:2], SYNTACTIC], ids=lambda model: model.kind)
def test_pads_of_a_prompt_change_nothing(model: Model) -> None:
    network, shown = drawn(model), jnp.array([BEGIN, 4, 5, 3, 6, 7.0])
    short, long = jnp.array([4.0, 7, 5]), jnp.array([4.0, 7, 5, PAD, PAD])
    steps = jnp.arange(PROMPT + LONGEST)
    np.testing.assert_allclose(expected(network, short, shown, steps), expected(network, long, shown, steps), atol=2e-5)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.kind)
@given(place=st.integers(1, LONGEST - 1), word=st.integers(SPECIAL, VOCABULARY - 1))
@settings(max_examples=10, deadline=None)
def test_later_words_change_nothing_before_them(model: Model, place: int, word: int) -> None:
    network, code = drawn(model), prompts(2)[0]
    shown = np.array([BEGIN, 4, 5, 3, 6, 7.0], np.float32)
    other = shown.copy()
    other[place] = word + (word == shown[place]) if word + 1 < VOCABULARY else SPECIAL
    steps = jnp.arange(PROMPT + LONGEST)
    one, two = (np.asarray(expected(network, code, jnp.asarray(each), steps)) for each in (shown, other))
    np.testing.assert_allclose(one[:place], two[:place], atol=1e-5)
    if shown[place] != other[place]:
        assert np.abs(one[place:] - two[place:]).max() > 1e-3


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.kind)
def test_only_distances_between_places_count(model: Model) -> None:
    network, code, shown = drawn(model), prompts(3)[0], jnp.array([BEGIN, 4, 5, 3, 6, 7.0])
    steps = jnp.arange(PROMPT + LONGEST)
    near, moved, apart = (expected(network, code, shown, one) for one in (steps, steps + 11, 3 * steps))
    np.testing.assert_allclose(near, moved, atol=1e-4)
    assert np.abs(np.asarray(near) - np.asarray(apart)).max() > 1e-2


def test_attention_against_loops() -> None:
    rng = np.random.default_rng(0)
    width, heads, tokens, others = 12, 3, 4, 5
    layer = Attention.draw(width, heads, jax.random.split(jax.random.key(0), 4))
    layer = jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.2 * rng.normal(size=leaf.shape), jnp.float32), layer)
    read, other = (jnp.asarray(rng.normal(size=(n, width)), jnp.float32) for n in (tokens, others))
    seen = rng.random((tokens, others)) < 0.6
    seen[:, 0] = True
    here, there = rng.integers(0, 30, tokens), rng.integers(0, 30, others)
    cache = layer.cache(other, RotaryEmbedding.at(jnp.asarray(there), width // heads))
    queries = layer.queries(read, RotaryEmbedding.at(jnp.asarray(here), width // heads))
    found = layer(queries, cache, jnp.asarray(seen))

    def turned(vector: np.ndarray, scale: np.ndarray, place: int) -> np.ndarray:
        vector = scale * vector / np.sqrt(np.mean(vector**2) + 1e-6)
        half = len(vector) // 2
        pairs = (vector[:half] + 1j * vector[half:]) * np.exp(1j * place * 10_000.0 ** (-np.arange(half) / half))
        return np.concatenate([pairs.real, pairs.imag])

    weights = jax.tree.map(lambda leaf: np.asarray(leaf, float), layer)
    one, two, size = np.asarray(read, float), np.asarray(other, float), width // heads
    wanted = np.zeros((tokens, width))
    for head in range(heads):
        cut = slice(head * size, (head + 1) * size)
        for token in range(tokens):
            query = turned((one[token] @ weights.query)[cut], weights.query_scale, here[token])
            keys = [turned((row @ weights.key)[cut], weights.key_scale, p) for row, p in zip(two, there, strict=True)]
            share = np.exp([query @ key / np.sqrt(size) for key in keys]) * seen[token]
            wanted[token, cut] = (share / share.sum()) @ (two @ weights.value)[:, cut]
    np.testing.assert_allclose(found, wanted @ weights.out, atol=1e-4)
    assert isinstance(cache, KVCache)


def test_tied_words_have_one_matrix() -> None:
    tied, apart = (Decoder(width=16, layers=1, heads=1, tied_embeddings=one) for one in (True, False))
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(drawn(model))) for model in (tied, apart)]
    assert sizes[1] - sizes[0] == 16 * VOCABULARY


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="multiple of 8"):
        Decoder(width=36, heads=4)
    with pytest.raises(BadInput, match=r"made for tokens"):
        validate(RunConfig, {"model": "decoder"})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.kind} {model.layers}")
def test_many_tasks_at_once_are_each_alone(model: Model) -> None:
    network, codes = drawn(model, 5), prompts(4, 6)
    shown = np.random.default_rng(2).integers(SPECIAL, VOCABULARY, (6, 2, LONGEST)).astype(np.float32)
    goal = jnp.asarray(np.random.default_rng(3).normal(size=(6, 2, LONGEST * VOCABULARY)), jnp.float32)

    @eqx.filter_jit
    def slope(one: SequenceNetwork, together: bool) -> tuple[jax.Array, SequenceNetwork]:
        def loss(one: SequenceNetwork) -> jax.Array:
            found = one.tasks(codes, jnp.asarray(shown)) if together else jax.vmap(one)(codes, shown)
            return jnp.mean((found - goal) ** 2)

        return eqx.filter_value_and_grad(loss)(one)

    (one, left), (other, right) = slope(network, True), slope(network, False)
    np.testing.assert_allclose(one, other, rtol=1e-5)
    jax.tree.map(lambda *leaves: np.testing.assert_allclose(*leaves, atol=2e-4, rtol=1e-3), left, right)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3)])
def test_the_product_and_its_gradient(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    stream, weight, above = (
        jnp.asarray(rng.normal(size=size), jnp.float32) for size in ((2, 5, shape[0]), shape, (2, 5, shape[1]))
    )
    found, back = jax.vjp(matmul, stream, weight)
    np.testing.assert_allclose(found, np.asarray(stream) @ np.asarray(weight), rtol=1e-4, atol=1e-5)
    by_stream, by_weight = back(above)
    np.testing.assert_allclose(by_stream, np.asarray(above) @ np.asarray(weight).T, rtol=1e-4, atol=1e-5)
    wanted = np.einsum("abf,abu->fu", np.asarray(stream), np.asarray(above))
    np.testing.assert_allclose(by_weight, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("model", "apart"), [(MODELS[0], True), (MODELS[1], False), (MODELS[2], False)])
def test_tasks_that_a_caller_vmaps_are_answered_alike(model: Model, apart: bool) -> None:
    """With given and with consecutive positions, each by one of the models: what is tested is shared by all of them."""
    networks, codes = [drawn(model, seed) for seed in (0, 1)], prompts(2, 6)
    most = PROMPT + LONGEST
    steps = jnp.broadcast_to(2 * jnp.arange(most), (6, most)) if apart else None
    plain = [generated(network, codes, steps) for network in networks]

    @eqx.filter_jit
    def one_by_one(network: SequenceNetwork) -> jax.Array:
        each = eqx.filter_vmap(lambda code, places: network.generate_vmappable(code[None], places))
        return each(codes, None if steps is None else steps[:, None])[:, 0]

    np.testing.assert_array_equal(one_by_one(networks[0]), plain[0])
    if steps is not None:
        shared = jax.vmap(lambda code: networks[0].generate_vmappable(code[None], steps[:1]))(codes)
        np.testing.assert_array_equal(shared[:, 0], plain[0])
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    both = eqx.filter_vmap(lambda network: network.generate_vmappable(codes, steps))(stack)
    np.testing.assert_array_equal(both, jnp.stack(plain))


def test_answers_of_given_lengths_end_there_and_nowhere_before() -> None:
    """Up to a network's own end, an answer is the one that it gives by itself."""
    network, codes = drawn(MODELS[0]), prompts(3)
    free = np.asarray(network.generate(codes))
    lengths = jnp.arange(len(codes)) % (network.longest_answer - 1) + 2
    whole = np.asarray(network.generate(codes, lengths=lengths))
    vmapped = jax.vmap(lambda code, length: network.generate_vmappable(code[None], None, length[None])[0])
    np.testing.assert_array_equal(vmapped(codes, lengths), whole)
    for own, said, length in zip(free, whole, lengths.tolist(), strict=True):
        assert said[length - 1] == END and (said[length:] == PAD).all()
        assert not np.isin(said[: length - 1], [END, PAD]).any()
        ended = int(np.argmax(own == END)) if (own == END).any() else len(own)
        same = min(ended, length - 1)
        np.testing.assert_array_equal(said[:same], own[:same])


def test_a_window_adds_the_words_before_each_word() -> None:
    """Pads are skipped: the answer's first token follows the prompt's last word."""
    network = drawn(WINDOWED)
    assert isinstance(network, DecoderNetwork)
    tokens = jnp.array([4, 7, 5, PAD, PAD, BEGIN, 6])
    preceding = _preceding(tokens, tokens != PAD, 2)
    real = [(0, PAD, PAD), (1, 4, PAD), (2, 7, 4), (5, 5, 7), (6, BEGIN, 5)]
    for place, near, far in real:
        assert preceding[place].tolist() == [near, far]
    own = {token: np.asarray(network.embedding.embed(jnp.array(token))) for token in (4, 5, 6, 7, BEGIN)}
    found = np.asarray(network._embed(tokens, preceding))
    near, far = (np.asarray(weight) for weight in network.before)
    np.testing.assert_allclose(found[0], own[4], atol=1e-5)
    np.testing.assert_allclose(found[5], own[BEGIN] + own[5] @ near + own[7] @ far, atol=1e-4)
    plain = WINDOWED.replace(window=0).draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))
    windowed = WINDOWED.draw(PROMPT, LONGEST, LONGEST * VOCABULARY, jax.random.key(0))
    np.testing.assert_array_equal(plain.embedding.vectors, windowed.embedding.vectors)
