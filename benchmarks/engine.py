"""A whole training step against the bare matrix products of the same shapes and precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from measuring import row, side_by_side
from recombine import MLP, Fast, Paper, RunConfig, Seeds, Setting
from recombine.recipes.base import Recipe
from recombine.training.program import Compiler, Program
from recombine.training.train import stack

STEPS = 20
"""Steps in a measured call."""


def sizes_of(config: RunConfig) -> list[int]:
    """The numbers of units from layer to layer."""
    assert isinstance(config.model, MLP)
    code = config.encoding.size(config.space, config.family)
    return [code + config.family.input_size, *config.model.hidden, config.family.output_size]


def products_of(config: RunConfig) -> list[tuple[int, int, int]]:
    """The products of a step, (rows, inner, columns): forward, for the weights, and for the layer below."""
    batch = config.recipe.tasks * config.recipe.samples
    found = []
    for place, (features, units) in enumerate(itertools.pairwise(sizes_of(config))):
        found += [(batch, features, units), (features, batch, units)]
        if place:  # Nothing lies below the first layer.
            found.append((batch, units, features))
    return found


def operations(config: RunConfig) -> float:
    """Multiplications and additions of these products."""
    return sum(2.0 * rows * inner * columns for rows, inner, columns in products_of(config))


def bare(config: RunConfig, precision: Any = jnp.float32) -> Callable[[], Any]:
    """A call that makes just these products, on other numbers each time they are made."""
    sides = [
        tuple(
            jax.random.normal(key, shape, precision)
            for key, shape in zip(
                jax.random.split(jax.random.key(place)), ((rows, inner), (inner, columns)), strict=True
            )
        )
        for place, (rows, inner, columns) in enumerate(products_of(config))
    ]
    multiply = jax.jit(lambda pairs: [left @ right for left, right in pairs])
    return lambda: multiply(sides)


def chunk(config: RunConfig, lanes: int = 1, every: int = STEPS) -> Callable[[], Any]:
    """A call that makes `every` steps of so many runs, data drawing included, and one evaluation."""
    replicates = [config.model_copy(update={"seeds": Seeds.replicate(number)}) for number in range(lanes)]
    settings = [Setting(one) for one in replicates]
    state, lane = stack([one.state() for one in settings]), stack([one.lane() for one in settings])
    # As few tasks as there may be: the evaluation is no part of a step.
    program = Program.of(config.model_copy(update={"every": every, "validation_tasks": 1}), lanes)
    lane = eqx.tree_at(lambda one: one.held_out, lane, lane.held_out[:, :1])
    active = jnp.ones(lanes, bool)
    call = Compiler().advance(program, state, lane, active)
    return lambda: call(jax.tree.map(jnp.copy, state), lane, active)


def share_of_bare() -> None:
    """Achieved operations a second of the step over those of the products."""
    for recipe, width, depth in itertools.product((Paper(), Fast()), (256, 1024), (4,)):
        config = RunConfig(model=MLP(width=width, depth=depth), recipe=recipe)
        step, products = side_by_side([chunk(config), bare(config)], 7 if width < 1000 else 3)
        share = STEPS * products / step
        speed = operations(config) * STEPS / step / 1e9
        row(
            f"step, {recipe.kind}, {depth} x {width}",
            f"{share:.2f} of bare products",
            f"{1e3 * step / STEPS:.1f} ms, {speed:.0f} GFLOP/s",
        )


def half_precision() -> None:
    """What bfloat16 products gain on this backend, and how much of it arrives in a step."""
    for width in (256, 1024):
        model = MLP(width=width, depth=4)
        whole, half = (
            RunConfig(model=model, recipe=Paper(precision=precision)) for precision in ("float32", "bfloat16")
        )
        calls = [bare(whole), bare(half, jnp.bfloat16), chunk(whole, every=3), chunk(half, every=3)]
        times = side_by_side(calls, 3)
        row(
            f"bfloat16, 4 x {width}",
            f"{times[0] / times[1]:.2f} x the speed of float32 products",
            f"{times[2] / times[3]:.2f} x arrives in a step",
        )


def stacking() -> None:
    """Several runs as lanes of one program against one after another."""
    recipes: list[Recipe] = [Paper(), Fast()]
    for recipe in recipes:
        config = RunConfig(model=MLP(width=128, depth=3), recipe=recipe)
        lanes = (1, 2, 4)
        times = side_by_side([chunk(config, number) for number in lanes], 3)
        for number, time in zip(lanes[1:], times[1:], strict=True):
            row(
                f"stacking {number} runs, {recipe.kind}, 3 x 128",
                f"{times[0] * number / time:.2f} x the speed of one after another",
            )


def engine() -> None:
    """All of these."""
    share_of_bare()
    half_precision()
    stacking()
