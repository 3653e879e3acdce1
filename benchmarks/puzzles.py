"""A training step of a recursive network against the bare products that it makes."""

from __future__ import annotations

from typing import Any

import jax

from engine import STEPS, chunk
from measuring import row, side_by_side
from recombine.models.recursive import Recursive
from recombine.recipes.paper import Paper
from recombine.training.config import RunConfig

TASKS, SIZE = 64, 6
TURNS = 5


def config(mixing: Any) -> RunConfig:
    """Mazes of 36 cells."""
    return RunConfig.model_validate(
        {
            "family": {"kind": "mazes", "size": SIZE},
            "space": {"kind": "instances", "number": 64},
            "model": Recursive(cells=SIZE**2, width=128, heads=4, updates=3, cycles=2, mixing=mixing),
            "recipe": Paper(tasks=TASKS, samples=SIZE**2),
            "validation_tasks": 1,
        }
    )


def puzzles() -> None:
    """Each update applies all blocks: forward only in all cycles but the last, forward and backward in that one."""
    for mixing in ("mlp", "attention"):
        given = config(mixing)
        ours, products = side_by_side([chunk(given), _products(given)], TURNS)
        row(
            f"recursive, 2 x 128, 36 cells, {mixing}",
            f"{products / ours:.2f} of bare products",
            f"{1000 * ours / STEPS:.1f} ms a step",
        )


def _products(given: RunConfig) -> Any:
    """Just the products with weight matrices: as often forward, for the weights and for the layer below as a step makes them."""
    model = given.model
    assert isinstance(model, Recursive)
    rows, width = TASKS * model.cells, model.width
    hidden, across = (round(model.mlp_ratio * units * 2 / 3) for units in (width, model.cells))
    mixing = [(rows, width, width)] * 4
    if model.mixing == "mlp":
        mixing = [(TASKS * width, model.cells, 2 * across), (TASKS * width, across, model.cells)]
    shapes = [*mixing, (rows, width, 2 * hidden), (rows, hidden, width)] * model.layers
    layers = [
        tuple(jax.random.normal(jax.random.key(place), shape) for shape in ((many, one), (one, other), (many, other)))
        for place, (many, one, other) in enumerate(shapes)
    ]

    @jax.jit
    def forward(layers: Any) -> Any:
        return [x @ w for x, w, _ in layers]

    @jax.jit
    def both(layers: Any) -> Any:
        return [each for x, w, g in layers for each in (x @ w, x.T @ g, g @ w.T)]

    applications = model.updates + 1

    def go() -> Any:
        found = None
        for _ in range(STEPS * applications):
            found = [forward(layers) for _ in range(model.cycles - 1)], both(layers)
        return found

    return go
