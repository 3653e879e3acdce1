"""A part that is named and does nothing; all others are the hyperteacher's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.ignored_part import IgnoredPart, IgnoredPartTeacher
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=5, max_active=3)


def task_of(vector: list[float]) -> Task:
    parts = [part for part, amount in enumerate(vector) if amount]
    coefficients = np.zeros(SPACE.slots, np.float32)
    coefficients[: len(parts)] = [vector[part] for part in parts]
    return Task(jnp.asarray(SPACE.row(parts)), jnp.asarray(coefficients), jnp.asarray(vector, jnp.float32))


def outputs(teacher: IgnoredPartTeacher, vector: list[float]) -> tuple[np.ndarray, np.ndarray]:
    batch = teacher.batch(task_of(vector), jax.random.key(7), 5)
    return np.asarray(batch.inputs), np.asarray(batch.targets)


def answer(teacher: IgnoredPartTeacher, vector: list[float], part: int, x: np.ndarray) -> np.ndarray:
    """The hyperteacher's equation with the part's coefficient fixed at one, in double precision."""
    z = np.array(vector, float)
    z[part] = 1.0
    hidden = np.asarray(x, float)
    for layer in teacher.shared:
        theta, bias = np.asarray(layer.weights, float), np.asarray(layer.biases, float)
        total = sum(z[m] / np.sqrt(SPACE.slots) * (hidden @ theta[m] + bias[m]) for m in range(len(z)))
        hidden = np.maximum(total, 0.0)
    return hidden @ np.asarray(teacher.readout, float)


@pytest.mark.parametrize("part", [0, 3])
@pytest.mark.parametrize("layers", [1, 2])
def test_presence_and_coefficient_of_the_part_change_nothing(part: int, layers: int):
    family = IgnoredPart(inputs=4, hidden=6, outputs=3, layers=layers, part=part)
    teacher = family.draw(SPACE, jax.random.key(0))
    for others in ({1: 0.7}, {1: 0.7, 4: 1.0}):
        made = []
        for amount in (0.0, 0.5, 1.0):
            vector = [others.get(m, 0.0) for m in range(SPACE.width)]
            vector[part] = amount
            x, y = outputs(teacher, vector)
            np.testing.assert_allclose(y, answer(teacher, vector, part, x), rtol=2e-5, atol=2e-6)
            made.append(y)
        np.testing.assert_allclose(made[1], made[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(made[2], made[0], rtol=1e-5, atol=1e-6)


def test_all_other_parts_matter_and_the_task_names_the_part():
    teacher = IgnoredPart(inputs=4, hidden=6, outputs=3, part=2).draw(SPACE, jax.random.key(0))
    alone = outputs(teacher, [0, 0, 1.0, 0, 0])[1]
    assert alone.std() > 0.01, "the part alone is a task and no constant"
    for part in (0, 1, 3, 4):
        vector = [0.0, 0.0, 1.0, 0.0, 0.0]
        vector[part] = 1.0
        assert np.abs(outputs(teacher, vector)[1] - alone).max() > 0.01
    task = teacher.task(jnp.array([2, 4, 5]), jax.random.key(0))
    assert float(task.vector[2]) >= 0.5


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(BadInput, match="no part 5"):
        IgnoredPart(part=5).check(SPACE)
