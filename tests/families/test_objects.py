"""Questions about objects: the contract, and what pairs of scenes have in common."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.families.objects import MOST, SPACE, Objects
from recombine.families.scenes.rendering import COLOURS
from recombine.spaces.product import ProductSpace
from recombine.supports.few_objects import FewObjects
from recombine.testing import check_family, check_support
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

USUAL = ProductSpace(factors=SPACE)  # type: ignore[arg-type]
SUPPORT = FewObjects(most=3, conjunctions=2)
SETTING = Setting(RunConfig(family=Objects(), space=USUAL, support=SUPPORT))
ROWS = USUAL.enumerate()
TEACHER = SETTING.teacher
PAIR = jax.jit(lambda row, key: TEACHER.pair(row, key))
SCENE = jax.jit(
    lambda row, shape, colour, key: TEACHER.scene(TEACHER.question(row, shape, colour), jnp.array(False), key)
)
BATCH = jax.jit(lambda row, key: TEACHER.batch(TEACHER.task(row, jax.random.key(0)), key, 600))

CLEAR = Setting(RunConfig(family=Objects(noise=0.0))).teacher
CLEAN = jax.jit(lambda things, number, key: CLEAR.image(things, number, key))

row_numbers = st.integers(0, len(ROWS) - 1)
seeds = st.integers(0, 2**31)


def asked(row):
    level = {name: int(value) for name, value in TEACHER.levels(row).items()}
    return level["shape"], level["colour"], level["objects"]


def shown(things, number):
    return [tuple(int(value) for value in thing) for thing in np.asarray(things)[:number]]


def test_the_contract():
    check_family(Objects(pixels=12), USUAL)


@given(row_numbers, seeds)
@settings(max_examples=40, deadline=None)
def test_swapped_pairs_have_equal_bags_of_features_and_only_one_has_the_conjunction(number, seed):
    row = jnp.asarray(ROWS[number])
    shape, colour, objects = asked(row)
    pair = PAIR(row, jax.random.key(seed))
    bound, unbound = shown(pair.bound, objects), shown(pair.unbound, objects)
    assert (shape, colour) in bound
    assert (shape, colour) not in unbound
    if objects > 1:
        for feature in (0, 1):
            assert sorted(thing[feature] for thing in bound) == sorted(thing[feature] for thing in unbound)
        # Both features asked for are there: only their binding is not.
        assert shape in {thing[0] for thing in unbound} and colour in {thing[1] for thing in unbound}
    else:
        assert (unbound[0][0] == shape) != (unbound[0][1] == colour)


@given(row_numbers, seeds)
@settings(max_examples=40, deadline=None)
def test_held_out_conjunctions_are_only_in_scenes_that_are_asked_about_them(number, seed):
    row = jnp.asarray(ROWS[number])
    shape, colour, objects = asked(row)
    allowed = np.asarray(TEACHER.shown)
    pair = PAIR(row, jax.random.key(seed))
    for thing in {*shown(pair.bound, objects), *shown(pair.unbound, objects)} - {(shape, colour)}:
        assert allowed[thing]
    for by_shape in (True, False):
        absent = shown(SCENE(row, jnp.array(by_shape), jnp.array(not by_shape), jax.random.key(seed)), objects)
        assert all(allowed[thing] for thing in absent)
        assert all(thing[0 if by_shape else 1] != (shape if by_shape else colour) for thing in absent)


def test_the_question_names_what_is_asked_and_not_the_number_of_objects():
    keys = jax.random.split(jax.random.key(0), 400)
    row = USUAL.row(("square", "blue", "4"))
    tasks = jax.vmap(lambda key: TEACHER.task(jnp.asarray(row), key))(keys)
    names = [tuple(np.flatnonzero(vector)) for vector in np.asarray(tasks.vector)]
    kinds = {(1,): 0.25, (4 + 2,): 0.25, (1, 4 + 2): 0.5}
    assert set(names) == set(kinds)
    for kind, share in kinds.items():
        assert abs(names.count(kind) / len(names) - share) < 0.1


@pytest.mark.parametrize("number", range(1, MOST + 1))
def test_images_show_as_many_objects_in_their_colours(number):
    things = jnp.array([[1, level % 4] for level in range(MOST)])  # Squares.
    image = np.asarray(CLEAN(things, jnp.array(number), jax.random.key(number))).reshape(3, 8, 3, 8, 3)
    # An object covers the middle of its cell wherever it is in it.
    middles = (image[:, 4, :, 4].reshape(-1, 3) + 1) / 2
    grey = np.ptp(middles, axis=1) < 0.2
    assert (~grey).sum() == number
    inks = np.array(list(COLOURS.values()))[:4]
    found = sorted(int(np.argmin(np.abs(colour - inks).sum(axis=1))) for colour in middles[~grey])
    assert found == sorted(level % 4 for level in range(number))


def test_answers_are_balanced():
    row = jnp.asarray(USUAL.row(("disc", "red", "3")))
    batch = BATCH(row, jax.random.key(1))
    assert abs(float(batch.targets[:, 1].mean()) - 0.5) < 0.08


@pytest.mark.parametrize(
    "factors",
    [
        {"shape": 3, "colour": ["red", "blue", "green"], "objects": ["1", "2"]},
        {"shape": ["disc", "square", "ring"], "colour": ["red", "blue", "green"]},
        {"shape": ["disc", "square"], "colour": ["red", "blue", "green"], "objects": ["1", "2"]},
        {"shape": ["disc", "square", "ring"], "colour": ["red", "blue", "green"], "objects": ["1", "6"]},
    ],
)
def test_other_spaces_are_refused(factors):
    with pytest.raises(BadInput):
        Objects().check(ProductSpace(factors=factors))


# The support


@pytest.mark.parametrize(
    "support", [SUPPORT, FewObjects(fewest=2, most=3), FewObjects(conjunctions=1, most=5)], ids=str
)
def test_the_contract_of_the_support(support):
    check_support(support, USUAL)


def test_no_two_left_out_conjunctions_share_a_feature_and_replicates_differ():
    patterns = set()
    for seed in range(8):
        left_out = np.argwhere(~SUPPORT.draw(USUAL, seed).shown)
        assert len(left_out) == 2
        assert len(set(left_out[:, 0])) == len(set(left_out[:, 1])) == 2
        patterns.add(tuple(left_out.ravel()))
    assert len(patterns) > 3


@pytest.mark.parametrize("given_support", [{"conjunctions": 3}, {"fewest": 6, "most": 7}, {"most": 5}])
def test_supports_that_leave_nothing_are_refused(given_support):
    with pytest.raises(BadInput):
        FewObjects(**given_support).check(USUAL)
