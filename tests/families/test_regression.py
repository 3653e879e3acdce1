"""R2 in its three forms, against numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from recombine.families.base import Batch
from recombine.families.hyperteacher import Hyperteacher

FAMILY = Hyperteacher(inputs=2, outputs=3)
TASKS, SAMPLES, OUTPUTS = 4, 6, 3

score = jax.jit(jax.vmap(FAMILY.score))

numbers = arrays.arrays(
    np.float32, (2, TASKS, SAMPLES, OUTPUTS), elements=st.floats(-3, 3, width=32, allow_subnormal=False)
)
masks = arrays.arrays(np.bool_, (TASKS, SAMPLES)).filter(lambda mask: mask.sum(axis=1).min() >= 2)


def batch_of(targets: np.ndarray, mask: np.ndarray | None = None) -> Batch:
    weight = np.ones(targets.shape[:2]) if mask is None else mask
    inputs = jnp.zeros((*targets.shape[:2], 2))
    return jax.vmap(Batch)(inputs, jnp.asarray(targets), jnp.asarray(weight, jnp.float32))


def direct(targets: np.ndarray, predictions: np.ndarray, mask: np.ndarray) -> dict[str, float]:
    """The three forms by their definitions, task by task, in double precision."""
    errors, spreads, ratios = [], [], []
    for target, prediction, kept in zip(targets, predictions, mask, strict=True):
        y, guess = target[kept].astype(float), prediction[kept].astype(float)
        errors.append(((y - guess) ** 2).sum())
        spreads.append(((y - y.mean(0)) ** 2).sum())
        ratios.append(1 - ((y - guess) ** 2 / y.var(0)).mean())
    return {
        "r2": 1 - sum(errors) / sum(spreads),
        "r2_ratio": float(np.mean(ratios)),
        "r2_median": float(np.median(1 - np.array(errors) / np.array(spreads))),
    }


def varied(noise: np.ndarray) -> np.ndarray:
    """Targets that vary in every unit, so that each form is defined."""
    ramp = np.linspace(-2, 2, SAMPLES, dtype=np.float32)[:, None] * np.array([1, 2, 3], np.float32)
    return (ramp + 0.2 * noise).astype(np.float32)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(numbers, masks)
def test_three_forms_against_their_definitions(both: np.ndarray, mask: np.ndarray):
    targets, predictions = varied(both[0]), both[1]
    found = FAMILY.metrics(score(batch_of(targets, mask), jnp.asarray(predictions)))
    wanted = direct(targets, predictions, mask)
    assert list(found) == ["r2", "r2_ratio", "r2_median", "correlation"], "the headline comes first"
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, rel=1e-3, abs=1e-3)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(numbers, masks)
def test_masked_examples_do_not_count(both: np.ndarray, mask: np.ndarray):
    targets, predictions = varied(both[0]), both[1]
    once = score(batch_of(targets, mask), jnp.asarray(predictions))
    spoilt = np.where(mask[..., None], targets, np.float32(1e3))
    again = score(batch_of(spoilt, mask), jnp.asarray(np.where(mask[..., None], predictions, -1e3)))
    for name in once:
        np.testing.assert_allclose(once[name], again[name], rtol=1e-5)


def test_correlation_is_that_of_the_centred_values():
    rng = np.random.default_rng(1)
    targets, predictions = rng.normal(size=(2, TASKS, SAMPLES, OUTPUTS)).astype(np.float32)
    predictions = predictions + 0.5 * targets + rng.normal(size=(TASKS, 1, OUTPUTS)).astype(np.float32)
    one, other = ((values - values.mean(1, keepdims=True)).ravel() for values in (targets, predictions))
    found = FAMILY.metrics(score(batch_of(targets), jnp.asarray(predictions)))["correlation"]
    assert found == pytest.approx(np.corrcoef(one, other)[0, 1], abs=1e-5)
    constant = FAMILY.metrics(score(batch_of(targets), jnp.zeros_like(predictions)))["correlation"]
    assert constant == 0.0


def test_headline_is_pooled_and_additive():
    rng = np.random.default_rng(0)
    targets, predictions = rng.normal(size=(2, TASKS, SAMPLES, OUTPUTS)).astype(np.float32)
    scores = score(batch_of(targets), jnp.asarray(predictions))
    whole = float(FAMILY.headline(scores))
    assert whole == pytest.approx(FAMILY.metrics(scores)["r2"], rel=1e-5)
    halves = [{name: values[part] for name, values in scores.items()} for part in (slice(2), slice(2, None))]
    error, spread = (sum(float(half[name].sum()) for half in halves) for name in ("error", "spread"))
    assert whole == pytest.approx(1 - error / spread, rel=1e-5)


def test_perfect_mean_and_worse():
    rng = np.random.default_rng(1)
    targets = rng.normal(size=(TASKS, SAMPLES, OUTPUTS)).astype(np.float32)
    batch = batch_of(targets)
    perfect = FAMILY.metrics(score(batch, jnp.asarray(targets)))
    assert set(perfect.values()) == {1.0}
    mean = np.broadcast_to(targets.mean(1, keepdims=True), targets.shape)
    for value in FAMILY.metrics(score(batch, jnp.asarray(mean))).values():
        assert value == pytest.approx(0, abs=1e-5)
    assert FAMILY.metrics(score(batch, jnp.asarray(-targets)))["r2"] < 0
