"""Training: from settings to trained networks, bucket by bucket, with checkpoints, targets and progress."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from recombine.errors import StoreError
from recombine.models.base import Network
from recombine.objectives.base import TrainState
from recombine.training.checkpoint import load_tree, save_tree
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.program import Compiler, Lane, Look, Program, buckets

Tree = TypeVar("Tree")

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

    @property
    def config(self) -> RunConfig:
        return self.setting.config

    @property
    def going(self) -> bool:
        return self.failed_at is None and not self.reached and self.step < self.config.recipe.steps


class Trainer:
    """Trains runs. Keeps its compiled programs, so one trainer serves a whole session."""

    def __init__(self, checkpoints: Path | None = None, progress: Progress | None = None) -> None:
        self.checkpoints = checkpoints
        self.progress = progress or Progress()
        self.compiler = Compiler()

    def train(self, configs: Iterable[RunConfig], lanes: int | None = None) -> Iterator[Outcome]:
        """Train runs and yield each as it ends. Runs that share a program are stepped together."""
        configs = list(configs)
        self.progress.started(len(configs), sum(config.recipe.steps for config in configs))
        for program, bucket in buckets(configs, lanes):
            # Only one stack's weights are in memory at a time.
            for first in range(0, len(bucket), program.lanes):
                runs = [self._start(config) for config in bucket[first : first + program.lanes]]
                # Runs that go on from different steps share the program but not the stack.
                for step in sorted({run.step for run in runs}):
                    yield from self._stack(program, [run for run in runs if run.step == step])

    def _start(self, config: RunConfig) -> _Run:
        setting = Setting(config)
        run = _Run(setting, setting.state(), setting.lane(), reached=None if config.target is None else False)
        path = self._checkpoint(config)
        if path is not None and path.exists():
            try:
                state, note = load_tree(path, run.state)
                curves, seconds = list(note["curves"]), float(note["seconds"])
            except (StoreError, KeyError, TypeError, ValueError):
                return run  # A damaged checkpoint costs time, not the run: begin again.
            run.state, run.step, run.curves, run.seconds = state, int(state.step), curves, seconds
            self.progress.stepped(run.step, config, run.curves[-1])
        return run

    def _checkpoint(self, config: RunConfig) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / f"{config.run_id}.safetensors"

    def _save(self, runs: Sequence[_Run], states: TrainState) -> None:
        for index, run in enumerate(runs):
            path = self._checkpoint(run.config)
            if path is not None and run.going:
                path.parent.mkdir(parents=True, exist_ok=True)
                save_tree(path, unstack(states, index), {"curves": run.curves, "seconds": run.seconds})

    def _stack(self, program: Program, runs: list[_Run]) -> Iterator[Outcome]:
        """Train up to `program.lanes` runs side by side. Empty lanes repeat the first run and stay idle."""
        fill = [*runs, *[runs[0]] * (program.lanes - len(runs))]
        lane, state = stack([run.lane for run in fill]), stack([run.state for run in fill])
        advance = None
        if any(run.going for run in runs):  # Not for networks that are not trained.
            before = self.compiler.seconds
            self.progress.compiling(runs[0].config)
            advance = self.compiler.advance(program, state, lane, jnp.zeros(len(fill), bool))
            runs[0].compile_seconds = self.compiler.seconds - before
        saved = time.monotonic()
        while advance is not None and any(run.going for run in runs):
            begin = time.perf_counter()
            active = [run.going for run in runs]
            state, look = advance(state, lane, jnp.array(active + [False] * (len(fill) - len(runs))))
            look = jax.tree.map(np.asarray, look)
            share = (time.perf_counter() - begin) / sum(active)
            for index, run in enumerate(runs):
                if active[index]:
                    run.seconds += share
                    made = self._record(run, Look(*(values[index] for values in look)))
                    self.progress.stepped(made, run.config, run.curves[-1])
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save(runs, state)
                saved = time.monotonic()
        for index, run in enumerate(runs):
            outcome = self._finish(run, unstack(state.network, index), program.lanes)
            self.progress.finished(outcome)
            yield outcome

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
        )

    def forget(self, config: RunConfig) -> None:
        """Drop the checkpoint of a run that is safely stored."""
        path = self._checkpoint(config)
        if path is not None:
            path.unlink(missing_ok=True)


def stack(trees: Sequence[Tree]) -> Tree:
    """Equal pytrees as one with a leading lane axis. What is no array (an activation function) is shared."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *trees)


def unstack(tree: Tree, index: int) -> Tree:
    """One lane of a stack."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def train(config: RunConfig, progress: Progress | None = None) -> Outcome:
    """Train one run in this process, without a store."""
    return next(Trainer(progress=progress).train([config], lanes=1))
