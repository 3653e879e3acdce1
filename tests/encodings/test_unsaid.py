"""Unsaid: one code for all tasks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.component import resolve
from recombine.encodings.unsaid import Unsaid
from recombine.families.hyperteacher import Hyperteacher
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_component, check_encoding

SPACE, FAMILY = SubsetSpace(modules=5, max_active=2), Hyperteacher(inputs=3, hidden=4, outputs=2)


def test_every_task_has_the_same_code():
    encoding = resolve("encodings", "unsaid")
    check_component(encoding)
    teacher = FAMILY.draw(SPACE, jax.random.key(0))
    encoder = encoding.draw(SPACE, FAMILY, jax.random.key(1))
    codes = [
        np.asarray(encoder(teacher.task(jnp.asarray(row), jax.random.key(seed)), teacher, jax.random.key(seed)))
        for seed, row in enumerate(SPACE.enumerate())
    ]
    assert np.unique(codes, axis=0).tolist() == [[0.0]]
    assert encoding.size(SPACE, FAMILY) == encoding.features(SPACE, FAMILY) == 1


def test_it_is_the_one_encoding_that_does_not_tell_combinations_apart():
    with pytest.raises(AssertionError, match="combinations have one code"):
        check_encoding(Unsaid(), SPACE, FAMILY)
