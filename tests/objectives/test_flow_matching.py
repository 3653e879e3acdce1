"""Flow matching: known velocities, the order of the sampler, guidance; and that a small U-Net learns to draw."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from jaxtyping import Array, Float
from pydantic import ValidationError
from scipy.linalg import expm
from scipy.special import expit
from scipy.stats import norm

from recombine.families.base import Batch, Family, TargetKind, Task, TaskScores, Teacher
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.base import Edit, Network, Trace, unedited
from recombine.models.unet import UNet
from recombine.objectives.flow_matching import CENTRE, WIDTH, FlowMatching, integrated
from recombine.objectives.regression import Regression
from recombine.recipes.fast import Fast
from recombine.spaces.product import ProductSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.trainer import Trainer

TASKS, SAMPLES, PIXELS = 4, 3, 12


class Towards(Network):
    """Knows the image by heart, since it is the code: moves straight to it."""

    weight: Float[Array, ""]

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        points, time = inputs[:, :-1], inputs[:, -1:]
        return self.weight * (code - points) / (1 - time), {}


class Turning(Network):
    """A linear field whose matrix is its code, the same at all times."""

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        size = inputs.shape[1] - 1
        return inputs[:, :-1] @ code.reshape(size, size), {}


def images(seed: int = 0) -> tuple[Array, Batch]:
    """Tasks with one image each, which is the code too."""
    rng = np.random.default_rng(seed)
    codes = jnp.asarray(rng.uniform(-1, 1, size=(TASKS, PIXELS)), jnp.float32)
    noise = jnp.asarray(rng.normal(size=(TASKS, SAMPLES, PIXELS)), jnp.float32)
    inputs = jnp.concatenate([noise, jnp.zeros((TASKS, SAMPLES, 1))], axis=-1)
    targets = jnp.broadcast_to(codes[:, None], (TASKS, SAMPLES, PIXELS))
    return codes, jax.vmap(Batch)(inputs, targets, jnp.ones((TASKS, SAMPLES)))


def loss_of(objective: FlowMatching, network: Network, codes: Array, batch: Batch) -> float:
    optimiser = optax.sgd(1.0)
    state = objective.init(network, optimiser)
    step = eqx.filter_jit(objective.step)
    after, loss = step(state, codes, batch, jax.random.key(0), optimiser, jnp.float32(0.1))
    assert int(after.step) == 1
    return float(loss)


def test_the_exact_velocity_has_no_loss_and_another_has():
    codes, batch = images()
    objective = FlowMatching(condition_dropout=0)
    assert loss_of(objective, Towards(jnp.array(1.0)), codes, batch) == pytest.approx(0, abs=1e-6)
    # Half the velocity: a quarter of its mean square, that of a number in [-1, 1] and of noise.
    assert loss_of(objective, Towards(jnp.array(0.5)), codes, batch) == pytest.approx((1 / 3 + 1) / 4, rel=0.3)


def test_what_is_masked_does_not_count():
    codes, batch = images()
    wrong = batch.targets.at[:, 0].add(50.0)
    spoilt = eqx.tree_at(lambda one: (one.targets, one.mask), batch, (wrong, batch.mask.at[:, 0].set(0)))
    assert loss_of(FlowMatching(condition_dropout=0), Towards(jnp.array(1.0)), codes, spoilt) == pytest.approx(
        0, abs=1e-6
    )


def test_straight_lines_arrive_in_any_number_of_steps():
    codes, batch = images()
    for steps in (1, 3, 20):
        drawn = FlowMatching(steps=steps, guidance=1.0).evaluate(
            Towards(jnp.array(1.0)), codes, batch, jax.random.key(0)
        )
        np.testing.assert_allclose(drawn, batch.targets, atol=1e-5)


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("heun", 2)])
def test_a_linear_field_is_integrated_to_the_order_of_the_solver(solver: Any, order: int):
    """And each step is the solver's own polynomial of the matrix, exactly."""
    rng = np.random.default_rng(0)
    matrix, start = rng.normal(size=(3, 3)) / 2, rng.normal(size=(5, 3))
    errors = []
    for steps in (8, 16, 32):
        found = integrated(lambda points, time: points @ jnp.asarray(matrix), jnp.asarray(start), steps, solver)
        short = matrix / steps
        power = np.eye(3) + short + (short @ short / 2 if solver == "heun" else 0)
        np.testing.assert_allclose(found, start @ np.linalg.matrix_power(power, steps), rtol=1e-4, atol=1e-5)
        errors.append(np.abs(start @ np.linalg.matrix_power(power, steps) - start @ expm(matrix)).max())
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), order, atol=0.25)


