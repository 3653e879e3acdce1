"""Tasks of measurements do not depend on the batch size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jaxtyping import Array

from recombine.probes import tasks
from recombine.probes.tasks import over_tasks
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.streams import Stream


def show(dynamic: Array, teacher: Any, encoder: Any, row: Array, key: Array) -> dict[str, Array]:
    task = teacher.task(row, key)
    return {"row": row, "vector": dynamic * task.vector, "key": jax.random.key_data(key)}


@pytest.mark.parametrize("batch", [3, 7, 16])
def test_batches_do_not_matter(batch: int, tiny: Callable[..., RunConfig]):
    setting = Setting(tiny())
    rows = setting.config.space.enumerate()[:7]
    whole = over_tasks(show, setting, jax.numpy.float32(2), rows, Stream.TEST, "held_out", batch=8)
    found = over_tasks(show, setting, jax.numpy.float32(2), rows, Stream.TEST, "held_out", batch=batch)
    assert found.keys() == whole.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)
        assert len(values) == 7
    np.testing.assert_array_equal(whole["row"], rows)
    assert len(np.unique(whole["key"], axis=0)) == 7


def test_names_keep_their_order(tiny: Callable[..., RunConfig]):
    """Not sorted: the last site must be the deepest one."""
    setting = Setting(tiny())
    names = ["reading", "hidden 1", "hidden 2", "hidden 10", "a"]

    def several(dynamic: Array, teacher: Any, encoder: Any, row: Array, key: Array) -> dict[str, Array]:
        return {name: dynamic + index for index, name in enumerate(names)}

    rows = setting.config.space.enumerate()[:7]
    for _ in range(2):
        found = over_tasks(several, setting, jax.numpy.float32(1), rows, Stream.TEST, "trained", batch=4)
        assert list(found) == names
        assert [values[0] for values in found.values()] == [1, 2, 3, 4, 5]


def test_streams_do_not_share_keys(tiny: Callable[..., RunConfig]):
    setting = Setting(tiny())
    rows = setting.config.space.enumerate()
    keys = [
        over_tasks(show, setting, jax.numpy.float32(1), rows, stream, region, batch=32)["key"]
        for stream in (Stream.TEST, Stream.PROBE)
        for region in ("trained", "held_out")
    ]
    assert len(np.unique(np.concatenate(keys), axis=0)) == 4 * len(rows)


def test_held_out_tasks_are_the_same_for_all_sizes_of_support(tiny: Callable[..., RunConfig]):
    """A replicate's supports differ in size; what they are tested on does not."""
    found = []
    for number in (8, 14):
        setting = Setting(tiny(support=Random(number=number, reserve=6)))
        rows = setting.regions.rows("held_out", 100, "test")
        found.append(over_tasks(show, setting, jax.numpy.float32(1), rows, Stream.TEST, "held_out", batch=8))
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name])


@pytest.mark.parametrize("most", [1, 3])
def test_short_memory_halves_the_batches(most: int, tiny: Callable[..., RunConfig], monkeypatch: pytest.MonkeyPatch):
    setting = Setting(tiny())
    rows = setting.config.space.enumerate()[:7]
    arguments = show, setting, jax.numpy.float32(2), rows, Stream.TEST, "held_out"
    whole = over_tasks(*arguments, batch=8)
    real, tried = tasks._vmapped, []

    def scarce(*parts: Any) -> Any:
        tried.append(len(parts[-1]))
        if tried[-1] > most:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 123 bytes.")
        return real(*parts)

    monkeypatch.setattr(tasks, "_vmapped", scarce)
    found = over_tasks(*arguments, batch=8)
    assert sorted(set(tried), reverse=True) == [8, 4, 2, 1][: 4 if most == 1 else 3]
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)


def test_errors_other_than_memory_and_a_batch_of_one_are_raised(
    tiny: Callable[..., RunConfig], monkeypatch: pytest.MonkeyPatch
):
    setting = Setting(tiny())
    rows = setting.config.space.enumerate()[:3]
    for words, calls in (("RESOURCE_EXHAUSTED", 3), ("something else", 1)):
        tried = []

        def fail(*parts: Any, words: str = words, tried: list[int] = tried) -> Any:
            tried.append(len(parts[-1]))
            raise RuntimeError(words)

        monkeypatch.setattr(tasks, "_vmapped", fail)
        with pytest.raises(RuntimeError, match=words):
            over_tasks(show, setting, jax.numpy.float32(2), rows, Stream.TEST, "held_out", batch=4)
        assert len(tried) == calls
