"""Huge spaces: drawing, certifying, training; growth over M and over the list."""

from __future__ import annotations

import resource
import time

import jax

from measuring import row, side_by_side
from recombine import RunConfig, SubsetSpace
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.supports import Random
from recombine.supports.listed.drawing import sample_rows
from recombine.training.trainer import train

HUGE = SubsetSpace(modules=1000, max_active=20)


def spaces() -> None:
    """The price of a huge space against a small one."""
    small = SubsetSpace(modules=16, max_active=3)
    times = side_by_side([lambda space=space: sample_rows(space, jax.random.key(0), 8192) for space in (small, HUGE)])
    row("drawing from 10^41 against 696 combinations", f"{times[1] / times[0]:.1f} x the time", "20 parts against 3")
    for modules in (100, 300, 1000, 3000):
        _support(SubsetSpace(modules=modules, max_active=20), 100_000)
    for number in (10_000, 30_000, 300_000):
        _support(HUGE, number)
    config = RunConfig(
        space=HUGE, support=Random(number=100_000), model=MLP(width=128, depth=2), recipe=Fast(steps=100)
    )
    begin = time.perf_counter()
    outcome = train(config)
    row(
        "training there, 100 steps, 2 x 128, 100,000 combinations",
        f"{time.perf_counter() - begin:.1f} s in all",
        f"{outcome.seconds:.1f} s of steps, {outcome.compile_seconds:.1f} s compiling",
    )


def _support(space: SubsetSpace, number: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    support = Random(number=number).draw(space, 0)
    drawn = time.perf_counter()
    support.certificate()
    certified = time.perf_counter()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    row(
        f"{number:,} combinations at M = {space.modules}, K = {space.max_active}",
        f"{drawn - begin:.2f} s to draw, {certified - drawn:.2f} s to certify",
        f"the list has {number * space.max_active * 4 / 2**20:.0f} MiB; the peak grew by {grown:.0f} MiB",
    )