@pytest.mark.parametrize(("solver", "wanted"), [("euler", 0.375), ("heun", 0.5)])
def test_steps_go_from_time_0_to_time_1(solver: Any, wanted: float):
    found = integrated(lambda points, time: jnp.full_like(points, time), jnp.zeros((2, 1)), 4, solver)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_drawing_follows_the_networks_field_from_the_noise_of_the_batch():
    _, batch = images()
    small = eqx.tree_at(lambda one: one.inputs, batch, 0.1 * batch.inputs)
    matrices = jnp.asarray(np.random.default_rng(1).normal(size=(TASKS, PIXELS**2)), jnp.float32) / PIXELS
    objective = FlowMatching(steps=5, guidance=1.0)
    drawn = objective.evaluate(Turning(), matrices, small, jax.random.key(0))
    for task in range(TASKS):
        power = np.linalg.matrix_power(np.eye(PIXELS) + matrices[task].reshape(PIXELS, PIXELS) / 5, 5)
        np.testing.assert_allclose(drawn[task], small.inputs[task, :, :-1] @ power, rtol=1e-3, atol=1e-5)
    again = objective.evaluate(Turning(), matrices, small, jax.random.key(1))
    np.testing.assert_array_equal(again, drawn)
    far = objective.evaluate(Turning(), 5 * matrices, batch, jax.random.key(0))
    assert np.abs(far).max() == 1, "pixels end between -1 and 1"


