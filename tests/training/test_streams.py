"""Trap 1 of the paper's code: its test stream was the beginning of its training stream. Ours never meet."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from recombine.families.base import Batch, TaskScores
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.base import Network, Trace
from recombine.models.mlp import MLP, MLPNetwork
from recombine.objectives.base import TrainState
from recombine.objectives.regression import Regression
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.supports.regions import side
from recombine.training.prepare import Setting
from recombine.training.program import Program
from recombine.training.streams import Stream, named_key, stream_key

SEEN: dict[str, list[np.ndarray]] = {"train": [], "evaluation": []}


class Recorder(Regression):
    """Keeps the inputs that training and validation show, and learns nothing."""

    kind: Literal["recorder"] = "recorder"  # type: ignore[assignment]

    def step(self, state: TrainState, codes: Array, batch: Batch, key: Array, *rest: Any) -> Any:
        SEEN["train"].append(np.asarray(batch.inputs).reshape(-1, 4))
        return TrainState(state.network, state.optimiser, state.step + 1), jnp.zeros(())

    def evaluate(self, network: Network, codes: Array, batch: Batch, key: Array) -> Array:
        if not isinstance(batch.inputs, jax.core.Tracer):
            SEEN["evaluation"].append(np.asarray(batch.inputs))
        return super().evaluate(network, codes, batch, key)


class Telling(Hyperteacher):
    """Its scores tell the inputs."""

    kind: Literal["telling"] = "telling"  # type: ignore[assignment]

    def score(self, batch: Batch, predictions: Array) -> TaskScores:
        return {**super().score(batch, predictions), "inputs": batch.inputs}


class OpenNetwork(MLPNetwork):
    """Its trace tells the inputs."""

    def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
        outputs, sites = super().trace(code, inputs)
        return outputs, {**sites, "inputs": inputs}


class Open(MLP):
    """Draws such a network."""

    kind: Literal["open"] = "open"  # type: ignore[assignment]

    def draw(self, *sizes: Any) -> OpenNetwork:
        return OpenNetwork(super().draw(*sizes).layers)


@pytest.fixture(scope="module")
def streams(tiny: Any) -> dict[str, np.ndarray]:
    """The inputs of every stream of one run, by the code that makes them."""
    config = tiny(objective=Recorder(), family=Telling(inputs=4, hidden=5, outputs=3), model=Open(width=4, depth=1))
    setting, program = Setting(config), Program.of(config)
    run_arrays, state = setting.arrays(), setting.state()
    for values in SEEN.values():
        values.clear()
    for _ in range(30):
        state, _ = program._step(state, run_arrays)
    program.evaluate(state, run_arrays)
    (evaluation,) = SEEN["evaluation"]
    assert evaluation.shape == (2 * config.validation_tasks, config.family.validation_samples, 4)
    scores = Scores(draws=2, samples=8).measure(setting, state.network)
    parts = Decodability(draws=2)._traced_regions(setting, state.network)
    regions, inputs = np.array(scores.columns["region"]), np.array(scores.columns["inputs"], np.float32)
    made = {
        "train": np.concatenate(SEEN["train"]),
        "validation, trained": evaluation[: config.validation_tasks],
        "validation, held out": evaluation[config.validation_tasks :],
        "test, trained": inputs[regions == "trained"],
        "test, held out": inputs[regions == "held_out"],
    }
    for region, part in parts.items():
        made[f"probe, {region}"] = np.concatenate([part.fit["inputs"], part.score["inputs"]])
    return {name: values.reshape(-1, 4).astype(np.float32) for name, values in made.items()}


def test_every_stream_was_recorded(streams: dict[str, np.ndarray]):
    assert len(streams["train"]) == 30 * 8 * 4
    assert len(streams) == 8
    assert all(len(values) >= 4 for values in streams.values())


def test_no_input_is_shown_twice_within_a_stream(streams: dict[str, np.ndarray]):
    for name, values in streams.items():
        assert len(np.unique(values, axis=0)) == len(values), name


def test_streams_are_pairwise_disjoint(streams: dict[str, np.ndarray]):
    rows = {name: {row.tobytes() for row in values} for name, values in streams.items()}
    for one, other in itertools.combinations(rows, 2):
        assert not rows[one] & rows[other], f"{one} and {other} share inputs"


def test_keys_never_meet():
    """By construction: the stream's name is folded in before the number, so no stream is another's beginning."""
    base = named_key(0, "data")
    keys = {
        tuple(np.asarray(jax.random.key_data(stream_key(base, stream, index))).tolist())
        for stream in Stream
        for index in range(100)
    }
    assert len(keys) == len(Stream) * 100
    tasks = jax.vmap(lambda index: jax.random.key_data(jax.random.split(stream_key(base, Stream.TRAIN, index), 3)))
    steps = np.asarray(tasks(jnp.arange(2000))).reshape(-1, 2)
    assert len(np.unique(steps, axis=0)) == len(steps)


def test_each_seed_draws_for_one_purpose_only(tiny: Any):
    """Purposes have different keys at equal seeds, and seeds beyond 32 bits are not cut short."""
    names = ("teacher", "encoding", "init", "data")
    seeds = (0, 1, 2, 2**32, 2**32 + 1, 2**63)
    keys = {tuple(np.asarray(jax.random.key_data(named_key(s, n))).tolist()) for s in seeds for n in names}
    assert len(keys) == len(seeds) * len(names)


def test_validation_and_test_combinations_are_disjoint_and_never_trained(tiny: Any):
    setting = Setting(tiny())
    space, seed = setting.config.space, setting.config.seeds.support
    validation = setting.validation_rows()
    test = Scores().rows(setting)["held_out"]
    assert len(validation) == setting.config.validation_tasks
    sets = [{tuple(row) for row in rows.tolist()} for rows in (validation, test, setting.support.rows)]
    for one, other in itertools.combinations(sets, 2):
        assert not one & other
    assert len(set.union(*sets)) == space.size, "and together they are the whole space"
    assert set(side(validation, seed)) == {"validation"}
    assert set(side(test, seed)) == {"test"}
    parts = Decodability(draws=1)._traced_regions(setting, setting.network())
    assert {tuple(row) for row in parts["held_out"].rows.tolist()} == sets[1]
    assert {tuple(row) for row in parts["validation"].rows.tolist()} == sets[0]
    assert {tuple(row) for row in parts["trained"].rows.tolist()} == sets[2]


def test_training_draws_only_from_the_support(tiny: Any):
    setting = Setting(tiny())
    sampler = setting.arrays().sampler
    rows = np.asarray(jax.vmap(sampler)(jax.random.split(jax.random.key(0), 2000)))
    assert setting.support.contains(rows).all()
    assert len(np.unique(rows, axis=0)) == setting.support.size
