"""The theorem's network: within its bound, falling with the square of the knots, no larger for more modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher, HyperteacherTeacher
from recombine.families.lookup import Lookup
from recombine.models.constructed import Constructed
from recombine.models.mlp import MLPNetwork
from recombine.overrides import validate
from recombine.probes.scores import Scores
from recombine.probes.sup_error import SupError
from recombine.recipes.fast import Fast
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.store.store import Store
from recombine.testing import check_component
from recombine.training.config import RunConfig
from recombine.training.trainer import train

KEY = jax.random.key(0)
SMALL = Hyperteacher(inputs=3, hidden=4, outputs=2)


@eqx.filter_jit
def draw(family: Hyperteacher, space: Any, key: jax.Array) -> HyperteacherTeacher:
    return family.draw(space, key)


@eqx.filter_jit
def build(model: Constructed, teacher: HyperteacherTeacher) -> MLPNetwork:
    shape = teacher.shape
    return model.build(teacher, teacher.space.width, shape.inputs, shape.outputs, KEY)


def teacher_of(modules: int, active: int = 2, family: Hyperteacher = SMALL, seed: int = 0) -> HyperteacherTeacher:
    return draw(family, SubsetSpace(modules=modules, max_active=active), jax.random.key(seed))


@eqx.filter_jit
def errors(network: MLPNetwork, teacher: HyperteacherTeacher, key: jax.Array, tasks: int, samples: int) -> jax.Array:
    """The largest error of each of some random tasks."""

    def one(key: jax.Array) -> jax.Array:
        by_row, by_task, by_batch = jax.random.split(key, 3)
        task = teacher.task(teacher.space.sample(by_row), by_task)
        batch = teacher.batch(task, by_batch, samples)
        return jnp.abs(network(task.vector, batch.inputs) - batch.targets).max()

    return jax.lax.map(one, jax.random.split(key, tasks))


def largest(model: Constructed, teacher: HyperteacherTeacher, tasks: int = 200, samples: int = 50) -> float:
    return float(errors(build(model, teacher), teacher, jax.random.key(1), tasks, samples).max())


def naive(teacher: HyperteacherTeacher, knots: int, vector: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """The same approximation by numpy's interpolation: every square between its knots by a straight line."""
    (modules,), scale = teacher.shared, teacher.space.slots**-0.5
    weights = np.tensordot(scale * vector, np.asarray(modules.weights, float), 1)
    biases = scale * vector @ np.asarray(modules.biases, float)
    reach = 1 + teacher.space.slots**0.5 * np.abs(modules.weights).max()
    grid = np.linspace(-reach, reach, knots + 1)

    def square(values: np.ndarray) -> np.ndarray:
        return np.interp(values, grid, grid**2)

    x = inputs[:, :, None]
    products = (square(x + weights) - square(x - weights)) / 4
    return np.maximum(products.sum(1) + biases, 0) @ np.asarray(teacher.readout, float)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.integers(0, 2**16), st.sampled_from([2, 4, 10]))
def test_equals_interpolation_by_numpy(seed: int, knots: int):
    teacher = teacher_of(modules=5)
    network = build(Constructed(knots=knots), teacher)
    rng = np.random.default_rng(seed)
    vector = np.zeros(5, np.float32)
    vector[rng.choice(5, 2, replace=False)] = rng.uniform(0, 1, 2)
    inputs = rng.uniform(-1, 1, (6, 3)).astype(np.float32)
    found = network(jnp.asarray(vector), jnp.asarray(inputs))
    np.testing.assert_allclose(found, naive(teacher, knots, vector, inputs), rtol=1e-4, atol=1e-4)


def test_the_error_falls_with_the_square_of_the_knots():
    teacher, knots = teacher_of(6, 3), np.array([4, 12, 36])
    models = [Constructed(knots=int(number)) for number in knots]
    found = np.array([largest(model, teacher) for model in models])
    bounds = np.array([model.bound(teacher) for model in models])
    assert (found <= bounds).all()
    assert (found > bounds / 100).all(), "a bound that says something"
    np.testing.assert_allclose(bounds * knots**2, bounds[0] * knots[0] ** 2, rtol=1e-6)
    slope = np.polyfit(np.log(knots), np.log(found), 1)[0]
    assert -2.3 < slope < -1.7


@pytest.mark.parametrize("law", ["k-hot", "continuous"])
def test_every_law_is_within_the_bound(law: str):
    family = Hyperteacher(inputs=3, hidden=4, outputs=2, coefficients=law)  # type: ignore[arg-type]
    teacher = teacher_of(6, 3, family)
    assert largest(Constructed(), teacher) <= Constructed().bound(teacher)


def test_the_bound_is_that_of_its_parts():
    """By hand: reach, the error of a square, of a product, of a sum over inputs, and the readout."""
    teacher = teacher_of(6, 3)
    (modules,) = teacher.shared
    reach = 1 + 3 * float(np.abs(modules.weights).max()) / np.sqrt(3)
    grid = np.linspace(-reach, reach, 8 + 1)
    dense = np.linspace(-reach, reach, 80_001)
    square = np.abs(np.interp(dense, grid, grid**2) - dense**2).max()
    wanted = 3 * square / 4 * np.abs(teacher.readout).sum(0).max()
    assert Constructed(knots=8).bound(teacher) == pytest.approx(wanted, rel=1e-4)