def test_guidance_goes_from_no_code_through_the_code_and_beyond():
    codes, batch = images()
    network, points, time = Towards(jnp.array(1.0)), batch.inputs[..., :-1], jnp.float32(0.25)
    velocity = {
        guidance: FlowMatching(guidance=guidance).velocity(network, codes, points, time)
        for guidance in (1.0, 1.0 + 1e-6, 3.0)
    }
    told = (codes[:, None] - points) / 0.75
    np.testing.assert_allclose(velocity[1.0], told, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(velocity[1.0 + 1e-6], told, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(velocity[3.0], 3 * told - 2 * (0 - points) / 0.75, rtol=1e-4, atol=1e-5)


def test_withheld_codes_are_zeros_and_the_others_whole():
    codes = jnp.asarray(np.random.default_rng(0).normal(size=(4000, 3)), jnp.float32)
    found = np.asarray(FlowMatching(condition_dropout=0.2).drop_conditions(codes, jax.random.key(0)))
    gone = ~found.any(axis=1)
    np.testing.assert_array_equal(found[~gone], np.asarray(codes)[~gone])
    assert gone.mean() == pytest.approx(0.2, abs=0.03)
    np.testing.assert_array_equal(FlowMatching(condition_dropout=0).drop_conditions(codes, jax.random.key(0)), codes)


def test_examples_lie_on_the_line_between_noise_and_image():
    _, batch = images()
    time = jnp.asarray(np.random.default_rng(2).uniform(size=(TASKS, SAMPLES)), jnp.float32)
    seen = FlowMatching.examples(batch, time, jax.random.key(0))
    points, share = seen.inputs[..., :-1], time[..., None]
    np.testing.assert_array_equal(seen.inputs[..., -1], time)
    np.testing.assert_allclose(points + (1 - share) * seen.targets, batch.targets, atol=1e-5)
    noise = points - share * seen.targets
    assert np.std(noise) == pytest.approx(1, abs=0.15)
    assert np.mean(noise) == pytest.approx(0, abs=0.2)


def test_noised_batches_go_from_noise_to_images_for_one_task_as_for_many():
    _, batch = images()
    one = jax.tree.map(lambda leaf: leaf[0], batch)
    for which in (batch, one):
        first, middle, last = (FlowMatching.examples(which, time, jax.random.key(0)).inputs for time in (0.0, 0.4, 1.0))
        np.testing.assert_allclose(last[..., :-1], which.targets, atol=1e-6)
        np.testing.assert_allclose(middle[..., :-1], 0.6 * first[..., :-1] + 0.4 * which.targets, atol=1e-5)
        assert np.unique(middle[..., -1]) == pytest.approx(0.4)
        assert not np.allclose(first, FlowMatching.examples(which, 0.0, jax.random.key(1)).inputs)


@pytest.mark.parametrize("times", ["uniform", "logit-normal"])
def test_times_follow_their_law(times: Any):
    """Mean and spread are those of the logistic of a normal number, by numerical integration, or of a uniform one."""
    density = norm(CENTRE, WIDTH).expect
    mean = density(expit) if times == "logit-normal" else 0.5
    square = density(lambda x: expit(x) ** 2) if times == "logit-normal" else 1 / 3
    found = np.asarray(FlowMatching(times=times).sample_times((20000,), jax.random.key(0)))
    assert found.min() >= 0
    assert found.max() < 1
    assert found.mean() == pytest.approx(mean, abs=0.01)
    assert found.std() == pytest.approx((square - mean**2) ** 0.5, abs=0.005)


INKS = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32)


def spot(ink: Array, place: Array, shift: Array, pixels: int) -> Float[Array, " pixel"]:
    """A square of a colour in one of four corners, on black."""
    middle = pixels * (0.27 + 0.46 * jnp.stack([place // 2, place % 2])) + shift
    apart = jnp.abs(jnp.arange(pixels)[:, None] + 0.5 - middle)
    inside = jnp.clip(pixels / 6 + 0.5 - apart, 0, 1)
    covered = inside[:, 0, None, None] * inside[None, :, 1, None]
    return (covered * (jnp.asarray(INKS)[ink] + 1) - 1).ravel()


class SpotTeacher(Teacher):
    space: ProductSpace = eqx.field(static=True)
    pixels: int = eqx.field(static=True)

    def task(self, row: Array, key: Array) -> Task:
        return Task(row, jnp.ones(len(row)), self.space.vector(row).astype(jnp.float32))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        by_shift, by_noise = jax.random.split(key)
        label = task.combination - jnp.array(self.space.offsets)
        shifts = jax.random.uniform(by_shift, (samples, 2), minval=-0.5, maxval=0.5)
        drawn = jax.vmap(lambda shift: spot(label[0], label[1], shift, self.pixels))(shifts)
        noise = jax.random.normal(by_noise, drawn.shape)
        inputs = jnp.concatenate([noise, jnp.zeros((samples, 1))], axis=1)
        return Batch(inputs, drawn, jnp.ones(samples), jnp.broadcast_to(label, (samples, len(label))))


class Spots(Family):
    """Right is what is nearest to the picture that was asked for, among all there are."""

    kind: Literal["spots"] = "spots"
    metric: ClassVar[str] = "success"
    targets: ClassVar[TargetKind] = "images"
    defaults: ClassVar[dict[str, Any]] = {"objective": "flow-matching", "model": "unet"}
    pixels: int = 8

    @property
    def input_size(self) -> int:
        return 3 * self.pixels**2 + 1

    @property
    def output_size(self) -> int:
        return 3 * self.pixels**2

    def draw(self, space: Any, key: Array) -> SpotTeacher:
        return SpotTeacher(space, self.pixels)

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        labels = jnp.asarray([(ink, place) for ink in range(3) for place in range(4)])
        every = jax.vmap(lambda one: spot(one[0], one[1], jnp.zeros(2), self.pixels))(labels)
        nearest = jnp.argmin(jnp.sum((predictions[:, None] - every) ** 2, axis=-1), axis=1)
        right = jnp.all(labels[nearest] == batch.labels, axis=-1)
        return {"right": jnp.sum(right).astype(jnp.float32), "images": jnp.sum(batch.mask)}

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return jnp.sum(scores["right"]) / jnp.sum(scores["images"])

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        return {"success": float(np.sum(scores["right"]) / np.sum(scores["images"]))}

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        return tasks.groupby(by)[["right", "images"]].sum().reset_index()


SPACE = ProductSpace(factors={"ink": 3, "place": 4})  # type: ignore[arg-type]


def run(**changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "family": Spots(),
        "space": SPACE,
        "support": Random(held_out=0.25),
        "model": UNet(width=12, condition=32),
        "objective": FlowMatching(guidance=2.0, steps=8),
        "recipe": Fast(steps=200, tasks=32, samples=1),
        "eval_every": 200,
        "validation_tasks": 4,
    }
    return RunConfig(**{**fields, **changes})


def test_a_small_network_learns_to_draw_what_it_is_told():
    """Through the compiled loop as it is for every family."""
    config = run()
    (outcome,) = Trainer().train([config])
    assert outcome.failed_at is None
    setting = Setting(config)
    by_code, by_batch = jax.random.split(jax.random.key(5))
    rows = jnp.asarray(setting.regions.require("trained", 9))
    tasks = jax.vmap(setting.teacher.task)(rows, jax.random.split(by_code, 9))
    batch = jax.vmap(lambda task, key: setting.teacher.batch(task, key, 4))(tasks, jax.random.split(by_batch, 9))

    @eqx.filter_jit
    def success(network: Network) -> Array:
        drawn = config.objective.evaluate(network, tasks.vector, batch, by_code)
        return config.family.headline(jax.vmap(config.family.score)(batch, drawn))

    assert success(outcome.network) > 0.8
    assert success(setting.network()) < 0.4
    assert outcome.curves[-1]["score_in"] > 0.7


def test_half_precision_steps_nearly_alike():
    """Weights stay in float32."""
    size = 3 * 4**2
    network = UNet(width=4, levels=1, condition=8).draw(2, size + 1, size, jax.random.key(0))
    rng = np.random.default_rng(0)
    inputs, targets = (jnp.asarray(rng.normal(size=(4, 2, end)), jnp.float32) for end in (size + 1, size))
    batch = jax.vmap(Batch)(inputs, targets, jnp.ones((4, 2)))
    objective, optimiser = FlowMatching(), optax.sgd(1.0)
    losses = []
    for precision in ("float32", "bfloat16"):
        after, loss = eqx.filter_jit(objective.step)(
            objective.init(network, optimiser),
            jnp.ones((4, 2)),
            batch,
            jax.random.key(2),
            optimiser,
            jnp.float32(0.01),
            jnp.dtype(precision),
        )
        assert {leaf.dtype for leaf in jax.tree.leaves(after.network)} == {jnp.dtype("float32")}
        losses.append(float(loss))
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[1] != losses[0]


def test_it_is_for_families_of_images():
    assert run().objective.serves == "images"
    with pytest.raises(ValidationError, match="objective=flow-matching"):
        run(objective=Regression())
    with pytest.raises(ValidationError, match="flow-matching"):
        RunConfig(family=Hyperteacher(), objective=FlowMatching())


@pytest.mark.parametrize(
    "fields",
    [{"condition_dropout": 1.0}, {"condition_dropout": -0.1}, {"guidance": 0}, {"steps": 0}, {"solver": "rk4"}],
)
def test_senseless_settings_are_refused(fields: dict[str, Any]):
    with pytest.raises(ValidationError):
        FlowMatching(**fields)
