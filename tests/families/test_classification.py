"""Accuracy of whole trajectories and of steps, against plain loops over episodes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from recombine.families.base import Batch
from recombine.families.preferences import Preferences

FAMILY = Preferences()
HORIZON, CLASSES, TASKS = FAMILY.horizon, FAMILY.output_size, 3


def made(rng: np.random.Generator, samples: int, right: float) -> tuple[Batch, np.ndarray]:
    """Tasks whose episodes end somewhere, and logits that are right with a given chance."""
    labels = rng.integers(0, CLASSES, (TASKS, samples))
    ends = rng.integers(1, HORIZON + 1, (TASKS, -(-samples // HORIZON)))
    step = np.arange(samples)
    mask = (step % HORIZON < ends[:, step // HORIZON]).astype(np.float32)
    logits = rng.normal(size=(TASKS, samples, CLASSES))
    sure = rng.random((TASKS, samples)) < right
    logits[sure, labels[sure]] += 50
    inputs = jnp.zeros((TASKS, samples, 1))
    targets = jnp.asarray(np.eye(CLASSES, dtype=np.float32)[labels])
    return jax.vmap(Batch)(inputs, targets, jnp.asarray(mask)), logits.astype(np.float32)


def by_hand(batch: Batch, logits: np.ndarray) -> list[dict[str, float]]:
    """Each task's statistics, episode by episode and step by step."""
    records = []
    for targets, mask, guess in zip(batch.targets, batch.mask, logits, strict=True):
        record = {"right": 0, "steps": 0, "whole": 0, "episodes": 0}
        for first in range(0, len(guess), HORIZON):
            hits = []
            for step in range(first, min(first + HORIZON, len(guess))):
                if mask[step]:
                    hits.append(int(np.argmax(guess[step])) == int(np.argmax(targets[step])))
            record["right"] += sum(hits)
            record["steps"] += len(hits)
            record["whole"] += all(hits)
            record["episodes"] += 1
        records.append(record)
    return records


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([5, 8, 16, 19]), st.sampled_from([0.0, 0.6, 0.9, 1.0]))
def test_statistics_are_those_of_plain_loops(seed: int, samples: int, right: float):
    batch, logits = made(np.random.default_rng(seed), samples, right)
    scores = jax.vmap(FAMILY.score)(batch, jnp.asarray(logits))
    records = by_hand(batch, logits)
    for name, values in scores.items():
        np.testing.assert_array_equal(values, [record[name] for record in records])
    total = {name: sum(record[name] for record in records) for name in records[0]}
    metrics = FAMILY.metrics(scores)
    assert list(metrics) == ["accuracy", "step_accuracy"]
    assert metrics["accuracy"] == pytest.approx(total["whole"] / total["episodes"])
    assert metrics["step_accuracy"] == pytest.approx(total["right"] / total["steps"])
    assert float(FAMILY.headline(scores)) == pytest.approx(metrics["accuracy"], rel=1e-6)


def test_what_comes_after_the_end_cannot_be_wrong():
    batch, logits = made(np.random.default_rng(0), 16, 1.0)
    spoilt = np.where(np.asarray(batch.mask)[..., None] > 0, logits, -logits)
    assert FAMILY.metrics(jax.vmap(FAMILY.score)(batch, jnp.asarray(spoilt))) == {"accuracy": 1.0, "step_accuracy": 1.0}


def test_one_wrong_step_spoils_its_episode_alone():
    batch, logits = made(np.random.default_rng(1), 24, 1.0)
    logits = logits.copy()
    logits[1, HORIZON] = -logits[1, HORIZON]  # The first step of the second episode counts in any case.
    scores = jax.vmap(FAMILY.score)(batch, jnp.asarray(logits))
    np.testing.assert_array_equal(scores["whole"], [3, 2, 3])


def test_groups_are_pooled_as_their_tasks():
    batch, logits = made(np.random.default_rng(2), 16, 0.8)
    scores = jax.vmap(FAMILY.score)(batch, jnp.asarray(logits))
    frame = pd.DataFrame({name: np.asarray(values, float) for name, values in scores.items()})
    frame["region"] = ["a", "b", "a"]
    found = FAMILY.pooled(frame, ["region"]).set_index("region")
    for region, chosen in (("a", [0, 2]), ("b", [1])):
        part = {name: values[np.array(chosen)] for name, values in scores.items()}
        for name, value in FAMILY.metrics(part).items():
            assert found.loc[region, name] == pytest.approx(value)
