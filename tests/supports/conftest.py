"""What the tests of supports share. JAX is imported late, after tests/conftest.py has told it where its cache is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

if TYPE_CHECKING:
    from recombine.spaces.product import ProductSpace
    from recombine.spaces.subset import SubsetSpace
    from recombine.supports.base import Sampler


@pytest.fixture
def paper() -> SubsetSpace:
    """The space of the scaling paper: 696 combinations."""
    from recombine.spaces.subset import SubsetSpace

    return SubsetSpace(modules=16, max_active=3)


@pytest.fixture
def toys() -> ProductSpace:
    """A product with unequal factors: 24 combinations of 9 values."""
    from recombine.spaces.product import ProductSpace

    return ProductSpace(factors={"colour": 2, "shape": 3, "place": 4})  # type: ignore[arg-type]


@pytest.fixture
def huge() -> SubsetSpace:
    """About 10^41 combinations."""
    from recombine.spaces.subset import SubsetSpace

    return SubsetSpace(modules=1000, max_active=20)


@functools.cache
def _many() -> Callable:
    """One compiled function for all tests, so that samplers of one shape are compiled once."""
    import equinox as eqx
    import jax

    return eqx.filter_jit(lambda sampler, keys: jax.vmap(sampler)(keys))


@pytest.fixture
def drawn() -> Callable[..., np.ndarray]:
    """Rows drawn by a compiled and vmapped sampler."""

    import jax

    def draw(sampler: Sampler, number: int, seed: int = 0) -> np.ndarray:
        return np.asarray(_many()(sampler, jax.random.split(jax.random.key(seed), number)))

    return draw


@pytest.fixture
def fit() -> Callable[..., float]:
    """The p value of "the `expected` rows come in these shares" (default: equal); 0 if another row came."""

    def p_value(rows: np.ndarray, expected: np.ndarray, shares: np.ndarray | None = None) -> float:
        numbers = {tuple(row): index for index, row in enumerate(expected.tolist())}
        if any(tuple(row) not in numbers for row in rows.tolist()):
            return 0.0
        counts = np.bincount([numbers[tuple(row)] for row in rows.tolist()], minlength=len(expected))
        return float(stats.chisquare(counts, None if shares is None else shares * len(rows)).pvalue)

    return p_value
