"""Training: the same bits every time, alone or beside others; it stops where it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from recombine.models.base import Model, Network, Trace
from recombine.recipes.paper import Paper
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.outcome import Outcome
from recombine.training.prepare import Setting
from recombine.training.program import Program, stack, unstack
from recombine.training.progress import Progress
from recombine.training.trainer import Trainer, train

Tiny = Callable[..., RunConfig]
Same = Callable[[Any, Any], bool]


def paper(**changes: Any) -> Paper:
    return Paper(**{"learning_rate": 0.01, "steps": 30, "tasks": 8, "samples": 4, **changes})


def beside(tiny: Tiny) -> list[RunConfig]:
    """Runs that differ in all that may differ within a bucket."""
    return [
        tiny(seeds=Seeds.replicate(7), recipe=paper(steps=44, learning_rate=0.03)),
        tiny(support=Random(number=9), recipe=paper(steps=12)),
        tiny(seeds=Seeds(data=3), recipe=paper(steps=20)),
    ]


def test_the_same_run_twice_has_the_same_bits(tiny: Tiny, trainer: Trainer, same_run: Same):
    one, same = next(trainer.train([tiny()])), train(tiny())
    assert same_run(one, same)
    assert one.steps == 30
    assert [point["step"] for point in one.curves] == [10, 20, 30]
    assert one.failed_at is None
    assert one.reached is None


def test_each_seed_matters(tiny: Tiny, trainer: Trainer, same_bits: Same):
    seeds = [Seeds(), Seeds(teacher=1), Seeds(support=1), Seeds(init=1), Seeds(data=1)]
    networks = [outcome.network for outcome in trainer.train([tiny(seeds=one) for one in seeds])]
    assert not any(same_bits(networks[0], other) for other in networks[1:])
    # The first weights follow their own seed alone.
    first = [Setting(tiny(seeds=one)).network() for one in seeds]
    assert [same_bits(first[0], other) for other in first] == [True, True, True, False, True]


def test_a_run_does_not_depend_on_its_neighbours(tiny: Tiny, trainer: Trainer, same_run: Same):
    """Equal number of stack_size, equal bits: whoever else is in the stack, and in whatever run_arrays."""
    run, others = tiny(), beside(tiny)
    first, *_ = trainer.train([run, others[0], others[1]], stack_size=3)
    *_, last = trainer.train([others[1], others[2], run], stack_size=3)
    (padded,) = trainer.train([run], stack_size=3)
    assert same_run(first, last)
    assert same_run(first, padded)
    assert first.stack_size == 3


def test_stacked_equals_alone_within_tolerance(tiny: Tiny, trainer: Trainer):
    run = tiny()
    (alone,) = trainer.train([run], stack_size=1)
    stacked = next(trainer.train([run, *beside(tiny)[:2]], stack_size=3))
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4), alone.network, stacked.network
    )
    for one, two in zip(alone.curves, stacked.curves, strict=True):
        assert one == pytest.approx(two, rel=1e-3, abs=1e-4)


def test_more_runs_than_lanes(tiny: Tiny, trainer: Trainer, same_run: Same):
    runs = [tiny(), *beside(tiny)]
    outcomes = list(trainer.train(runs, stack_size=3))
    assert [outcome.config for outcome in outcomes] == runs
    for run, outcome in zip(runs, outcomes, strict=True):
        assert same_run(outcome, next(trainer.train([run], stack_size=3)))


def test_an_idle_lane_stays_as_it_is(tiny: Tiny, trainer: Trainer, same_bits: Same):
    config = tiny()
    setting = Setting(config)
    state, run_arrays = stack([setting.state()] * 3), stack([setting.arrays()] * 3)
    active = jnp.array([True, False, True])
    advance = trainer.compiler.advance(Program.of(config, 3), state, run_arrays, active)
    after, evaluation = advance(stack([setting.state()] * 3), run_arrays, active)
    assert same_bits(unstack(after, 1, 3), setting.state())
    assert not same_bits(unstack(after, 0, 3).network, setting.network())
    assert same_bits(unstack(after, 0, 3), unstack(after, 2, 3))
    assert int(after.step[0]) == 10
    np.testing.assert_array_equal(evaluation.losses[1], 0)


def test_steps_need_not_be_a_multiple_of_a_chunk(tiny: Tiny, trainer: Trainer, same_bits: Same):
    """The steps beyond the last do nothing: 13 steps in chunks of 10 are 13 steps in chunks of 1."""
    (outcome,) = trainer.train([tiny(recipe=paper(steps=13))], stack_size=1)
    assert outcome.steps == 13
    assert [point["step"] for point in outcome.curves] == [10, 13]
    (fine,) = trainer.train([tiny(recipe=paper(steps=13), eval_every=13)], stack_size=1)
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6), outcome.network, fine.network
    )
    losses = [point["loss"] for point in outcome.curves]
    assert (10 * losses[0] + 3 * losses[1]) / 13 == pytest.approx(fine.curves[0]["loss"], rel=1e-4)
    (longer,) = trainer.train([tiny(recipe=paper(steps=20))], stack_size=1)
    assert longer.curves[0] == outcome.curves[0]
    assert not same_bits(longer.network, outcome.network)


def test_a_target_stops_a_run_on_its_held_out_validation_stream(tiny: Tiny, trainer: Trainer, same_bits: Same):
    # So slow that every chunk brings something.
    def run(steps: int, target: float | None = None) -> RunConfig:
        return tiny(recipe=paper(steps=steps, learning_rate=0.002), seeds=Seeds.replicate(1), target=target)

    (full,) = trainer.train([run(60)], stack_size=1)
    inside, outside = ([point[f"score_{name}"] for point in full.curves] for name in ("in", "held_out"))
    # Between the two streams, so that the trained one would stop the run too early.
    target = (inside[1] + outside[1]) / 2
    first = next(index for index, score in enumerate(outside) if score >= target)
    assert inside[1] > target
    assert 1 < first < len(outside) - 1, "it is reached on the way"
    (stopped,) = trainer.train([run(60, target)], stack_size=1)
    assert stopped.reached is True
    assert stopped.steps == full.curves[first]["step"]
    assert stopped.curves == full.curves[: first + 1]
    (same,) = trainer.train([run(stopped.steps)], stack_size=1)
    assert same_bits(same.network, stopped.network), "the rate is constant here: stopped early is trained for less"


def test_a_target_that_is_not_reached(tiny: Tiny, trainer: Trainer):
    (outcome,) = trainer.train([tiny(target=0.999)], stack_size=1)
    assert outcome.reached is False
    assert outcome.steps == 30


def test_a_run_that_reached_its_target_leaves_the_others_alone(tiny: Tiny, trainer: Trainer, same_run: Same):
    others = beside(tiny)[:2]
    early, *rest = trainer.train([tiny(target=-1e9), *others], stack_size=3)
    assert (early.steps, early.reached) == (10, True)
    for config, outcome in zip(others, rest, strict=True):
        assert same_run(outcome, next(trainer.train([config], stack_size=3)))


def losses(config: RunConfig, steps: int) -> list[float]:
    """The loss of each step, one by one."""
    setting, program = Setting(config), Program.of(config)
    run_arrays, state = setting.arrays(), setting.state()
    step = jax.jit(program._step)
    found = []
    for _ in range(steps):
        state, loss = step(state, run_arrays)
        found.append(float(loss))
    return found


@pytest.mark.parametrize("rate", [1e30, 1e13])
def test_a_loss_that_is_not_finite_fails_the_run_at_its_step(rate: float, tiny: Tiny, trainer: Trainer):
    bad = tiny(recipe=paper(learning_rate=rate))
    first = next(number for number, loss in enumerate(losses(bad, 12)) if not np.isfinite(loss))
    outcomes = list(trainer.train([bad, tiny()], stack_size=3))
    assert outcomes[0].failed_at == first
    assert first > 0
    assert outcomes[0].steps < 30, "it is not trained to the end"
    assert outcomes[1].failed_at is None
    assert np.isfinite(outcomes[1].curves[-1]["score_held_out"])


def test_a_failed_run_leaves_the_others_alone(tiny: Tiny, trainer: Trainer, same_run: Same):
    bad, *others = tiny(recipe=paper(learning_rate=1e30)), *beside(tiny)[:2]
    for config, outcome in zip(others, list(trainer.train([bad, *others], stack_size=3))[1:], strict=True):
        assert same_run(outcome, next(trainer.train([config], stack_size=3)))


def test_a_run_that_its_last_update_broke_has_failed(tiny: Tiny, trainer: Trainer):
    """No loss is computed after it, but the network is worth nothing."""
    (outcome,) = trainer.train([tiny(recipe=paper(learning_rate=1e30, steps=1))], stack_size=1)
    assert np.isfinite(outcome.curves[0]["loss"])
    assert outcome.failed_at == 1


class Log(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def started(self, runs: int, steps: int) -> None:
        self.told.append(("started", (runs, steps)))

    def compiling(self, config: RunConfig) -> None:
        self.told.append(("compiling", config.run_id))

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self.told.append(("stepped", (steps, config.run_id, evaluation["step"])))

    def finished(self, outcome: Outcome) -> None:
        self.told.append(("finished", outcome.config.run_id))


def test_progress_is_told_all_steps(tiny: Tiny):
    log = Log()
    runs = [tiny(recipe=paper(steps=13)), tiny()]
    list(Trainer(progress=log).train(runs, stack_size=1))
    assert log.told[0] == ("started", (2, 43))
    for run in runs:
        made = [what[0] for name, what in log.told if name == "stepped" and what[1] == run.run_id]
        assert sum(made) == run.recipe.steps
    assert [what for name, what in log.told if name == "finished"] == [run.run_id for run in runs]


class Foreign(Network):
    """As an Equinox user would write it: with an activation function among its leaves, a number and an index."""

    layers: eqx.nn.MLP
    scale: float
    order: Array

    def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
        def one(x: Array) -> Array:
            return self.scale * self.layers(jnp.concatenate([code, x])[self.order])

        return jax.vmap(one)(inputs), {}


class ForeignModel(Model):
    """Draws such a network."""

    kind: Literal["foreign"] = "foreign"

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Foreign:
        inner = eqx.nn.MLP(code_size + input_size, output_size, 8, 1, key=key)
        return Foreign(inner, 2.0, jnp.arange(code_size + input_size)[::-1])


def test_a_model_may_hold_what_is_no_weight(
    tiny: Tiny, tmp_path: Any, same_bits: Same, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("recombine.training.trainer.CHECKPOINT_SECONDS", -1.0)
    config = tiny(model=ForeignModel())
    trainer = Trainer(tmp_path)
    one, two = trainer.train([config, config.model_copy(update={"seeds": Seeds.replicate(1)})], stack_size=2)
    assert one.curves[-1]["loss"] < one.curves[0]["loss"]
    assert not same_bits(one.network, two.network)
    assert isinstance(one.network, Foreign)
    assert one.network.scale == 2.0
    np.testing.assert_array_equal(one.network.order, np.arange(10)[::-1])
    assert trainer.compiler.compilations == 1
    # From the checkpoint at step 20 the last chunk is made again.
    again = next(trainer.train([config], stack_size=2))
    assert trainer.compiler.compilations == 1
    assert same_bits(again.network, one.network)
