"""Training: from settings to trained networks, bucket by bucket, with checkpoints, targets and progress."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recombine.errors import StoreError
from recombine.models.base import Network
from recombine.objectives.base import TrainState
from recombine.training.checkpoint import load_tree, save_tree
from recombine.training.config import RunConfig
from recombine.training.memory import (
    Need,
    NotEnoughMemory,
    available,
    exhausted,
    fitting_lanes,
    need_of,
    too_large,
)
from recombine.training.prepare import Setting
from recombine.training.program import Compiler, Lane, Look, Program, buckets, stack, unstack

CHECKPOINT_SECONDS = 30.0


@dataclasses.dataclass
class Progress:
    """What training reports as it goes. The default says nothing."""

    def started(self, runs: int, steps: int) -> None:
        """So many runs with so many steps in all are about to be trained."""

    def compiling(self, config: RunConfig) -> None:
        """A program is being compiled."""

    def stepped(self, steps: int, config: RunConfig, look: dict[str, float]) -> None:
        """So many steps, summed over the runs, were made."""

    def finished(self, outcome: Outcome) -> None:
        """A run ended."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A run that ended."""

    config: RunConfig
    network: Network
    curves: list[dict[str, float]]
    """One record an evaluation: step, loss (mean since the last), score_in, score_held_out (validation streams)."""
    steps: int
    seconds: float
    """Training time of the run's stack, shared out over its runs; without compilation."""
    compile_seconds: float
    """Compilation of the run's program; zero for all but the first run that needs it."""
    reached: bool | None
    """Whether the target was reached; None without a target."""
    failed_at: int | None
    """The step with the first loss that was not finite; None for a sound run."""
    lanes: int
    """How many runs the program stepped at once, in the end."""
    lanes_before: tuple[int, ...] = ()
    """And earlier, where memory was short on the way and the stack was split."""
    devices: int = 1
    """Over how many devices the tasks of a batch were spread."""

    @property
    def setting(self) -> Setting:
        """The run's support, teacher and encoding."""
        return Setting(self.config)


