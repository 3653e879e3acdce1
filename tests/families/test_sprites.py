"""Sprites: the contract, what images show, and scores worked out by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.families.lookup_sprites import LookupSprites
from recombine.families.scenes.rendering import SHAPES
from recombine.families.sprites import FACTORS, SPACE, Sprites
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig


def space_of(**factors: Any) -> ProductSpace:
    return ProductSpace(factors=factors)  # type: ignore[arg-type]


USUAL = space_of(**SPACE)
TURNED = space_of(row=3, shape=["bar", "disc", "ring"], column=5, size=2)


def batch_of(family: Sprites, space: ProductSpace, row: Any, samples: int = 4, seed: int = 0) -> Batch:
    teacher = family.draw(space, jax.random.key(7))
    task = teacher.task(jnp.asarray(row), jax.random.key(1))
    return teacher.batch(task, jax.random.key(seed), samples)


@pytest.mark.parametrize("family", [Sprites(pixels=32, noise=0.0), LookupSprites()], ids=str)
def test_the_contract(family: Sprites):
    check_family(family, TURNED)


@pytest.mark.parametrize("space", [USUAL, TURNED], ids=["usual", "turned"])
def test_the_targets_of_every_factor_have_mean_0_and_variance_1_over_the_space(space: ProductSpace):
    teacher = Sprites().draw(space, jax.random.key(0))
    rows = jnp.asarray(space.enumerate())
    make = jax.vmap(lambda row: teacher.batch(teacher.task(row, jax.random.key(0)), jax.random.key(0), 1))
    targets = np.asarray(jax.jit(make)(rows).targets[:, 0], np.float64)
    np.testing.assert_allclose(targets.mean(0), 0, atol=1e-5)
    variance = targets.var(0)
    np.testing.assert_allclose([variance[: len(SHAPES)].sum(), *variance[len(SHAPES) :]], 1, atol=1e-4)


def test_images_show_where_and_how_large_a_thing_is():
    """The centre of mass and the area of what is light, on images without noise."""
    middles = (np.arange(16) + 0.5) / 16
    for column in range(6):
        for size in range(4):
            image = np.asarray(batch_of(Sprites(noise=0.0), USUAL, USUAL.row((0, 4 + size, 8 + column, 16))).inputs[0])
            light = (image - image.min()).reshape(16, 16) / np.ptp(image)
            where = (light.sum(0) * middles).sum() / light.sum(), (light.sum(1) * middles).sum() / light.sum()
            np.testing.assert_allclose(where, (0.3 + 0.4 * column / 5, 0.3 + 0.4 * 2 / 5), atol=0.01)
            radius = 0.12 + 0.1 * size / 3
            assert light.mean() == pytest.approx(np.pi * radius**2, rel=0.05), "a disc"


def test_shades_differ_and_tell_nothing():
    first, second = (batch_of(Sprites(), USUAL, USUAL.row((1, 5, 9, 15)), seed=seed) for seed in (0, 1))
    assert len(np.unique(np.concatenate([first.inputs, second.inputs]), axis=0)) == 8
    np.testing.assert_array_equal(first.targets, second.targets)


def said(batch: Batch, **changes: tuple[int, float]) -> jax.Array:
    """The targets, with so much added to an output."""
    outputs = batch.targets
    for place, by in changes.values():
        outputs = outputs.at[:, place].add(by)
    return outputs


def test_scores_by_hand():
    family = Sprites()
    batch = batch_of(family, USUAL, USUAL.row((1, 5, 9, 15)), samples=4)
    step = 2 * (3 / 35) ** 0.5
    names = [f"{what}_{factor}" for what in ("r2", "right") for factor in FACTORS]
    perfect = dict.fromkeys(["r2", "success", *names], 1.0)
    assert family.metrics(family.score(batch, batch.targets)) == perfect
    near = family.metrics(family.score(batch, said(batch, column=(7, 0.45 * step))))
    assert near["success"] == 1 and near["r2_column"] == pytest.approx(1 - (0.45 * step) ** 2)
    assert near["r2"] == pytest.approx(1 - (0.45 * step) ** 2 / 4)
    far = family.metrics(family.score(batch, said(batch, column=(7, 0.55 * step))))
    assert (far["success"], far["right_column"], far["right_row"], far["right_shape"]) == (0, 0, 1, 1)
    # Column 1 of 6 said as the one before it, and then some: clipped to the first, which is wrong.
    assert family.metrics(family.score(batch, said(batch, column=(7, -3.0))))["right_column"] == 0
    first = batch_of(family, USUAL, USUAL.row((1, 5, 8, 19)))
    beyond = family.metrics(family.score(first, said(first, column=(7, -3.0), row=(8, 3.0))))
    assert beyond["right_column"] == beyond["right_row"] == 1, "at its end nothing else is nearer"
    other = family.metrics(family.score(batch, said(batch, shape=(2, 9.0))))
    assert other["right_shape"] == 0 and other["r2_shape"] == pytest.approx(-80) and other["r2_size"] == 1


def test_masked_examples_do_not_count():
    family = Sprites()
    batch = batch_of(family, USUAL, USUAL.row((1, 5, 9, 15)), samples=4)
    wrong = batch.targets.at[2:].add(5.0)
    half = Batch(batch.inputs, batch.targets, jnp.array([1.0, 1.0, 0.0, 0.0]), batch.labels)
    assert family.metrics(family.score(half, wrong))["r2"] == 1
    assert family.metrics(family.score(batch, wrong))["success"] == 0.5


def test_pooled_groups_have_the_metrics_of_their_sums():
    family = Sprites()
    rows = [USUAL.row((shape, 5, 9, 15)) for shape in range(4)]
    scores = []
    for index, row in enumerate(rows):
        batch = batch_of(family, USUAL, row)
        scores.append(family.score(batch, batch.targets + 0.3 * index))
    tasks = pd.DataFrame([{name: float(value) for name, value in one.items()} for one in scores])
    tasks["group"] = ["a", "a", "b", "b"]
    found = family.pooled(tasks, ["group"]).set_index("group")
    for name, part in (("a", scores[:2]), ("b", scores[2:])):
        wanted = family.metrics({key: np.array([float(one[key]) for one in part]) for key in part[0]})
        for metric, value in wanted.items():
            assert found.loc[name, metric] == pytest.approx(value), metric


def test_the_control_shows_the_same_images_and_says_other_things():
    rows = [USUAL.row((shape, 5, 9, 15)) for shape in range(4)]
    true, drawn = ([batch_of(family, USUAL, row) for row in rows] for family in (Sprites(), LookupSprites()))
    for one, other in zip(true, drawn, strict=True):
        np.testing.assert_array_equal(one.inputs, other.inputs)
    assert any(not np.allclose(one.targets, other.targets) for one, other in zip(true, drawn, strict=True))
    again = batch_of(LookupSprites(), USUAL, rows[2], seed=5)
    np.testing.assert_array_equal(again.targets, drawn[2].targets)


def test_what_goes_with_it():
    config = RunConfig(family="sprites")  # type: ignore[arg-type]
    assert (config.encoding.kind, config.model.kind, config.space) == ("unsaid", "convnet", USUAL)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (SubsetSpace(modules=4, max_active=2), "factors shape, size, column, row"),
        (space_of(shape=["disc", "square"], size=2, column=2), "factors shape"),
        (space_of(shape=["disc", "square"], size=1, column=2, row=2), "two values"),
        (space_of(shape=["disc", "sqare"], size=2, column=2, row=2), "no shape called 'sqare'"),
    ],
)
def test_other_spaces_are_refused(space: Any, message: str):
    with pytest.raises(BadInput, match=message):
        Sprites().check(space)
