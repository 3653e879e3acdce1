"""Mixing and expert-scores: the search finds known weights, and mixtures are told apart on networks whose answers are known."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.models import ExpertNetwork
from recombine.objectives import NextToken
from recombine.probes import ExpertScores, Mixing
from recombine.probes.routes.mixing import Examples, expert_tasks, likelihoods
from recombine.probes.routes.search import search_weights
from recombine.probes.tasks import over_tasks
from recombine.studies.routes.expert_vectors import SCALES, TOKENS, ExpertVectors
from recombine.training import Setting
from recombine.training.streams import Stream

STUDY = ExpertVectors.profile("smoke")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_search_finds_the_best_weights(wanted: list[float], seed: int) -> None:
    target = np.array(wanted)

    def score(rows: np.ndarray) -> np.ndarray:
        return -((rows - target) ** 2).sum(axis=1)

    found, best = search_weights(score, len(wanted), population=64, rounds=16, seed=seed)
    assert np.abs(found - target).max() < 0.3 and best == pytest.approx(float(score(found[None])[0]))
    known = np.concatenate([np.zeros((1, len(wanted))), np.eye(len(wanted))])
    assert best >= score(known).max()


def test_the_search_refuses_scores_that_are_none() -> None:
    with pytest.raises(BadInput, match="one finite score"):
        search_weights(lambda rows: np.full(len(rows), np.nan), 2)
    with pytest.raises(BadInput, match="too small for 9 experts"):
        search_weights(lambda rows: rows.sum(axis=1), 9, population=4)


@pytest.fixture(scope="module")
def mixture() -> tuple[Setting, ExpertNetwork]:
    """A mixture of the study whose experts were moved at random."""
    runs = [config for config, labels in STUDY.design.runs if labels["arm"] == "mixtures"]
    config = next(run for run in runs if run.model.adapter == "singular-values")  # type: ignore[attr-defined]
    network = config.model.draw(8, 5, 5 * config.family.vocabulary.size, jax.random.key(0))  # type: ignore[attr-defined]
    assert isinstance(network, ExpertNetwork)
    rng = np.random.default_rng(0)
    moved = jax.tree.map(
        lambda leaf: leaf + 0.2 * rng.standard_normal(leaf.shape).astype(np.float32) if leaf.ndim == 1 else leaf,
        network.experts,
    )
    return Setting(config), eqx.tree_at(lambda outer: outer.experts, network, moved)


def test_likelihoods_are_those_of_each_mixture_alone(mixture: tuple[Setting, ExpertNetwork]) -> None:
    setting, network = mixture
    sizes = setting.config.family.longest_prompt, setting.config.family.longest_answer  # type: ignore[attr-defined]
    vocabulary = setting.config.family.vocabulary.size  # type: ignore[attr-defined]
    network = setting.config.model.draw(sizes[0], sizes[1], sizes[1] * vocabulary, jax.random.key(1))
    assert isinstance(network, ExpertNetwork)
    rows = np.repeat(setting.config.space.row(("sort", "reverse"))[None], 6, axis=0)
    few = over_tasks(Examples(), setting, None, rows, Stream.PROBE, "few", 6)
    weights = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.5]])
    found = likelihoods(network, weights, few)
    for own, value in zip(weights, found, strict=True):
        logits = np.asarray(
            network.weighted(jnp.asarray(own)).merged().tasks(jnp.asarray(few["code"]), jnp.asarray(few["input"]))
        )
        logits = logits.reshape(6, sizes[1], vocabulary).astype(float)
        chances = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        right = np.take_along_axis(chances, few["target"][:, 0, :, None].astype(int), axis=-1)[..., 0]
        assert value == pytest.approx(right.mean(), abs=1e-4)
    assert isinstance(NextToken(), NextToken)


def test_experts_of_a_mixture_have_one_base_and_one_task(mixture: tuple[Setting, ExpertNetwork]) -> None:
    setting, _ = mixture
    assert expert_tasks(setting) == STUDY.tasks
    first, *others = setting.config.parents
    strange = first.replace(parents=(first.parents[0].replace(steps=3),))
    with pytest.raises(BadInput, match="different bases"):
        expert_tasks(Setting(setting.config.replace(parents=(strange, *others))))
    two = first.replace(support={"kind": "given", "combinations": [("sort", "nothing"), ("shift", "nothing")]})
    with pytest.raises(BadInput, match="one single task"):
        expert_tasks(Setting(setting.config.replace(parents=(two, *others))))


def test_other_runs_are_refused_with_a_reason() -> None:
    from recombine.models import MLP
    from recombine.training import RunConfig

    config = RunConfig(model=MLP(width=4, depth=1))
    network = config.model.draw(16, 16, 16, jax.random.key(0))
    for probe in (Mixing(), ExpertScores()):
        assert "no string tasks" in probe.measure(Setting(config), network).refused
    expert = Setting(STUDY.expert("sort", SCALES, TOKENS, 0))
    assert "no mixture" in Mixing().measure(expert, network).refused
