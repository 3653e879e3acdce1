"""The identity encoding shows z as it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.encodings.identity import Identity
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace


@pytest.mark.parametrize(
    "space",
    [SubsetSpace(modules=5, max_active=3), ProductSpace(factors={"colour": 2, "shape": 3})],  # type: ignore[arg-type]
)
def test_shows_the_task_vector(space: Space):
    family = Hyperteacher(inputs=2, hidden=2, outputs=2)
    encoding = Identity()
    teacher = family.draw(space, jax.random.key(0))
    encoder = encoding.draw(space, family, jax.random.key(1))
    assert encoding.size(space, family) == space.width == 5
    for row in space.enumerate()[::3]:
        task = teacher.task(jnp.asarray(row), jax.random.key(2))
        code = encoder(task, teacher, jax.random.key(3))
        wanted = np.zeros(5)
        parts = list(space.constituents(row))
        wanted[parts] = np.asarray(task.coefficients)[: len(parts)]
        np.testing.assert_array_equal(code, wanted.astype(np.float32))


def test_has_no_parameters():
    family = Hyperteacher()
    encoder = Identity().draw(SubsetSpace(modules=3, max_active=2), family, jax.random.key(0))
    assert jax.tree.leaves(encoder) == []
