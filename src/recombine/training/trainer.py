"""The training loop: bucket by bucket, with checkpoints, targets and progress."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recombine import interrupts
from recombine.errors import RecombineError, StoreError
from recombine.models.base import Network
from recombine.objectives.base import TrainState
from recombine.training import memory
from recombine.training.checkpoint import load_tree, save_tree
from recombine.training.compiling import compile_notice, use_compile_cache
from recombine.training.config import RunConfig
from recombine.training.estimate import flops_per_step
from recombine.training.memory import NotEnoughMemory
from recombine.training.outcome import Outcome
from recombine.training.prepare import LoadParent, Setting, check_line, network_shapes, no_parent
from recombine.training.program import (
    Compiler,
    Evaluation,
    Program,
    RunArrays,
    buckets,
    shared_compiler,
    stack,
    unstack,
)
from recombine.training.progress import Progress
from recombine.training.timings import Stopwatch, compiled_now, names_of, program_key, timings

CHECKPOINT_SECONDS = 30.0


@dataclasses.dataclass
class _Run:
    """A run in training."""

    setting: Setting
    state: TrainState
    run_arrays: RunArrays
    step: int = 0
    curves: list[dict[str, float]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    failed_at: int | None = None
    reached: bool | None = None
    stacks: list[int] = dataclasses.field(default_factory=list)
    """The stack sizes it was trained with; several where memory was short on the way."""

    @property
    def config(self) -> RunConfig:
        return self.setting.config

    @property
    def going(self) -> bool:
        return self.failed_at is None and not self.reached and self.step < self.config.recipe.steps


class _TooLarge(Exception):
    """A stack does not fit into memory; a smaller one may."""

    def __init__(self, stack_size: int, error: NotEnoughMemory) -> None:
        super().__init__(str(error))
        self.stack_size = stack_size
        """The number of runs that may fit; 0 if not even one does."""
        self.error = error


class Trainer:
    """Trains runs and keeps its compiled programs, so that one trainer can serve a whole session."""

    def __init__(
        self,
        checkpoints: Path | None = None,
        progress: Progress | None = None,
        devices: int = 1,
        *,
        compiler: Compiler | None = None,
        notice: Callable[[], None] | None = None,
        parents: LoadParent = no_parent,
    ) -> None:
        """Make a trainer.

        Args:
            checkpoints: A folder for the states of runs under way; None for no checkpoints.
            progress: Called as training goes on.
            devices: The number of devices over which the tasks of each batch are spread.
            compiler: Compiled programs to share with others.
            notice: Called when compiling takes more than a second.
            parents: Gives the trained network of a parent.
        """
        self.checkpoints = checkpoints
        self.progress = progress or Progress()
        self.devices = devices
        self.compiler = compiler or Compiler()
        self.notice = notice
        self.parents = parents
        use_compile_cache()
        self._need: memory.MemoryNeed | None = None
        """The memory of the current program."""

    def train(self, configs: Iterable[RunConfig], stack_size: int | None = None) -> Iterator[Outcome]:
        """Train runs and yield each as it ends. Runs that share a program are compiled once.

        Where a stack does not fit into memory, smaller ones are used. A run that does not fit alone is left out; after
        the others, `NotEnoughMemory` says what would fit.

        Args:
            configs: The runs.
            stack_size: Runs that are trained at once; by default what the model says.
        """
        configs = list(configs)
        self.progress.started(len(configs), sum(config.recipe.steps for config in configs))
        left_out: list[NotEnoughMemory] = []
        for program, bucket in buckets(configs, stack_size, self.devices):
            if too_large := self._weights_too_large(bucket):
                left_out += too_large
                continue
            waiting = {config.run_id: config for config in bucket}
            while waiting:
                chosen = list(waiting.values())[: program.stack_size]
                try:
                    for outcome in self._stacks(program, chosen):
                        del waiting[outcome.config.run_id]
                        yield outcome
                except _TooLarge as large:
                    if large.stack_size:
                        program = dataclasses.replace(program, stack_size=large.stack_size)
                        continue
                    left_out.append(large.error)
                    del waiting[chosen[0].run_id]
        if left_out:
            others = f" {len(left_out) - 1} other runs do not fit either; the rest was trained."
            first = left_out[0]
            raise NotEnoughMemory(first.message + (others if len(left_out) > 1 else ""), fix=first.fix)

    def _weights_too_large(self, bucket: Sequence[RunConfig]) -> list[NotEnoughMemory]:
        """The errors of a bucket whose weights alone do not fit: nothing is drawn or compiled then. Otherwise empty."""
        first, free = bucket[0], memory.available_memory()
        shapes = network_shapes(first.model, first.encoding, first.space, first.family)
        arrays = [leaf for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "dtype")]
        weights = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in arrays)
        if free is None or weights <= free:
            return []
        return [memory.weights_do_not_fit(config, weights, free) for config in bucket]

    def _stacks(self, program: Program, configs: Sequence[RunConfig]) -> Iterator[Outcome]:
        """Train one stack of runs. Only their weights are in memory."""
        self._need = None
        watch = Stopwatch()
        try:
            runs = [self._start(config) for config in configs]
            # Runs that resume from different steps share the program but not the stack.
            for step in sorted({run.step for run in runs}):
                yield from self._stack(program, [run for run in runs if run.step == step], watch)
                watch = Stopwatch()
        except (RuntimeError, MemoryError) as error:
            if not memory.is_out_of_memory(error):
                raise
            large = memory.does_not_fit(configs[0], self._need, memory.available_memory())
            raise _TooLarge(program.stack_size // 2, large) from error

    def _start(self, config: RunConfig) -> _Run:
        setting = Setting(config, self.parents)
        run = _Run(setting, setting.state(), setting.arrays(), reached=None if config.target is None else False)
        path = self._checkpoint(config)
        if path is not None and path.exists():
            try:
                state, note = load_tree(path, run.state)
                curves, seconds = list(note["curves"]), float(note["seconds"])
                if curves[-1]["step"] != int(state.step):
                    return run
            except (StoreError, KeyError, TypeError, ValueError, IndexError):
                return run  # A damaged checkpoint: start again.
            run.state, run.step, run.curves, run.seconds = state, int(state.step), curves, seconds
            run.stacks = list(note.get("lanes", ()))
            self.progress.stepped(run.step, config, run.curves[-1])
        return run

    def _checkpoint(self, config: RunConfig) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / f"{config.run_id}.safetensors"

    def _save(self, runs: Sequence[_Run], states: TrainState, stack_size: int) -> None:
        for index, run in enumerate(runs):
            path = self._checkpoint(run.config)
            if path is not None and run.going:
                path.parent.mkdir(parents=True, exist_ok=True)
                note = {"curves": run.curves, "seconds": run.seconds, "lanes": run.stacks}
                save_tree(path, unstack(states, index, stack_size), note)

    def _stack(self, program: Program, runs: list[_Run], watch: Stopwatch) -> Iterator[Outcome]:
        """Train up to `program.stack_size` runs side by side, whose preparation the stopwatch times.

        Empty positions repeat the first run and stay inactive.
        """
        fill = [*runs, *[runs[0]] * (program.stack_size - len(runs))]
        run_arrays = program.place(stack([run.run_arrays for run in fill]))
        state = program.place(stack([run.state for run in fill]))
        advance = None
        if any(run.going for run in runs):  # Networks that are not trained need no program.
            interrupts.check()
            before, compilations, misses = self.compiler.seconds, self.compiler.compilations, compiled_now()
            self.progress.compiling(runs[0].config)
            none_active = program.place(stack([jnp.zeros((), bool)] * len(fill)))
            advance = self.compiler.advance(program, state, run_arrays, none_active, self.notice)
            runs[0].compile_seconds = self.compiler.seconds - before
            self._check_memory(program, runs[0].config, advance)
            fresh = "warm" if compiled_now() == misses else "cold"
            how = "again" if self.compiler.compilations == compilations else fresh
            key = program_key(program, runs[0].config)
            timings().note(names_of(f"start {how}", key, runs[0].config), watch.seconds())
        for run in runs:
            if run.going and run.stacks[-1:] != [program.stack_size]:
                run.stacks.append(program.stack_size)
        interrupts.check()
        if advance is not None:
            done, watch = sum(run.step for run in runs), Stopwatch()
            state = self._advance(program, runs, state, lambda now, active: advance(now, run_arrays, active))
            self._note_steps(program, runs, sum(run.step for run in runs) - done, watch.seconds())
        for index, run in enumerate(runs):
            own = program.objective.trained_network(unstack(state, index, program.stack_size))
            outcome = self._finish(run, own, program.stack_size)
            self.progress.finished(outcome)
            yield outcome

    def _advance(
        self,
        program: Program,
        runs: list[_Run],
        state: TrainState,
        chunk: Callable[[TrainState, Any], tuple[TrainState, Evaluation]],
    ) -> TrainState:
        """Train a stack chunk by chunk until all of its runs ended. An interrupt ends it after a checkpoint."""
        saved = time.monotonic()
        with interrupts.deferred():
            while any(run.going for run in runs):
                begin = time.perf_counter()
                active = [run.going for run in runs]
                filled = stack([jnp.asarray(going) for going in active + [False] * (program.stack_size - len(runs))])
                state, evaluation = chunk(state, program.place(filled))
                evaluation = jax.tree.map(np.asarray, evaluation)
                share = (time.perf_counter() - begin) / sum(active)
                for index, run in enumerate(runs):
                    if active[index]:
                        run.seconds += share
                        own = (
                            evaluation if program.stack_size == 1 else Evaluation(*(part[index] for part in evaluation))
                        )
                        steps = self._record(run, own)
                        self.progress.stepped(steps, run.config, run.curves[-1])
                ending = interrupts.requested() and any(run.going for run in runs)
                if ending or time.monotonic() - saved > CHECKPOINT_SECONDS:
                    self._save(runs, state, program.stack_size)
                    saved = time.monotonic()
                if ending:
                    break
        if any(run.going for run in runs):
            interrupts.check()
        return state

    def _note_steps(self, program: Program, runs: list[_Run], steps: int, seconds: float) -> None:
        """Note how long a step of a run took."""
        if steps:
            first = runs[0].config
            exact, *alike = names_of("step", program_key(program, first), first)
            timings().note([exact], seconds / steps)
            # Of other sizes of the same kind, a step takes as long as its operations.
            timings().note(alike[:-1], seconds / steps / max(1.0, flops_per_step(first)))

    def _check_memory(self, program: Program, config: RunConfig, advance: Callable[..., Any]) -> None:
        """Compare the memory that the program needs with what is available."""
        self._need, free = memory.memory_need(advance), memory.available_memory()
        stack_size = memory.fitting_stack_size(program.stack_size, self._need, free)
        if stack_size < program.stack_size:
            raise _TooLarge(stack_size, memory.does_not_fit(config, self._need, free))

    def _record(self, run: _Run, evaluation: Evaluation) -> int:
        """Record the report of a chunk; returns its number of steps."""
        steps = min(run.config.eval_every, run.config.recipe.steps - run.step)
        losses = np.asarray(evaluation.losses)[:steps]
        if not np.isfinite(losses).all():
            run.failed_at = run.step + int(np.argmin(np.isfinite(losses)))
        elif not np.isfinite(evaluation.score_in):
            run.failed_at = run.step + steps  # The chunk's last update broke the network; the next loss would show it.
        run.step += steps
        point = {"step": run.step, "loss": float(losses.mean())}
        point |= {"score_in": float(evaluation.score_in), "score_held_out": float(evaluation.score_held_out)}
        run.curves.append(point)
        target = run.config.target
        if target is not None and point["score_held_out"] >= target:
            run.reached = True
        return steps

    def _finish(self, run: _Run, network: Network, stack_size: int) -> Outcome:
        return Outcome(
            config=run.config,
            network=network,
            curves=run.curves,
            steps=run.step,
            seconds=run.seconds,
            compile_seconds=run.compile_seconds,
            reached=run.reached,
            failed_at=run.failed_at,
            stack_size=stack_size,
            earlier_stack_sizes=tuple(run.stacks[:-1]),
            devices=self.devices,
            parents=self.parents,
        )

    def forget(self, config: RunConfig) -> None:
        """Delete the checkpoint of a run that is stored."""
        path = self._checkpoint(config)
        if path is not None:
            path.unlink(missing_ok=True)


def train(config: RunConfig, progress: Progress | None = None, devices: int = 1, *, quiet: bool = False) -> Outcome:
    """Train one run in this process, without a store. Its parents, if it has any, are trained first.

    Compiled programs are kept, in memory and on disk: a second run of the same shape compiles nothing.

    Args:
        config: The run.
        progress: Called as training goes on. Without it, one line says when a program is being compiled.
        devices: The number of devices over which the tasks of each batch are spread.
        quiet: Write nothing.

    Returns:
        The run: its network, curves, steps and times.

    Example:
        ```python
        run = rc.train(rc.RunConfig(model=rc.models.MLP(width=64), recipe=rc.recipes.Fast(steps=200)))
        run.curves[-1]["score_held_out"]
        ```
    """
    notice = None if quiet or progress is not None else compile_notice()
    line = [*config.ancestors().values(), config]
    for each in line:
        check_line(each)
    trained: dict[str, Network] = {}
    trainer = Trainer(
        progress=progress,
        devices=devices,
        compiler=shared_compiler(),
        notice=notice,
        parents=lambda parent: trained[parent.run_id],
    )
    for each in line[:-1]:
        outcome = next(trainer.train([each], stack_size=1))
        if outcome.failed_at is not None:
            raise RecombineError(
                f"The parent {each.run_id} failed: its loss was not finite at step {outcome.failed_at}."
            )
        trained[each.run_id] = outcome.network
    return next(trainer.train([config], stack_size=1))
