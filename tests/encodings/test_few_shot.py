"""Examples of the task in place of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from recombine.encodings.few_shot import FewShot
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.training.prepare import Setting
from recombine.training.program import Program, draw_examples
from recombine.training.streams import Stream, stream_key

SPACE = SubsetSpace(modules=5, max_active=2)
FAMILY = Hyperteacher(inputs=4, hidden=5, outputs=3)


def pairs_of(code: Any, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.asarray(code).reshape(*np.shape(code)[:-1], -1, inputs + outputs)
    return pairs[..., :inputs], pairs[..., inputs:]


def test_shows_what_the_teacher_answers(tasks: Callable[..., Any]):
    teacher, some = tasks(SPACE, FAMILY, 6)
    encoder = FewShot(shots=7).draw(SPACE, FAMILY, jax.random.key(0))
    for index in range(6):
        task = jax.tree.map(lambda leaf, index=index: leaf[index], some)
        shown, answers = pairs_of(encoder(task, teacher, jax.random.key(index)), 4, 3)
        assert shown.shape == (7, 4)
        layers, readout = teacher.modules(task.combination)
        coefficients = np.asarray(task.coefficients) / SPACE.slots**0.5
        weights = np.einsum("s,sfh->fh", coefficients, layers[0].weights)
        hidden = np.maximum(shown @ weights + coefficients @ np.asarray(layers[0].biases), 0)
        np.testing.assert_allclose(answers, hidden @ np.asarray(readout), atol=1e-5)


def test_the_published_size():
    assert FewShot().size(SubsetSpace(modules=16, max_active=3), Hyperteacher()) == 1600


def test_examples_shown_are_never_those_to_answer(tiny: Callable[..., Any]):
    """Nor those of any other stream or step: each has inputs of its own."""
    config = tiny(encoding=FewShot(shots=20))
    run_arrays, program = Setting(config).arrays(), Program.of(config)
    seen: list[np.ndarray] = []
    draw = jax.jit(lambda rows, keys: program._examples(run_arrays, rows, keys, 20))
    for stream, step in ((Stream.TRAIN, 0), (Stream.TRAIN, 1), (Stream.VALIDATION_OUT, 0), (Stream.PROBE, 0)):
        keys = jax.random.split(stream_key(run_arrays.key, stream, step), 8)
        _, codes, batch = draw(run_arrays.held_out[:8], keys)
        seen += [pairs_of(codes, 4, 3)[0].reshape(-1, 4), np.asarray(batch.inputs).reshape(-1, 4)]
    every = np.concatenate(seen)
    assert len(every) == 4 * 2 * 8 * 20
    assert len(np.unique(every, axis=0)) == len(every)
    assert len(np.unique(every[:, 0])) > 0.99 * len(every)


def test_examples_are_fresh_each_time(tasks: Callable[..., Any]):
    teacher, some = tasks(SPACE, FAMILY, 1)
    task = jax.tree.map(lambda leaf: leaf[0], some)
    encoder = FewShot(shots=3).draw(SPACE, FAMILY, jax.random.key(0))
    codes = [np.asarray(encoder(task, teacher, jax.random.key(seed))) for seed in (1, 2, 1)]
    np.testing.assert_array_equal(codes[0], codes[2])
    assert not np.any(codes[0] == codes[1])


class WalkTeacher(Teacher):
    """Episodes of four steps that end after one to four; the answer is a class that the task shifts."""

    space: Space = eqx.field(static=True)

    def task(self, row: Array, key: Array) -> Task:
        ones = (row < self.space.width).astype(jnp.float32)
        return Task(row, ones, self.space.vector(row))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        by_input, by_end = jax.random.split(key)
        inputs = jax.random.uniform(by_input, (samples, 2), minval=0.5)
        ends = jax.random.randint(by_end, (samples,), 1, 5)[jnp.arange(samples) // 4]
        classes = (jnp.sum(task.vector * jnp.arange(len(task.vector))) + (inputs[:, 0] > 0.75)) % 3
        targets = jax.nn.one_hot(classes.astype(jnp.int32), 3)
        return Batch(inputs, targets, (jnp.arange(samples) % 4 < ends).astype(jnp.float32))


class Walk(ClassificationFamily):
    kind: Literal["walk"] = "walk"

    @property
    def horizon(self) -> int:
        return 4

    @property
    def input_size(self) -> int:
        return 2

    @property
    def output_size(self) -> int:
        return 3

    def draw(self, space: Space, key: Array) -> WalkTeacher:
        return WalkTeacher(space)


def test_serves_classification_and_hides_what_is_masked(tasks: Callable[..., Any]):
    family, encoding = Walk(), FewShot(shots=22)
    assert encoding.size(SPACE, family) == 22 * 5
    teacher, some = tasks(SPACE, family, 5)
    encoder = encoding.draw(SPACE, family, jax.random.key(0))
    for index in range(5):
        task = jax.tree.map(lambda leaf, index=index: leaf[index], some)
        key = jax.random.key(index)
        shown, answers = pairs_of(encoder(task, teacher, key), 2, 3)
        batch = teacher.batch(task, key, 22)
        counts = np.asarray(batch.mask) == 1
        assert 0 < counts.sum() < 22
        np.testing.assert_array_equal(shown[counts], np.asarray(batch.inputs)[counts])
        np.testing.assert_array_equal(answers[counts], np.asarray(batch.targets)[counts])
        assert not np.any(shown[~counts])
        assert not np.any(answers[~counts])


def test_the_batch_is_the_same_with_any_encoding(tiny: Callable[..., Any]):
    """Examples in the code are not taken from the batch's key."""
    batches = []
    for encoding in (FewShot(shots=3), FewShot(shots=4)):
        setting = Setting(tiny(encoding=encoding))
        row = jnp.asarray(setting.support.space.enumerate()[0])
        _, _, batch = draw_examples(setting.teacher, setting.encoder, row, jax.random.key(0), 5)
        batches.append(np.asarray(batch.inputs))
    np.testing.assert_array_equal(*batches)