def test_modules_cost_weights_and_no_neurons():
    model, sizes = Constructed(knots=8), (6, 24, 96)
    teachers = [teacher_of(modules, 2) for modules in sizes]
    networks = [build(model, teacher) for teacher in teachers]
    neurons = [[layer.weight.shape[1] for layer in network.layers[:-1]] for network in networks]
    assert {tuple(one) for one in neurons} == {model.widths(teachers[0])} == {(2 * 4 * 3 * 8 + 4, 4)}
    assert {model.neurons(teacher) for teacher in teachers} == {sum(neurons[0])}
    weights = [sum(leaf.size for leaf in jax.tree.leaves(network)) for network in networks]
    assert weights == [model.weights(teacher) for teacher in teachers]
    assert np.diff(weights).tolist() == [neurons[0][0] * 18, neurons[0][0] * 72]
    found = [largest(model, teacher) for teacher in teachers]
    assert max(found) < 2 * min(found)


def test_it_needs_neither_biases_nor_subsets():
    bare = Hyperteacher(inputs=3, hidden=4, outputs=2, bias=False)
    toys = ProductSpace(factors={"colour": 2, "shape": 3})  # type: ignore[arg-type]
    for teacher in (teacher_of(6, 2, bare), draw(SMALL, toys, KEY)):
        assert largest(Constructed(), teacher) <= Constructed().bound(teacher)


@pytest.mark.slow
def test_the_full_size_is_where_it_was_measured():
    """M = 16, K = 3 with the default teacher; flat in the number of modules."""
    family = Hyperteacher()
    for knots, low, high in ((8, 0.1, 0.4), (32, 0.006, 0.025)):
        for modules in (8, 16, 128):
            teacher, model = teacher_of(modules, 3, family), Constructed(knots=knots)
            found = largest(model, teacher, tasks=256, samples=64)
            assert low < found < high
            assert 4 * found < model.bound(teacher) < 20 * found


def test_it_must_be_built_from_a_teacher():
    with pytest.raises(BadInput, match="built from a teacher"):
        Constructed().draw(5, 4, 3, KEY)


class OtherTeacher(HyperteacherTeacher):
    """Of the right form, but who knows how it composes."""


def refused() -> list[Any]:
    space = SubsetSpace(modules=6, max_active=2)
    deep = Hyperteacher(inputs=3, hidden=4, outputs=2, layers=2)
    plain = teacher_of(6)
    other = OtherTeacher(space=space, shape=SMALL, shared=plain.shared, readout=plain.readout)
    return [
        (Lookup(inputs=3, hidden=4, outputs=2).draw(space, KEY), "LookupTeacher"),
        (draw(deep, space, KEY), "one hidden layer.*layers=2"),
        (other, "OtherTeacher"),
    ]


def test_other_teachers_are_refused():
    for teacher, message in refused():
        with pytest.raises(BadInput, match=message):
            Constructed().build(teacher, 6, 3, 2, KEY)
        with pytest.raises(BadInput, match=message):
            Constructed().bound(teacher)


def test_codes_of_another_length_are_refused():
    with pytest.raises(BadInput, match="6 numbers; the code has 12") as caught:
        Constructed().build(teacher_of(6), 12, 3, 2, KEY)
    assert caught.value.fix == "encoding=identity"


@pytest.mark.parametrize("knots", [0, 1, 7, -2])
def test_knots_are_an_even_number(knots: int):
    with pytest.raises(ValidationError):
        Constructed(knots=knots)
    check_component(Constructed(knots=6))


def test_it_is_a_run_of_no_steps(tiny: Callable[..., RunConfig], tmp_path: Path):
    """Made without training, scored and measured like any other, and the same after the store."""
    config = tiny(model=Constructed(knots=16), recipe=Fast(steps=0))
    outcome = train(config)
    assert outcome.steps == 0 and not outcome.curves
    setting = outcome.setting
    assert isinstance(outcome.network, MLPNetwork)
    jax.tree.map(np.testing.assert_array_equal, outcome.network, build(config.model, setting.teacher))
    scores = Scores(draws=2, samples=16).measure(setting, outcome.network).summary
    assert min(scores["r2_in"], scores["r2_held_out"]) > 0.99
    measured = SupError(tasks=64, samples=16).measure(setting, outcome.network).summary
    assert 0 < measured["sup_error"] <= config.model.bound(setting.teacher)
    assert measured["neurons"] == config.model.neurons(setting.teacher)
    assert measured["weights"] == config.model.weights(setting.teacher)
    store = Store(tmp_path / "store")
    store.commit(outcome)
    jax.tree.map(np.testing.assert_array_equal, store.load(config).network, outcome.network)


def test_another_familys_teacher_is_refused():
    teacher = Lookup(inputs=3, hidden=4, outputs=2).draw(SubsetSpace(modules=6, max_active=2), jax.random.key(0))
    with pytest.raises(BadInput, match="LookupTeacher"):
        Constructed().build(teacher, 6, 3, 2, jax.random.key(1))


@pytest.mark.parametrize(
    "changes", [{"encoding": "orthogonal"}, {"family": "lookup"}, {"family": {"kind": "hyperteacher", "layers": 2}}]
)
def test_a_run_that_it_cannot_serve_is_refused_before_anything_is_drawn(changes):
    with pytest.raises(BadInput, match="constructed"):
        validate(RunConfig, {"model": "constructed", **changes})
