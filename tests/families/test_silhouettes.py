"""Silhouettes: the contract, and which pixel belongs to which object."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.silhouettes import NOBODY, SEVERAL, SPACE, Silhouettes
from recombine.spaces.product import ProductSpace
from recombine.testing import check_family

USUAL = ProductSpace(factors=SPACE)  # type: ignore[arg-type]


@functools.cache
def drawn(flips: float, samples: int):
    teacher = Silhouettes(flips=flips).draw(USUAL, jax.random.key(0))
    return jax.jit(lambda row: teacher.batch(teacher.task(row, jax.random.key(0)), jax.random.key(1), samples))


def batch_of(*names: str, flips: float = 0.2):
    return drawn(flips, 32)(jnp.asarray(USUAL.row(names)))


def test_the_contract():
    check_family(Silhouettes(pixels=16), USUAL)


@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
def test_owners_are_as_many_as_objects_and_agree_with_the_image(number):
    batch = batch_of("square", number)
    owners, images = np.asarray(batch.labels), np.asarray(batch.targets)
    assert set(np.unique(images)) == {0.0, 1.0}
    assert np.array_equal(owners == NOBODY, images == 0)
    for owner in owners:
        assert set(owner[owner >= 0]) == set(range(int(number)))
    # Objects overlap a little, but none hides another.
    assert (owners == SEVERAL).sum() <= 0.15 * (owners != NOBODY).sum()
    assert (number == "1") <= (not (owners == SEVERAL).any())


def test_the_share_of_flipped_pixels():
    batch = batch_of("disc", "2")
    assert abs(float(jnp.mean(batch.inputs != batch.targets)) - 0.2) < 0.01


def test_the_score_is_that_of_scikit_learn():
    from sklearn.metrics import r2_score

    family, batch = Silhouettes(), batch_of("disc", "2")
    guess = 0.7 * batch.targets + 0.1
    scores = {name: np.asarray(value)[None] for name, value in family.score(batch, guess).items()}
    expected = r2_score(np.asarray(batch.targets).ravel(), np.asarray(guess).ravel())
    np.testing.assert_allclose(family.metrics(scores)["r2"], expected, rtol=1e-4)
    np.testing.assert_allclose(family.metrics(scores)["correlation"], 1, rtol=1e-4)


def test_other_spaces_are_refused():
    with pytest.raises(BadInput):
        Silhouettes().check(ProductSpace(factors={"shape": ["disc"], "objects": ["9"]}))  # type: ignore[arg-type]
