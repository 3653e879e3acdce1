"""Silhouettes: the contract, and which pixel belongs to which object."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.silhouettes import FILLED, NOBODY, SEVERAL, SPACE, Silhouettes, outlines
from recombine.spaces.product import ProductSpace
from recombine.testing import check_family

SPACES = {"outlines": ProductSpace(factors=SPACE), "filled": ProductSpace(factors=FILLED)}  # type: ignore[arg-type]


@functools.cache
def drawn(style: str, samples: int):
    teacher = Silhouettes(flips=0.2, style=style).draw(SPACES[style], jax.random.key(0))  # type: ignore[arg-type]
    return jax.jit(lambda row: teacher.batch(teacher.task(row, jax.random.key(0)), jax.random.key(1), samples))


def batch_of(*names: str, style: str = "outlines"):
    return drawn(style, 32)(jnp.asarray(SPACES[style].row(names)))


def test_the_contract():
    check_family(Silhouettes(pixels=16), SPACES["outlines"])


@pytest.mark.parametrize("style", list(SPACES))
@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
def test_owners_are_as_many_as_objects_and_agree_with_the_image(number, style):
    batch = batch_of("square", number, style=style)
    owners, images = np.asarray(batch.labels), np.asarray(batch.targets)
    assert set(np.unique(images)) == {0.0, 1.0}
    assert np.array_equal(owners == NOBODY, images == 0)
    for owner in owners:
        found = set(owner[owner >= 0])
        assert found <= set(range(int(number)))
        # Filled shapes overlap a little and none hides another. Outlines may be anywhere.
        assert style == "outlines" or len(found) == int(number)
    assert style == "outlines" or (owners == SEVERAL).sum() <= 0.15 * (owners != NOBODY).sum()
    assert (number == "1") <= (not (owners == SEVERAL).any())


@pytest.mark.parametrize("name", SPACE["shape"])
def test_one_outline_is_whole_and_anywhere_in_the_image(name):
    outline, corners = outlines()[name], []
    outline = outline[:, outline.any(axis=0)]
    for image in np.asarray(batch_of(name, "1").targets).reshape(-1, 28, 28) > 0.5:
        rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
        corners.append((rows[0], columns[0]))
        assert np.array_equal(image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], outline)
    room = np.array(image.shape) - outline.shape
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    assert (low <= 0.15 * room).all() and (high >= 0.85 * room).all()


def test_outlines_are_those_of_the_published_data():
    # Pixels of each shape, and of its hole; a triangle upside down is the other one.
    from scipy import ndimage

    drawn = outlines()
    assert {name: int(image.sum()) for name, image in drawn.items()} == {
        "square": 40,
        "triangle": 48,
        "inverted triangle": 48,
    }
    holes = {name: int((ndimage.binary_fill_holes(image) & ~image).sum()) for name, image in drawn.items()}  # type: ignore[operator]
    assert holes == {"square": 9, "triangle": 6, "inverted triangle": 6}
    assert np.array_equal(drawn["triangle"][::-1], drawn["inverted triangle"])


def test_the_share_of_flipped_pixels():
    batch = batch_of("square", "2")
    assert abs(float(jnp.mean(batch.inputs != batch.targets)) - 0.2) < 0.01


def test_the_score_is_that_of_scikit_learn():
    from sklearn.metrics import r2_score

    family, batch = Silhouettes(), batch_of("square", "2")
    guess = 0.7 * batch.targets + 0.1
    scores = {name: np.asarray(value)[None] for name, value in family.score(batch, guess).items()}
    expected = r2_score(np.asarray(batch.targets).ravel(), np.asarray(guess).ravel())
    np.testing.assert_allclose(family.metrics(scores)["r2"], expected, rtol=1e-4)
    np.testing.assert_allclose(family.metrics(scores)["correlation"], 1, rtol=1e-4)


def test_other_spaces_are_refused():
    with pytest.raises(BadInput):
        Silhouettes().check(ProductSpace(factors={"shape": ["disc"], "objects": ["9"]}))  # type: ignore[arg-type]


def test_shapes_of_the_other_style_are_refused():
    with pytest.raises(BadInput, match="disc"):
        Silhouettes().check(SPACES["filled"])
    with pytest.raises(BadInput, match="inverted triangle"):
        Silhouettes(style="filled").check(SPACES["outlines"])
