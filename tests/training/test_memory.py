"""Memory: stacks are split before or after it is short; a run that cannot fit says what would."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from recombine.models.mlp import MLP
from recombine.recipes.paper import Paper
from recombine.training import memory, trainer as training
from recombine.training.config import RunConfig, Seeds
from recombine.training.memory import (
    MemoryNeed,
    NotEnoughMemory,
    does_not_fit,
    fitting_stack_size,
    format_bytes,
    is_out_of_memory,
    memory_need,
)
from recombine.training.prepare import Setting
from recombine.training.program import Compiler, Program, stack
from recombine.training.trainer import Trainer

Tiny = Callable[..., RunConfig]
Same = Callable[[Any, Any], bool]


class Scarce:
    """A compiler on a machine that can step only so many runs at once."""

    def __init__(
        self, inner: Compiler, most: int, after: int = 0, words: str = "RESOURCE_EXHAUSTED: Out of memory"
    ) -> None:
        self.inner, self.most, self.left, self.words = inner, most, after, words
        self.stack_size: list[int] = []

    @property
    def seconds(self) -> float:
        return self.inner.seconds

    @property
    def compilations(self) -> int:
        return self.inner.compilations

    def advance(self, program: Program, *arguments: Any) -> Any:
        self.stack_size.append(program.stack_size)
        real = self.inner.advance(program, *arguments)

        def advance(*stacked: Any) -> Any:
            if program.stack_size > self.most:
                if self.left == 0:
                    raise RuntimeError(f"{self.words} allocating 123 bytes.")
                self.left -= 1
            return real(*stacked)

        return advance


def replicates(tiny: Tiny, number: int) -> list[RunConfig]:
    return [tiny(seeds=Seeds.replicate(seed)) for seed in range(number)]


@pytest.mark.parametrize("words", ["RESOURCE_EXHAUSTED: Out of memory", "INTERNAL: YNNPACK operation failed"])
def test_a_stack_for_which_memory_was_short_is_split(tiny: Tiny, trainer: Trainer, same_run: Same, words: str):
    configs = replicates(tiny, 5)
    whole = list(trainer.train(configs, stack_size=2))
    short = Trainer()
    short.compiler = scarce = Scarce(trainer.compiler, most=2, words=words)  # pyright: ignore
    found = list(short.train(configs, stack_size=4))
    assert [outcome.config for outcome in found] == configs
    assert all(outcome.stack_size == 2 and outcome.earlier_stack_sizes == () for outcome in found)
    assert scarce.stack_size == [4, 2, 2, 2], "what was found out serves the rest of the bucket"
    for one, two in zip(found, whole, strict=True):
        assert same_run(one, two), "equal plan, equal bits"


def test_what_was_done_before_memory_was_short_is_kept_and_said(
    tiny: Tiny, trainer: Trainer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    short = Trainer(tmp_path)
    short.compiler = Scarce(trainer.compiler, most=1, after=2)  # pyright: ignore
    found = list(short.train(replicates(tiny, 2), stack_size=2))
    assert [(outcome.stack_size, outcome.earlier_stack_sizes, outcome.steps) for outcome in found] == [
        (1, (2,), 30)
    ] * 2
    assert all([point["step"] for point in outcome.curves] == [10, 20, 30] for outcome in found)


def test_a_stack_is_split_before_it_runs(tiny: Tiny, trainer: Trainer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "memory_need", lambda advance: MemoryNeed(10, 8000))
    monkeypatch.setattr(memory, "available_memory", lambda: 5000)
    monkeypatch.setattr(memory, "fitting_stack_size", lambda stack_size, *_: min(stack_size, 2))
    found = list(trainer.train(replicates(tiny, 3), stack_size=4))
    assert [outcome.stack_size for outcome in found] == [2, 2, 2]


def test_lanes_by_what_is_needed_and_what_there_is():
    assert fitting_stack_size(8, MemoryNeed(0, 800), 1000) == 8
    assert fitting_stack_size(8, MemoryNeed(0, 801), 1000) == 7
    assert fitting_stack_size(8, MemoryNeed(0, 8000), 1000) == 1
    assert fitting_stack_size(8, MemoryNeed(0, 10**9), 1000) == 1, "whether one fits is seen when it is compiled alone"
    assert fitting_stack_size(1, MemoryNeed(0, 1000), 1000) == 1
    assert fitting_stack_size(1, MemoryNeed(0, 1001), 1000) == 0
    assert fitting_stack_size(8, None, 1000) == fitting_stack_size(8, MemoryNeed(0, 9), None) == 8


def test_a_run_that_cannot_fit_is_left_out_and_the_others_are_trained(tiny: Tiny, trainer: Trainer):
    large = tiny(recipe=Paper(learning_rate=0.01, steps=10, tasks=9, samples=4))
    short = Trainer()

    class Picky(Scarce):
        def advance(self, program: Program, *arguments: Any) -> Any:
            self.most = 0 if program.recipe.tasks == 9 else 1
            return super().advance(program, *arguments)

    short.compiler = Picky(trainer.compiler, most=1)  # pyright: ignore
    found = []

    def everything() -> None:
        found.extend(outcome.config for outcome in short.train([large, *replicates(tiny, 2)], stack_size=1))

    with pytest.raises(NotEnoughMemory, match=large.run_id) as caught:
        everything()
    assert found == replicates(tiny, 2)
    assert caught.value.exit_code == 1 and "recipe.tasks" in (caught.value.fix or "")


def test_other_errors_are_not_taken_for_a_lack_of_memory(tiny: Tiny, trainer: Trainer):
    other = Trainer()
    other.compiler = Scarce(trainer.compiler, most=0, words="INTERNAL: something else")  # pyright: ignore
    with pytest.raises(RuntimeError, match="something else"):
        list(other.train([tiny()], stack_size=2))
    assert is_out_of_memory(MemoryError()) and not is_out_of_memory(ValueError("RESOURCE_EXHAUSTED"))


def test_the_compiler_says_what_a_program_needs(tiny: Tiny, trainer: Trainer):
    def need(stack_size: int, **changes: Any) -> MemoryNeed:
        config = tiny(**changes)
        setting = Setting(config)
        state, run_arrays = stack([setting.state()] * stack_size), stack([setting.arrays()] * stack_size)
        active = stack([jnp.zeros((), bool)] * stack_size)
        found = memory_need(trainer.compiler.advance(Program.of(config, stack_size), state, run_arrays, active))
        assert found is not None
        return found

    one, three = need(1), need(3)
    assert 2 * one.arguments < three.arguments < 4 * one.arguments
    assert one.working < three.working
    large = need(1, recipe=Paper(learning_rate=0.01, steps=30, tasks=512, samples=64), model=MLP(width=64, depth=2))
    assert large.working > 512 * 64 * 64 * 4, "the activations of a layer"
    assert memory_need(lambda: None) is None


def test_the_message_says_what_would_fit(tiny: Tiny):
    config = tiny(recipe=Paper(learning_rate=0.01, steps=30, tasks=100, samples=40), model=MLP(width=64, depth=2))
    error = does_not_fit(config, MemoryNeed(10**9, 4 * 10**9), 2 * 10**9)
    assert "4 GB" in error.message and "1 GB" in error.message and "2 GB are available" in error.message
    fix = error.fix or ""
    assert "recipe.tasks=45 (now 100) would fit" in fix and "model.width (now 64)" in fix and "5.56 GB" in fix
    assert "would fit" not in (does_not_fit(config, MemoryNeed(0, 10**12), 10**6).fix or "")
    looks = does_not_fit(tiny(validation_tasks=1000), MemoryNeed(0, 2 * 10**9), 10**9).fix or ""
    assert "validation_tasks=450 (now 1000)" in looks and "recipe.tasks=" not in looks
    assert "recipe.samples (now 4)" in (does_not_fit(tiny(), None, None).fix or "")


def test_outer_steps_that_do_not_fit():
    """Without deep supervision the gradient keeps the states of all outer steps; with it, fewer steps would not help."""
    recursive = {"family": "sudoku", "model": {"kind": "recursive", "cells": 36, "steps": 40}}
    need, free = MemoryNeed(0, 4 * 10**9), 10**9
    whole = RunConfig.model_validate(recursive | {"objective": "classification"})
    assert "about model.steps=9 (now 40) or recipe.tasks=14 (now 64)" in (does_not_fit(whole, need, free).fix or "")
    assert "model.steps" not in (does_not_fit(RunConfig.model_validate(recursive), need, free).fix or "")


@pytest.mark.parametrize(("count", "words"), [(12, "12 bytes"), (1500, "1.5 kB"), (2e9, "2 GB"), (3e15, "3e+03 TB")])
def test_sizes_in_words(count: float, words: str):
    assert format_bytes(count) == words


def test_what_is_available(monkeypatch: pytest.MonkeyPatch):
    free = memory.available_memory()
    assert free is None or 10**7 < free < 10**14
    device = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 100, "bytes_in_use": 30})
    monkeypatch.setattr(jax, "devices", lambda: [device])
    assert memory.available_memory() == 70


def test_control_groups(tmp_path: Any):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert list(memory._group(tmp_path, "memory.max", "memory.current", "inactive_file")) == [300]
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 200\n")
    assert list(memory._group(tmp_path, "memory.max", "memory.current", "inactive_file")) == [500]
    (tmp_path / "memory.max").write_text("max\n")
    assert list(memory._group(tmp_path, "memory.max", "memory.current", "inactive_file")) == []


CHILD = """
    import resource, sys
    from recombine import RunConfig, SubsetSpace
    from recombine.models import MLP
    from recombine.recipes import Paper
    from recombine.supports import Random
    from recombine.training import memory
    from recombine.training.memory import NotEnoughMemory, available_memory
    from recombine.training.trainer import Trainer

    def run(tasks):
        return RunConfig(
            space=SubsetSpace(modules=8, max_active=2), support=Random(number=20, reserve=8), model=MLP(width=64, depth=1),
            recipe=Paper(learning_rate=0.01, steps=2, tasks=tasks, samples=256), eval_every=2, validation_tasks=8,
        )

    trainer = Trainer()
    list(trainer.train([run(2)]))  # Threads and libraries take their memory before the limit is set.
    used = sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + 700_000_000,) * 2)
    assert available_memory() <= 700_000_000
    if "blind" in sys.argv:
        memory.memory_need = lambda advance: None  # As where the compiler does not say.
    done = []
    try:
        for outcome in trainer.train([run(16384), run(4)]):
            done.append(outcome.config.recipe.tasks)
    except NotEnoughMemory as error:
        print(done, error, sep="|")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("knowing", ["told", "blind"])
def test_with_little_memory_the_small_run_is_trained_and_the_large_one_says_what_would_fit(knowing: str):
    """16384 tasks of 256 examples at width 64 take over a gigabyte a layer; 700 MB are allowed."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), knowing]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr[-2000:]
    done, words = answer.stdout.split("|")
    assert done == "[4]" and "does not fit into memory" in words
    assert ("would fit" in words and "are available" in words) == (knowing == "told")
    assert "recipe.tasks" in words and "model.width (now 64)" in words
