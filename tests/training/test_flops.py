"""Counted operations against formulas: dense layers, a decoder with and without shared layers, and loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from recombine.models import MLP, Decoder
from recombine.probes import Compute
from recombine.training import Setting
from recombine.training.config import RunConfig
from recombine.training.flops import count_flops, step_flops, weight_count
from recombine.training.prepare import network_shapes


def chains(**model: Any) -> RunConfig:
    recipe = {"kind": "fast", "tasks": 16, "samples": 1, "steps": 7}
    return RunConfig.model_validate({"family": "chains", "model": {"kind": "decoder", **model}, "recipe": recipe})


def products(config: RunConfig) -> float:
    """The products of a decoder's step, by hand. Of the last layer only what the answers need is computed."""
    model, family = config.model, config.family
    assert isinstance(model, Decoder)
    width, ratio, depth = model.width, model.mlp_ratio, model.layers * model.repeats
    prompt, answer = family.longest_prompt, family.longest_answer  # type: ignore[attr-defined]
    tokens, forward = prompt + answer, 0.0
    for layer in range(depth):
        queries = answer if layer == depth - 1 else tokens
        forward += 2 * width**2 * (2 * tokens + (2 + 2 * ratio) * queries)  # Keys and values; queries, output, MLP.
        forward += 2 * 2 * queries * tokens * width  # Scores and weighted values.
    forward += 2 * answer * width * family.vocabulary.size  # type: ignore[attr-defined]
    return 3 * config.recipe.tasks * forward


@pytest.mark.parametrize("model", [{"layers": 3}, {"layers": 2, "repeats": 3, "mlp_ratio": 2}])
def test_a_decoder_needs_its_products_and_little_else(model: Any) -> None:
    """Norms, softmax and rotation come to a few operations per number, so their share falls with the width."""
    shares = []
    for width in (32, 256):
        config = chains(width=width, **model)
        shares.append(step_flops(config) / products(config) - 1)
    assert 0 < shares[1] < 0.06 and shares[1] < shares[0] < 0.5, shares


def test_dense_layers() -> None:
    recipe = {"kind": "fast", "tasks": 8, "samples": 4}
    config = RunConfig(model=MLP(widths=(512, 384)), recipe=recipe)  # type: ignore[arg-type]
    rows, code, inputs, outputs = 32, 16, 16, 16
    # The gradient with respect to the inputs is not needed; the part of the code is computed once per task.
    first = 2 * 512 * (2 * rows * inputs + 2 * 8 * code)
    rest = 3 * 2 * rows * (512 * 384 + 384 * outputs)
    assert step_flops(config) == pytest.approx(first + rest, rel=0.03)


def test_every_iteration_of_a_loop_counts() -> None:
    matrix = jnp.ones((64, 64))

    def looped(matrix: Any, times: int) -> Any:
        def inner(value: Any, _: Any) -> Any:
            return jax.lax.scan(lambda own, _: (own @ matrix, None), value, length=2)[0], None

        return jax.lax.scan(inner, matrix, length=times)[0]

    one = 2 * 64**3
    assert count_flops(lambda own: own @ own, matrix) == one
    for times in (1, 5):
        assert count_flops(lambda own, times=times: looped(own, times), matrix) == pytest.approx(
            2 * times * one, rel=0.01
        )
        # Backwards there are two products for each one.
        backwards = jax.grad(lambda own, times=times: looped(own, times).sum())
        assert count_flops(backwards, matrix) == pytest.approx(6 * times * one, rel=0.05)


def test_weights_are_counted_without_embeddings() -> None:
    """By hand: four matrices of attention, two of the MLP, its biases, two norms, the scales of queries and keys, the last norm."""
    config = chains(width=16, layers=3, heads=2)
    shapes = network_shapes(config.model, config.encoding, config.space, config.family)
    assert weight_count(shapes) == 3 * (12 * 16**2 + 5 * 16 + 2 * 16 + 2 * 8)
    shared = config.replace(repeats=4)
    assert weight_count(network_shapes(shared.model, shared.encoding, shared.space, shared.family)) == weight_count(
        shapes
    )


def test_the_measurement_multiplies_by_the_steps() -> None:
    config = chains(width=16, layers=1, heads=2)
    measured = Compute().measure(Setting(config), Setting(config).network_shapes())
    assert measured.summary["training_flops"] == 7 * measured.summary["step_flops"] == 7 * step_flops(config)
