"""Scenes: the contract, what a batch holds, and scores worked out by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from recombine.encodings.sentences import Sentences
from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.families.scenes import FACTORS, TWO_THINGS, Scenes
from recombine.families.scenes.layout import layout_of
from recombine.families.scenes.rendering import PAIR, SINGLE, render
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family


def space_of(factors: Any) -> ProductSpace:
    return ProductSpace(factors=factors)


SAMPLES = 6
ONE, TWO = space_of(FACTORS), space_of(TWO_THINGS)
TURNED = space_of({"texture": ["faded", "plain"], "colour": ["white", "red", "cyan"], "shape": ["bar", "disc"]})


@pytest.mark.parametrize("space", [ONE, TWO, TURNED], ids=["one thing", "two things", "another order"])
def test_the_contract(space: ProductSpace):
    check_family(Scenes(jitter=0.5), space)


@pytest.mark.parametrize("pixels", [16, 32])
def test_a_batch_has_noise_a_time_images_and_labels(pixels: int):
    family = Scenes(pixels=pixels)  # type: ignore[arg-type]
    assert (family.input_size, family.output_size) == (3 * pixels**2 + 1, 3 * pixels**2)
    teacher = family.draw(ONE, jax.random.key(0))
    row = jnp.asarray(ONE.row((1, 6, 9, 12)))
    batch = teacher.batch(teacher.task(row, jax.random.key(1)), jax.random.key(2), 32)
    assert batch.inputs.shape == (32, family.input_size)
    assert np.all(np.asarray(batch.inputs[:, -1]) == 0)
    assert np.asarray(batch.inputs[:, :-1]).std() == pytest.approx(1, abs=0.02)
    assert np.abs(np.asarray(batch.targets)).max() <= 1
    assert np.unique(np.asarray(batch.labels), axis=0).tolist() == [[1, 2, 1, 2, -1]]
    assert len(np.unique(np.asarray(batch.targets), axis=0)) == 32
    assert float(family.headline(family.score(batch, batch.targets))) == 1


def test_labels_number_the_values_of_all_scenes_whatever_the_space():
    layout = layout_of(TURNED)
    assert layout.factors == tuple(SINGLE)
    for row in TURNED.enumerate():
        told = dict(zip(("texture", "colour", "shape"), row - np.array(TURNED.offsets), strict=True))
        label = np.asarray(layout.label(jnp.asarray(row)))
        for number, name in zip(label, SINGLE, strict=True):
            if name in told:
                assert SINGLE[name][number] == dict(TURNED.factors)[name][told[name]]
            else:
                assert number == -1


def images_of(labels: list[list[int]]) -> jax.Array:
    keys = jax.random.split(jax.random.key(0), len(labels))
    return jax.vmap(lambda label, key: render(label, key, 16, 1.0, 0.0))(jnp.array(labels), keys)


def scores_of(meant: list[list[int]], images: jax.Array, mask: tuple[float, ...] | None = None) -> Any:
    """The scores of so many images; masked ones are put beside them, so that one compiled program serves all."""
    number, kept = len(meant), np.zeros(SAMPLES, np.float32)
    kept[:number] = 1 if mask is None else mask
    labels = np.resize(np.array(meant, np.int32), (SAMPLES, len(meant[0])))
    shown = jnp.asarray(np.resize(np.asarray(images), (SAMPLES, 768)))
    return Scenes().score(Batch(jnp.zeros((SAMPLES, 769)), shown, jnp.asarray(kept), jnp.asarray(labels)), shown)


def test_scores_of_one_thing_by_hand():
    meant = [[0, 0, 0, 0, -1]] * 5
    shown = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 2], [1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 3, 0]]
    images = images_of(shown)
    # The last is overlaid by nothing but noise.
    images = images.at[4].set(jax.random.normal(jax.random.key(0), (768,)))
    metrics = Scenes().metrics(scores_of(meant, images))
    assert next(iter(metrics)) == "success"
    assert metrics == pytest.approx(
        {
            "success": 0.4,
            "readable": 0.8,
            "right_shape": 0.6,
            "right_colour": 0.6,
            "right_size": 0.6,
            "right_place": 0.8,
        }
    ), "no texture was asked for"


def test_masked_images_do_not_count():
    images = images_of([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
    scores = scores_of([[0, 0, 0, 0, -1]] * 2, images, mask=(1.0, 0.0))
    assert float(scores["images"]) == 1
    assert Scenes().metrics(scores)["success"] == 1


def test_scores_of_two_things_by_hand():
    disc, square, red, blue, green = 0, 1, 0, 2, 1
    meant = [disc, red, square, blue]
    shown = [
        meant,
        [disc, blue, square, red],
        [square, blue, disc, red],
        [disc, red, square, green],
        [disc, blue, square, blue],
    ]
    scores = scores_of([meant] * 5, images_of(shown))
    assert Scenes().metrics(scores) == pytest.approx(
        {
            "success": 0.2,
            "readable": 1,
            "swapped": 0.2,
            "mirrored": 0.2,
            "right_left_shape": 0.8,
            "right_left_colour": 0.4,
            "right_right_shape": 0.8,
            "right_right_colour": 0.4,
        }
    )
    # Where both should be red nothing can be swapped, and where both are discs nothing mirrored.
    same = [[disc, red, disc, red]]
    metrics = Scenes().metrics(scores_of(same, images_of(same)))
    assert metrics["success"] == 1 and not {"swapped", "mirrored"} & set(metrics)


def test_pooled_equals_the_metrics_of_each_group():
    family = Scenes()
    groups = {"a": [[0, 0, 1, 2], [0, 0, 1, 2]], "b": [[0, 0, 0, 0], [2, 3, 1, 3]]}
    shown = images_of([[0, 0, 1, 2], [0, 2, 1, 0]])
    tasks, wanted = [], {}
    for name, meant in groups.items():
        single = [
            {key: float(value) for key, value in scores_of([one], image[None]).items()}
            for one, image in zip(meant, shown, strict=True)
        ]
        tasks += [{"group": name, **one} for one in single]
        wanted[name] = family.metrics({key: np.array([one[key] for one in single]) for key in single[0]})
    frame = family.pooled(pd.DataFrame(tasks), ["group"]).set_index("group")
    for name, metrics in wanted.items():
        for metric, value in metrics.items():
            assert frame.loc[name, metric] == pytest.approx(value)
    assert frame.loc["a", "swapped"] == 0.5


def test_pooled_takes_both_kinds_of_scenes_from_one_table():
    family = Scenes()
    one = scores_of([[0, 0, 0, 0, -1]], images_of([[0, 0, 0, 0, 0]]))
    two = scores_of([[0, 0, 1, 2]], images_of([[0, 0, 1, 2]]))
    rows = [
        {"run": name, **{key: float(value) for key, value in s.items()}}
        for name, s in zip("ab", (one, two), strict=True)
    ]
    frame = family.pooled(pd.DataFrame(rows), ["run"]).set_index("run")
    assert frame["success"].tolist() == [1, 1]
    assert np.isnan(frame.loc["a", "right_left_shape"]) and frame.loc["b", "right_left_shape"] == 1
    assert np.isnan(frame.loc["a", "right_texture"])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"shape": ["disc"], "size": ["small"]}, "Scenes have the factors shape and colour"),
        ({"shape": ["disc"], "colour": ["red"], "smell": ["sweet"]}, "Got 1 shape x 1 colour x 1 smell"),
        ({"left shape": ["disc"], "left colour": ["red"], "right shape": ["disc"]}, "with two things"),
        ({"shape": ["disc", "squire"], "colour": ["red"]}, r"no shape called 'squire'.*\n.*did you mean 'square'"),
        ({"shape": 3, "colour": ["red"]}, "no shape called '0'"),
    ],
)
def test_other_spaces_are_refused(factors: Any, message: str):
    with pytest.raises(BadInput, match=message):
        Scenes().check(space_of(factors))


def test_subsets_are_refused():
    with pytest.raises(BadInput, match="Scenes have the factors"):
        Scenes().draw(SubsetSpace(modules=4, max_active=2), jax.random.key(0))


def test_settings_have_bounds():
    for wrong in ({"pixels": 20}, {"jitter": 2}, {"noise": -0.1}):
        with pytest.raises(ValidationError):
            Scenes(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("space", [ONE, TWO, TURNED], ids=["one thing", "two things", "another order"])
def test_plain_sentences_serve_too(space: ProductSpace):
    script = Sentences().script(space, Scenes())
    said = {script.sentence_of(row) for row in space.enumerate()}
    assert len(said) == space.size
    assert Scenes().sentence(ONE, (0, 5, 9, 10)) == "large green disc at top left"
    assert list(PAIR) == [name for name, _ in TWO.factors]
