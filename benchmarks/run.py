"""What `make bench` runs: ratios, each from one run on one machine. Nothing here is asserted in a test."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from recombine import MLP, Fast, Paper, Random, RunConfig, Seeds, Setting, SubsetSpace
from recombine.probes.ridge import RidgePath
from recombine.recipes.base import Recipe
from recombine.store.provenance import machine, threads, versions
from recombine.supports.drawing import sample_rows
from recombine.training.estimate import flops_per_step
from recombine.training.program import Compiler, Program
from recombine.training.train import Trainer, stack

ROWS: list[tuple[str, str, str]] = []


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The median time of a call, after one that warms up."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def row(what: str, value: str, note: str = "") -> None:
    """One line of the table."""
    ROWS.append((what, value, note))
    Console(stderr=True).print(f"  {what}: {value}  {note}", highlight=False, markup=False)


def step_seconds(config: RunConfig, lanes: int = 1) -> float:
    """The time of one step of one run, data drawing included and evaluation left out."""
    replicates = [config.model_copy(update={"seeds": Seeds.replicate(number)}) for number in range(lanes)]
    settings = [Setting(one) for one in replicates]
    state, lane = stack([one.state() for one in settings]), stack([one.lane() for one in settings])
    times = {}
    # Two lengths of chunk: their difference has the same evaluation, so that it drops out.
    for every in (10, 30):
        program = Program.of(config.model_copy(update={"every": every}), lanes)
        active = jnp.ones(lanes, bool)
        call = Compiler().advance(program, state, lane, active)
        times[every] = seconds(
            lambda call=call, active=active: call(jax.tree.map(jnp.copy, state), lane, active), 3
        )
    return (times[30] - times[10]) / 20 / lanes


def products_seconds(width: int, depth: int, batch: int) -> float:
    """The time of the bare matrix products of one step: forward, and both gradients, of the hidden layers."""
    left = jnp.ones((batch, width))
    weights = [jnp.ones((width, width)) for _ in range(depth - 1)]

    @jax.jit
    def products(left: Any, weights: Any) -> Any:
        return [(left @ weight, left @ weight.T, left.T @ left) for weight in weights]

    return seconds(lambda: products(left, weights))


def engine() -> None:
    """A whole training step against the bare products of the same shapes."""
    recipes: list[Recipe] = [Paper(), Fast()]
    for width, depth in ((128, 3), (256, 4)):
        for recipe in recipes:
            config = RunConfig(model=MLP(width=width, depth=depth), recipe=recipe)
            batch = recipe.tasks * recipe.samples
            step = step_seconds(config)
            bare = products_seconds(width, depth, batch)
            products = 6 * (depth - 1) * width * width * batch
            share = flops_per_step(config) / step / (products / bare)
            row(
                f"step, {recipe.kind}, {depth} x {width}",
                f"{share:.2f} of bare products",
                f"{1e3 * step:.1f} ms, {flops_per_step(config) / step / 1e9:.0f} GFLOP/s",
            )
    for recipe in recipes:
        config = RunConfig(model=MLP(width=128, depth=3), recipe=recipe)
        alone = step_seconds(config)
        for lanes in (2, 4):
            row(
                f"stacking {lanes} runs, {recipe.kind}, 3 x 128",
                f"{alone / step_seconds(config, lanes):.2f} x the speed of one after another",
            )


def sweep() -> None:
    """Compilation against training in a small sweep."""
    configs = [
        RunConfig(
            support=Random(number=number, reserve=200),
            model=MLP(width=64, depth=2),
            recipe=Fast(steps=200),
            seeds=Seeds.replicate(seed),
        )
        for number in (40, 80, 160, 320)
        for seed in range(3)
    ]
    trainer = Trainer()
    begin = time.perf_counter()
    training = sum(outcome.seconds for outcome in trainer.train(configs))
    whole = time.perf_counter() - begin
    row(
        "sweep of 12 runs, 2 x 64, 200 steps",
        f"{trainer.compiler.compilations} compilation",
        "4 sizes of support",
    )
    row(
        "  of the whole",
        f"{training / whole:.2f} training",
        f"{trainer.compiler.seconds / whole:.2f} compiling",
    )


def spaces() -> None:
    """Drawing combinations: the price of a huge space against a small one."""
    small, huge = SubsetSpace(modules=16, max_active=3), SubsetSpace(modules=1000, max_active=20)
    times = [
        seconds(lambda space=space: sample_rows(space, jax.random.key(0), 8192)) for space in (small, huge)
    ]
    row(
        "drawing from 10^41 against 696 combinations",
        f"{times[1] / times[0]:.1f} x the time",
        "20 parts against 3",
    )
    begin = time.perf_counter()
    support = Random(number=100_000).draw(huge, 0)
    drawn = time.perf_counter()
    support.certificate()
    row(
        "100,000 combinations at M = 1000, K = 20",
        f"{drawn - begin:.1f} s to draw",
        f"{time.perf_counter() - drawn:.1f} s to certify",
    )


def probes() -> None:
    """The exact ridge path against scikit-learn's Ridge, nine strengths, on the same arrays."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(2000, 256)), rng.normal(size=(2000, 16))
    strengths = [10.0**power for power in range(-4, 5)]

    def ours() -> list[Any]:
        path = RidgePath(features, targets)
        return [path.weights(strength) for strength in strengths]

    def theirs() -> list[Any]:
        return [Ridge(alpha=strength).fit(features, targets).coef_ for strength in strengths]

    row("ridge, 9 strengths, 2000 x 256", f"{seconds(theirs) / seconds(ours):.1f} x as fast as scikit-learn")


def command_line() -> None:
    """`recombine --help` against starting Python."""

    def call(*arguments: str) -> float:
        return seconds(lambda: subprocess.run(arguments, capture_output=True, check=True).returncode)

    python = call(sys.executable, "-c", "pass")
    helped = call(sys.executable, "-m", "recombine.cli.main", "--help")
    row("recombine --help", f"{helped / python:.1f} x starting Python", f"{helped:.2f} s")


def main() -> None:
    """All benchmarks and the table."""
    for bench in (engine, sweep, spaces, probes, command_line):
        bench()
    table = Table(title="recombine bench: ratios from one run", title_justify="left")
    for column in ("what", "ratio", "for orientation"):
        table.add_column(column)
    for line in ROWS:
        table.add_row(*line)
    out = Console()
    out.print(table)
    facts = machine() | {"threads": threads()} | versions()
    out.print(", ".join(f"{name} {value}" for name, value in facts.items()), highlight=False)


if __name__ == "__main__":
    main()