@dataclasses.dataclass
class _Run:
    """A run in training."""

    setting: Setting
    state: TrainState
    lane: Lane
    step: int = 0
    curves: list[dict[str, float]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    failed_at: int | None = None
    reached: bool | None = None
    stacks: list[int] = dataclasses.field(default_factory=list)
    """With how many lanes it was stepped; more than one number where memory was short on the way."""

    @property
    def config(self) -> RunConfig:
        return self.setting.config

    @property
    def going(self) -> bool:
        return self.failed_at is None and not self.reached and self.step < self.config.recipe.steps


class _TooLarge(Exception):
    """A stack does not fit into memory; a smaller one may."""

    def __init__(self, lanes: int, error: NotEnoughMemory) -> None:
        super().__init__(str(error))
        self.lanes = lanes
        """How many runs may fit; none if not even one does."""
        self.error = error


class Trainer:
    """Trains runs. Keeps its compiled programs, so one trainer serves a whole session."""

    def __init__(
        self, checkpoints: Path | None = None, progress: Progress | None = None, devices: int = 1
    ) -> None:
        self.checkpoints = checkpoints
        self.progress = progress or Progress()
        self.devices = devices
        """Over how many devices the tasks of each batch are spread."""
        self.compiler = Compiler()
        self._need: Need | None = None
        """Of the program that runs."""

    def train(self, configs: Iterable[RunConfig], lanes: int | None = None) -> Iterator[Outcome]:
        """Train runs and yield each as it ends. Runs that share a program are stepped together.

        Where memory does not suffice for a stack, smaller ones are made. A run that does not fit alone is left out;
        when the others have ended, NotEnoughMemory says what would fit.
        """
        configs = list(configs)
        self.progress.started(len(configs), sum(config.recipe.steps for config in configs))
        left_out: list[NotEnoughMemory] = []
        for program, bucket in buckets(configs, lanes, self.devices):
            waiting = {config.run_id: config for config in bucket}
            while waiting:
                chosen = list(waiting.values())[: program.lanes]
                try:
                    for outcome in self._stacks(program, chosen):
                        del waiting[outcome.config.run_id]
                        yield outcome
                except _TooLarge as large:
                    if large.lanes:
                        program = dataclasses.replace(program, lanes=large.lanes)
                        continue
                    left_out.append(large.error)
                    del waiting[chosen[0].run_id]
        if left_out:
            raise _together(left_out)

    def _stacks(self, program: Program, configs: Sequence[RunConfig]) -> Iterator[Outcome]:
        """Train as many runs as the program has lanes. Only their weights are in memory."""
        self._need = None
        try:
            runs = [self._start(config) for config in configs]
            # Runs that go on from different steps share the program but not the stack.
            for step in sorted({run.step for run in runs}):
                yield from self._stack(program, [run for run in runs if run.step == step])
        except (RuntimeError, MemoryError) as error:
            if not exhausted(error):
                raise
            large = too_large(configs[0], self._need, available())
            raise _TooLarge(program.lanes // 2, large) from error

    def _start(self, config: RunConfig) -> _Run:
        setting = Setting(config)
        run = _Run(setting, setting.state(), setting.lane(), reached=None if config.target is None else False)
        path = self._checkpoint(config)
        if path is not None and path.exists():
            try:
                state, note = load_tree(path, run.state)
                curves, seconds = list(note["curves"]), float(note["seconds"])
                if curves[-1]["step"] != int(state.step):
                    return run
            except (StoreError, KeyError, TypeError, ValueError, IndexError):
                return run  # A damaged checkpoint costs time, not the run: begin again.
            run.state, run.step, run.curves, run.seconds = state, int(state.step), curves, seconds
            run.stacks = list(note.get("lanes", ()))
            self.progress.stepped(run.step, config, run.curves[-1])
        return run

    def _checkpoint(self, config: RunConfig) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / f"{config.run_id}.safetensors"

    def _save(self, runs: Sequence[_Run], states: TrainState, lanes: int) -> None:
        for index, run in enumerate(runs):
            path = self._checkpoint(run.config)
            if path is not None and run.going:
                path.parent.mkdir(parents=True, exist_ok=True)
                note = {"curves": run.curves, "seconds": run.seconds, "lanes": run.stacks}
                save_tree(path, unstack(states, index, lanes), note)

    def _stack(self, program: Program, runs: list[_Run]) -> Iterator[Outcome]:
        """Train up to `program.lanes` runs side by side. Empty lanes repeat the first run and stay idle."""
        fill = [*runs, *[runs[0]] * (program.lanes - len(runs))]
        lane = program.place(stack([run.lane for run in fill]))
        state = program.place(stack([run.state for run in fill]))
        advance = None
        if any(run.going for run in runs):  # Not for networks that are not trained.
            before = self.compiler.seconds
            self.progress.compiling(runs[0].config)
            nobody = program.place(stack([jnp.zeros((), bool)] * len(fill)))
            advance = self.compiler.advance(program, state, lane, nobody)
            runs[0].compile_seconds = self.compiler.seconds - before
            self._check_memory(program, runs[0].config, advance)
        for run in runs:
            if run.going and run.stacks[-1:] != [program.lanes]:
                run.stacks.append(program.lanes)
        saved = time.monotonic()
        while advance is not None and any(run.going for run in runs):
            begin = time.perf_counter()
            active = [run.going for run in runs]
            filled = stack([jnp.asarray(going) for going in active + [False] * (len(fill) - len(runs))])
            state, look = advance(state, lane, program.place(filled))
            look = jax.tree.map(np.asarray, look)
            share = (time.perf_counter() - begin) / sum(active)
            for index, run in enumerate(runs):
                if active[index]:
                    run.seconds += share
                    own = look if len(fill) == 1 else Look(*(values[index] for values in look))
                    made = self._record(run, own)
                    self.progress.stepped(made, run.config, run.curves[-1])
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save(runs, state, program.lanes)
                saved = time.monotonic()
        for index, run in enumerate(runs):
            outcome = self._finish(run, unstack(state.network, index, program.lanes), program.lanes)
            self.progress.finished(outcome)
            yield outcome

    def _check_memory(self, program: Program, config: RunConfig, advance: Callable[..., Any]) -> None:
        """Compare what the compiler says that the program needs with what there is."""
        self._need, free = need_of(advance), available()
        lanes = fitting_lanes(program.lanes, self._need, free)
        if lanes < program.lanes:
            raise _TooLarge(lanes, too_large(config, self._need, free))

    def _record(self, run: _Run, look: Look) -> int:
        """Take in what a chunk reported; returns the steps that it made."""
        made = min(run.config.every, run.config.recipe.steps - run.step)
        losses = np.asarray(look.losses)[:made]
        if not np.isfinite(losses).all():
            run.failed_at = run.step + int(np.argmin(np.isfinite(losses)))
        elif not np.isfinite(look.score_in):
            run.failed_at = run.step + made  # The chunk's last update broke it: its loss would come next.
        run.step += made
        point = {"step": run.step, "loss": float(losses.mean())}
        point |= {"score_in": float(look.score_in), "score_held_out": float(look.score_held_out)}
        run.curves.append(point)
        target = run.config.target
        if target is not None and point["score_held_out"] >= target:
            run.reached = True
        return made

    def _finish(self, run: _Run, network: Network, lanes: int) -> Outcome:
        return Outcome(
            config=run.config,
            network=network,
            curves=run.curves,
            steps=run.step,
            seconds=run.seconds,
            compile_seconds=run.compile_seconds,
            reached=run.reached,
            failed_at=run.failed_at,
            lanes=lanes,
            lanes_before=tuple(run.stacks[:-1]),
            devices=self.devices,
        )

    def forget(self, config: RunConfig) -> None:
        """Drop the checkpoint of a run that is safely stored."""
        path = self._checkpoint(config)
        if path is not None:
            path.unlink(missing_ok=True)


def _together(errors: Sequence[NotEnoughMemory]) -> NotEnoughMemory:
    """One error for all runs that were left out: in the words of the first."""
    others = f" Nor do {len(errors) - 1} other runs; the rest was trained." if len(errors) > 1 else ""
    return NotEnoughMemory(errors[0].message + others, fix=errors[0].fix)


def train(config: RunConfig, progress: Progress | None = None, devices: int = 1) -> Outcome:
    """Train one run in this process, without a store; with several `devices`, the tasks of a batch spread over them."""
    return next(Trainer(progress=progress, devices=devices).train([config], lanes=1))
