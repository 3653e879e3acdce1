"""A whole training step against the bare matrix products of the same shapes and precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from measuring import row, side_by_side
from recombine import RunConfig, Seeds
from recombine.models import MLP, Masked
from recombine.recipes import Fast, Paper
from recombine.recipes.base import Recipe
from recombine.training import Setting
from recombine.training.program import Compiler, Program, stack

STEPS = 20
"""Steps in a measured call."""


def sizes_of(config: RunConfig) -> list[int]:
    """The numbers of units from layer to layer."""
    assert isinstance(config.model, MLP)
    code = config.encoding.size(config.space, config.family)
    return [code + config.family.input_size, *config.model.hidden, config.family.output_size]


def products_of(config: RunConfig) -> list[tuple[int, int, int]]:
    """(rows, features, units) of each layer."""
    batch = config.recipe.tasks * config.recipe.samples
    return [(batch, features, units) for features, units in itertools.pairwise(sizes_of(config))]


def operations(config: RunConfig) -> float:
    """Multiplications and additions of a step's products. Nothing lies below the first layer."""
    costs = [2.0 * rows * features * units for rows, features, units in products_of(config)]
    return 3 * sum(costs) - costs[0]


def bare(config: RunConfig, precision: Any = jnp.float32) -> Callable[[], Any]:
    """A call that makes just the products of a step, of numbers that lie in memory as they do there: forward, for the
    weights, and for the layer below."""

    def normal(seed: int, *shape: int) -> Array:
        return jax.random.normal(jax.random.key(seed), shape, precision)

    layers = [
        (normal(place, rows, features), normal(100 + place, features, units), normal(200 + place, rows, units))
        for place, (rows, features, units) in enumerate(products_of(config))
    ]

    @jax.jit
    def multiply(layers: list[tuple[Array, Array, Array]]) -> list[Array]:
        return [
            product
            for place, (below, weight, above) in enumerate(layers)
            for product in (below @ weight, below.T @ above, above @ weight.T)[: 3 if place else 2]
        ]

    return lambda: multiply(layers)


def repeated(call: Callable[[], Any], times: int) -> Callable[[], Any]:
    """A call that makes so many calls."""
    return lambda: [call() for _ in range(times)]


def chunk(config: RunConfig, stack_size: int = 1, eval_every: int = STEPS) -> Callable[[], Any]:
    """A call that makes the next `every` steps of so many runs, data drawing included, and one small evaluation."""
    # More steps than are ever measured: a run that is through does nothing.
    config = config.model_copy(update={"recipe": config.recipe.model_copy(update={"steps": 10**6})})
    replicates = [config.model_copy(update={"seeds": Seeds.replicate(number)}) for number in range(stack_size)]
    settings = [Setting(one) for one in replicates]
    state, run_arrays = stack([one.state() for one in settings]), stack([one.arrays() for one in settings])
    # As few tasks as there may be: the evaluation is no part of a step.
    program = Program.of(config.model_copy(update={"eval_every": eval_every, "validation_tasks": 1}), stack_size)
    run_arrays = eqx.tree_at(lambda one: one.held_out, run_arrays, run_arrays.held_out[..., :1, :])
    active = stack([jnp.ones((), bool)] * stack_size)
    call = Compiler().advance(program, state, run_arrays, active)

    def go() -> Any:
        nonlocal state
        state, evaluation = call(state, run_arrays, active)
        return evaluation.losses

    return go


def share_of_bare() -> None:
    """Achieved operations a second of the step over those of the products."""
    for recipe, width, depth in itertools.product((Paper(), Fast()), (256, 1024), (4,)):
        config = RunConfig(model=MLP(width=width, depth=depth), recipe=recipe)
        steps = STEPS if width < 1000 else 4
        # As many of the one as of the other in a turn, so that both see the same of whatever else the machine does.
        calls = [chunk(config, eval_every=steps), repeated(bare(config), steps)]
        step, products = side_by_side(calls, 15 if width < 1000 else 9)
        share, speed = products / step, operations(config) * steps / step / 1e9
        row(
            f"step, {recipe.kind}, {depth} x {width}",
            f"{share:.2f} of bare products",
            f"{1e3 * step / steps:.1f} ms, {speed:.0f} GFLOP/s",
        )


def half_precision() -> None:
    """What bfloat16 products gain on this backend, and how much of it arrives in a step."""
    for width in (256, 1024):
        model = MLP(width=width, depth=4)
        whole, half = (
            RunConfig(model=model, recipe=Paper(precision=precision)) for precision in ("float32", "bfloat16")
        )
        calls = [bare(whole), bare(half, jnp.bfloat16), chunk(whole, eval_every=3), chunk(half, eval_every=3)]
        times = side_by_side(calls, 3)
        row(
            f"bfloat16, 4 x {width}",
            f"{times[0] / times[1]:.2f} x the speed of float32 products",
            f"{times[2] / times[3]:.2f} x arrives in a step",
        )


def stacking() -> None:
    """Several runs as stack_size of one program against one after another."""
    recipes: list[Recipe] = [Paper(), Fast()]
    for recipe in recipes:
        config = RunConfig(model=MLP(width=128, depth=3), recipe=recipe)
        stack_size = (1, 2, 4)
        times = side_by_side([chunk(config, number) for number in stack_size], 3)
        for number, time in zip(stack_size[1:], times[1:], strict=True):
            row(
                f"stacking {number} runs, {recipe.kind}, 3 x 128",
                f"{times[0] * number / time:.2f} x the speed of one after another",
            )


def masking() -> None:
    """A step of masks on fixed weights against a step of the weights, both with the published recipe."""
    plain = RunConfig(model=MLP(width=256, depth=4), recipe=Paper())
    masked = plain.replace(model=Masked(model=plain.model))
    times = side_by_side([chunk(plain), chunk(masked)])
    row("masked step, 4 x 256", f"{times[1] / times[0]:.2f} x a plain step", f"{1000 * times[1] / STEPS:.1f} ms")


def engine() -> None:
    """All of these."""
    share_of_bare()
    half_precision()
    stacking()
    masking()
