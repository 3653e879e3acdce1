"""Every encoding keeps the contract, trains, and is compiled once for all replicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from recombine.component import kinds, resolve
from recombine.encodings.few_shot import FewShot
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.base import EmbeddedNetwork
from recombine.recipes.paper import Paper
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_encoding
from recombine.training.config import Seeds
from recombine.training.trainer import Trainer

TOYS = ProductSpace(factors={"colour": ["red", "dark blue"], "shape": 3, "place": 4})  # type: ignore[arg-type]
SUBSETS = SubsetSpace(modules=7, max_active=3)
PLAIN = Hyperteacher(inputs=4, hidden=5, outputs=3, coefficients="k-hot")

# Captions are of scenes only: test_captions.py; prompts of sequences: tests/objectives/test_next_token.py. What is unsaid
# tells no combinations apart: test_unsaid.py. Only puzzles have identifiers: tests/families/test_arc.py.
APART = "few-shot", "captions", "prompt", "unsaid", "puzzle-identifier"
EVERY = [kind for kind in kinds("encodings") if kind not in APART]
ENCODINGS = [FewShot(shots=5), *(resolve("encodings", kind) for kind in EVERY)]
SUBSET_ONES = [encoding for encoding in ENCODINGS if encoding.kind != "sentences"]


def kind_of(encoding: Any) -> str:
    return encoding.kind


def test_the_published_encodings_are_there():
    published = {"identity", "orthogonal", "tokens", "invertible", "interval-shuffle", "few-shot"}
    assert published | {"token-embedding", "sentences"} <= set(kinds("encodings"))


@pytest.mark.parametrize("encoding", SUBSET_ONES, ids=kind_of)
def test_contract_on_subsets(encoding: Any):
    check_encoding(encoding, SUBSETS, Hyperteacher(inputs=3, hidden=4, outputs=2))


@pytest.mark.parametrize("encoding", ENCODINGS, ids=kind_of)
def test_contract_on_products(encoding: Any):
    check_encoding(encoding, TOYS, PLAIN)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=kind_of)
def test_trains_and_compiles_once(encoding: Any, tiny: Callable[..., Any]):
    parts = {"space": TOYS, "family": PLAIN} if encoding.kind == "sentences" else {}
    recipe = Paper(learning_rate=0.01, steps=4, tasks=8, samples=4)
    configs = [
        tiny(encoding=encoding, recipe=recipe, eval_every=4, seeds=Seeds.replicate(seed), **parts) for seed in (0, 1)
    ]
    trainer = Trainer()
    outcomes = list(trainer.train(configs))
    assert trainer.compiler.compilations == 1
    for config, outcome in zip(configs, outcomes, strict=True):
        first = outcome.setting.network()
        reader = encoding.embedder(config.space, config.family, jax.random.key(0))
        assert isinstance(outcome.network, EmbeddedNetwork) == (reader is not None)
        before, after = (jax.tree.leaves(network) for network in (first, outcome.network))
        assert all(np.all(np.isfinite(leaf)) for leaf in after)
        assert all(np.any(one != other) for one, other in zip(before, after, strict=True)), "all is trained"
