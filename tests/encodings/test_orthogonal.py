"""The orthogonal encoding rotates z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from recombine.encodings.orthogonal import Orthogonal, OrthogonalEncoder
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

FAMILY = Hyperteacher(inputs=2, hidden=2, outputs=2)


def drawn(modules: int, seed: int = 0) -> OrthogonalEncoder:
    return Orthogonal().draw(SubsetSpace(modules=modules, max_active=1), FAMILY, jax.random.key(seed))


@pytest.mark.parametrize("modules", [1, 2, 7, 64])
def test_the_matrix_is_orthonormal(modules: int):
    matrix = np.asarray(drawn(modules).matrix, float)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(modules), atol=1e-5)


@pytest.mark.parametrize(
    "space",
    [SubsetSpace(modules=5, max_active=3), ProductSpace(factors={"colour": 2, "shape": 3})],  # type: ignore[arg-type]
)
def test_the_code_is_the_rotated_vector(space: Any, tasks: Callable[..., Any]):
    teacher, some = tasks(space, FAMILY)
    encoder = Orthogonal().draw(space, FAMILY, jax.random.key(0))
    codes = jax.vmap(lambda task: encoder(task, teacher, jax.random.key(1)))(some)
    np.testing.assert_allclose(codes, np.asarray(some.vector) @ np.asarray(encoder.matrix).T, atol=1e-6)
    np.testing.assert_allclose(codes @ encoder.matrix, some.vector, atol=1e-5)


def test_rotations_are_uniform():
    """Under the uniform law an entry's square is a Beta(1/2, (n-1)/2) variable and its sign a fair coin."""
    entries = np.array([drawn(5, seed).matrix[1, 2] for seed in range(200)])
    assert stats.kstest(entries**2, stats.beta(0.5, 2).cdf).pvalue > 1e-3
    assert 60 < (entries > 0).sum() < 140
