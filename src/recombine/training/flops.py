"""Counting the floating-point operations of training, by the compiler's own account of the program."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, PyTree

from recombine.encodings.base import Encoding
from recombine.families.base import Family
from recombine.models.base import EmbeddedNetwork, Model, Network
from recombine.models.latent_decoder import LatentDecoderNetwork
from recombine.models.sequence import SequenceNetwork
from recombine.objectives.base import Objective, trained_leaves
from recombine.spaces.base import Space
from recombine.training.config import RunConfig
from recombine.training.prepare import network_shapes
from recombine.training.program import draw_examples


def step_flops(config: RunConfig) -> float:
    """Operations of one training step: loss and gradient of one batch, as the compiler counts them.

    The optimiser and the drawing of data are left out, as is usual. Nothing is compiled or trained.

    Args:
        config: The run.

    Returns:
        Multiplications, additions and other floating-point operations; a multiply-add counts as two.

    Example:
        ```python
        step_flops(rc.RunConfig(model=rc.models.MLP(width=64))) * 500
        ```
    """
    recipe = config.recipe
    parts: tuple[Any, ...] = config.model, config.encoding, config.space, config.family, config.objective
    return _step_flops(*parts, recipe.tasks, recipe.samples)


@functools.lru_cache(maxsize=256)
def _step_flops(
    model: Model, encoding: Encoding, space: Space, family: Family, objective: Objective, tasks: int, samples: int
) -> float:
    key = jax.random.key(0)
    row = jax.eval_shape(space.sample, key)
    teacher = eqx.filter_eval_shape(family.draw, space, key)
    encoder = eqx.filter_eval_shape(encoding.draw, space, family, key)
    own = functools.partial(draw_examples, samples=samples)
    _, *example = eqx.filter_eval_shape(own, teacher, encoder, row, key)
    codes, batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((tasks, *leaf.shape), leaf.dtype), example)
    parts: tuple[Any, ...] = model, encoding, space, family
    shapes = network_shapes(*parts)
    weights, rest = eqx.partition(shapes, trained_leaves(shapes))
    numbers, static = eqx.partition(rest, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def gradient(weights: PyTree, numbers: PyTree, codes: Array, batch: PyTree, key: Array) -> PyTree:
        def cost(weights: PyTree) -> Array:
            network = eqx.combine(weights, numbers, static)
            return objective.cost(network, *objective.training_examples(codes, batch, key), key)

        return jax.value_and_grad(cost)(weights)

    return count_flops(gradient, weights, numbers, codes, batch, jax.eval_shape(lambda: jax.random.key(0)))


def count_flops(function: Any, *arguments: PyTree) -> float:
    """Operations of a function of arrays, as the compiler counts them. Nothing is compiled.

    Args:
        function: A function that JAX can trace.
        *arguments: Its arguments, or their shapes.
    """
    return _counted(jax.make_jaxpr(function)(*arguments))


def _counted(program: Any) -> float:
    shapes = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in program.in_avals]
    counted = jax.jit(jaxpr_as_fun(program)).lower(*shapes).cost_analysis()
    # The compiler counts the body of a loop once.
    return float((counted or {}).get("flops", 0.0)) + _repeated(program.jaxpr)


def _repeated(program: Any) -> float:
    """The operations of all iterations of loops but the first."""
    more = 0.0
    for equation in program.eqns:
        if equation.primitive.name == "scan":
            more += (equation.params["length"] - 1) * _counted(equation.params["jaxpr"])
            more += _repeated(equation.params["jaxpr"].jaxpr)
            continue
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                more += _repeated(inner)
    return more


def weight_count(network: Network) -> int:
    """The number of weights without embeddings: tokens and codes are embedded, and answers read out, by other matrices.

    Args:
        network: The network, with arrays or shapes.
    """
    body: list[Any] = [network]
    if isinstance(network, EmbeddedNetwork):
        body = [network.network]
    elif isinstance(network, SequenceNetwork | LatentDecoderNetwork):
        body = [eqx.tree_at(lambda own: own.embedding, network, None)]
    leaves, chosen = jax.tree.leaves(body), jax.tree.leaves([trained_leaves(each) for each in body])
    return sum(leaf.size for leaf, is_weight in zip(leaves, chosen, strict=True) if is_weight)
