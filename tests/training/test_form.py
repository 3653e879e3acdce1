"""The form of a network: shapes and nothing else, of the very network that would be drawn."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import pytest

from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"encoding": "tokens"},
        {"model": "transformer"},
        {"model": "constructed", "recipe": {"kind": "paper", "steps": 0}},
        {"family": "maximum-sum"},
        {"family": "scan"},
    ],
    ids=str,
)
def test_the_form_of_a_network_is_that_of_the_one_that_is_drawn(parts: dict[str, Any]) -> None:
    setting = Setting(RunConfig.model_validate(parts))
    form, network = setting.network_shapes(), setting.network()
    (shapes, static), (arrays, others) = (
        eqx.partition(tree, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))
        for tree in (form, network)
    )
    assert jax.tree.structure(shapes) == jax.tree.structure(arrays)
    assert all(
        (one.shape, one.dtype) == (other.shape, other.dtype)
        for one, other in zip(jax.tree.leaves(shapes), jax.tree.leaves(arrays), strict=True)
    )
    assert static == others and not any(eqx.is_array(leaf) for leaf in jax.tree.leaves(form))
