"""Raw integers: numbers and coefficients of all modules, interleaved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from recombine.encodings.tokens import TENTHS, Tokens
from recombine.errors import BadInput
from recombine.families.hyperteacher import LEVELS, Coefficients, Hyperteacher
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

SPACE = SubsetSpace(modules=6, max_active=3)


def encoded(space: Any, law: Coefficients, tasks: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
    family = Hyperteacher(inputs=2, hidden=2, outputs=2, coefficients=law)
    teacher, some = tasks(space, family, 64)
    assert Tokens().size(space, family) == 2 * space.width
    encoder = Tokens().draw(space, family, jax.random.key(0))
    return np.asarray(jax.vmap(lambda task: encoder(task, teacher, jax.random.key(1)))(some)), np.asarray(some.vector)


@pytest.mark.parametrize("law", ["discrete", "k-hot"])
@pytest.mark.parametrize(
    "space",
    [SPACE, ProductSpace(factors={"colour": 2, "shape": 3})],  # type: ignore[arg-type]
    ids=["subset", "product"],
)
def test_numbers_and_tenths_are_interleaved_integers(space: Any, law: Coefficients, tasks: Callable[..., Any]):
    codes, vectors = encoded(space, law, tasks)
    np.testing.assert_array_equal(codes, np.round(codes))
    np.testing.assert_array_equal(codes[:, 0::2], np.tile(np.arange(space.width), (64, 1)))
    np.testing.assert_allclose(codes[:, 1::2] / TENTHS, vectors, atol=1e-6)


def test_every_level_is_a_whole_number_of_tenths():
    assert [float(level) for level in jnp.round(TENTHS * jnp.array(LEVELS))] == [5, 6, 7, 8, 9, 10]


def test_a_linear_map_reads_the_task_off_the_code(tasks: Callable[..., Any]):
    """As published. (It could not, if only active modules were listed.)"""
    codes, vectors = encoded(SPACE, "discrete", tasks)
    assert LinearRegression().fit(codes[:40], vectors[:40]).score(codes[40:], vectors[40:]) > 0.999


def test_continuous_coefficients_are_refused():
    with pytest.raises(BadInput, match=r"whole tenths.*continuous") as caught:
        Tokens().size(SPACE, Hyperteacher(coefficients="continuous"))
    assert caught.value.fix is not None and "encoding=identity" in caught.value.fix
