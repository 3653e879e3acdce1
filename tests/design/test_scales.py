"""Columns on several scales of a score: a claim about them has to hold on every scale."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Arm, Tables, claim, statistic
from recombine.design.claims import Effect
from recombine.design.column import LEAST_ERROR, SCALES
from recombine.errors import BadInput
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.store.files import finite
from recombine.training.config import RunConfig

BASE = RunConfig(model=MLP(width=8, depth=1), recipe=Fast(steps=5))
NUMBERS, WIDTHS = (40, 80, 160), (8, 16)
R2 = {(40, 8): 0.1, (80, 8): 0.6, (160, 8): 0.5, (40, 16): 0.3, (80, 16): 0.7, (160, 16): 0.9}
"""The score by number and width in the first replicate; in the second it is higher by .05."""


def grid(**axes: Any) -> Arm:
    return Arm(BASE, **axes).bind("main", range(2))


def tables(arm: Arm, score: Any) -> dict[str, Tables]:
    """Tables in which the column `r2` is a function of the labels of a run."""
    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in arm.runs])
    runs = pd.DataFrame([{"run": config.run_id, "r2": score(names)} for config, names in arm.runs])
    return {arm.name: Tables.from_frames(labels, {"runs": runs}).arm(arm.name, arm.axes)}


def scaled(r2):
    """Scores as R2, as the logarithm of the error and as the root of the error: a first axis of length three."""
    error = 1 - np.asarray(r2)
    return np.stack([1 - error, -np.log(error), -np.sqrt(error)])


@pytest.fixture(scope="module")
def arm() -> Arm:
    return grid(number=NUMBERS, width=WIDTHS)


@pytest.fixture(scope="module")
def data(arm) -> dict[str, Tables]:
    return tables(arm, lambda names: R2[names["number"], names["width"]] + 0.05 * names["replicate"])


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    """The same scores by scale, number, width and replicate."""
    first = np.array([[R2[number, width] for width in WIDTHS] for number in NUMBERS])
    return scaled(np.stack([first, first + 0.05], axis=-1))


# The scale is an axis that reductions keep


def test_each_cell_is_counted_on_every_scale(arm, data, scores):
    column = arm["r2"].at(number=80, width=16).on_scales()
    assert [cell["scale"] for cell in column.cells] == ["R2", "log error", "root error"] == list(SCALES)
    assert column.values(data).shape == (3, 2)
    np.testing.assert_allclose(column.values(data), scores[:, 1, 1])
    explicit = [[0.7, 0.75], [-np.log(0.3), -np.log(0.25)], [-np.sqrt(0.3), -np.sqrt(0.25)]]
    np.testing.assert_allclose(column.values(data), explicit)
    assert repr(column).endswith(".on_scales()")


def test_reductions_over_all_cells_keep_the_scale(arm, data, scores):
    column = arm["r2"].on_scales()
    for name, reduce in (("mean", np.mean), ("lowest", np.min), ("highest", np.max)):
        reduced = getattr(column, name)()
        assert reduced.cells == tuple({"scale": scale} for scale in SCALES)
        np.testing.assert_allclose(reduced.values(data), reduce(scores, axis=(1, 2)), err_msg=name)
    # The mean of log errors is not the log of the mean error.
    assert not np.allclose(column.mean().values(data)[1], arm["r2"].mean().on_scales().values(data)[1])


def test_the_rise_is_along_the_only_axis_beside_the_scale(arm, data, scores):
    rise = arm["r2"].on_scales().at(width=16).rise()
    np.testing.assert_allclose(rise.values(data), scores[:, -1, 1] - scores[:, 0, 1])
    assert [cell["scale"] for cell in rise.cells] == list(SCALES)
    before = arm["r2"].at(width=16).on_scales().rise()
    np.testing.assert_array_equal(before.values(data), rise.values(data))
    with pytest.raises(BadInput, match="could be along number or width"):
        arm["r2"].on_scales().rise()


def test_reductions_along_a_named_axis_keep_the_other_axes_and_the_scale(arm, data, scores):
    gains = arm["r2"].on_scales().rise("number")
    assert gains.cells == tuple({"width": width, "scale": scale} for width in WIDTHS for scale in SCALES)
    np.testing.assert_allclose(gains.mean().values(data), (scores[:, -1] - scores[:, 0]).mean(axis=1))
    np.testing.assert_allclose(gains.at(width=8).values(data), scores[:, -1, 0] - scores[:, 0, 0])
    lowest = arm["r2"].on_scales().lowest("width").last("number")
    np.testing.assert_allclose(lowest.values(data), scores[:, -1].min(axis=1))
    np.testing.assert_allclose(arm["r2"].on_scales().first("number").mean().values(data), scores[:, 0].mean(axis=1))


def test_columns_are_combined_scale_by_scale(arm, data, scores):
    column = arm["r2"].on_scales()
    gap = column.at(width=16).last("number").mean() - column.at(width=8).first("number").mean()
    np.testing.assert_allclose(gap.values(data), scores[:, -1, 1] - scores[:, 0, 0])
    np.testing.assert_allclose((-gap).values(data), scores[:, 0, 0] - scores[:, -1, 1])


@pytest.mark.parametrize("name", ["rise", "first", "last"])
def test_a_column_with_no_other_axis_is_not_reduced_along_the_scale(arm, name):
    """A difference of log error and R2 means nothing."""
    column = statistic(lambda tables: tables.runs.groupby("replicate")["r2"].max(), arm).on_scales()
    with pytest.raises(BadInput, match="has no axis"):
        getattr(column, name)()


def test_an_axis_with_a_single_level_is_reduced_and_the_scale_is_kept(scores):
    single = grid(number=(40,))
    own = tables(single, lambda names: R2[40, 8] + 0.05 * names["replicate"])
    column = single["r2"].on_scales().last()
    assert column.cells == tuple({"scale": scale} for scale in SCALES)
    np.testing.assert_allclose(column.values(own), scores[:, 0, 0])


# Scores at the ends


def test_perfect_scores_stay_finite():
    perfect = grid(number=NUMBERS)
    own = tables(perfect, lambda names: 1.0 if names["number"] == 160 else 0.5)
    column = perfect["r2"].on_scales()
    best = [[1.0], [-np.log(LEAST_ERROR)], [0.0]]
    np.testing.assert_allclose(column.last().values(own), np.broadcast_to(best, (3, 2)), atol=1e-12)
    for values in (column.rise().values(own), column.mean().values(own)):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(column.rise().values(own)[:, 0], np.array(best)[:, 0] - scaled(0.5))
    # Of two scores that are nearly perfect, neither is better by much.
    nearly = tables(perfect, lambda names: 1 - LEAST_ERROR / 10 ** (names["number"] / 40))
    np.testing.assert_allclose(perfect["r2"].on_scales().rise().values(nearly), np.zeros((3, 2)), atol=1e-3)


def test_a_better_score_is_higher_on_every_scale():
    ordered = np.linspace(-3, 1 - 1e-5, 200)
    for name, scale in SCALES.items():
        assert (np.diff(scale.transform(ordered)) > 0).all(), name
        assert scale.margin > 0


def test_a_failed_run_has_no_number_on_any_scale(arm):
    holes = tables(arm, lambda names: np.nan if (names["number"], names["replicate"]) == (40, 1) else 0.5)
    for column in (arm["r2"].on_scales().mean(), arm["r2"].on_scales().rise("number").lowest()):
        assert np.isnan(column.values(holes)).tolist() == [[False, True]] * 3


# Judging


def test_every_scale_has_its_own_margin(arm):
    test = arm["r2"].on_scales().rise("number").mean().greater()
    assert test.scales == (("R2", 0.05), ("log error", pytest.approx(np.log(1.25))), ("root error", 0.05))
    assert test.margin == 0.05 and test.direction == "greater"
    stated = claim("rises", test, "It rises.").of("small")
    assert stated.scales == test.scales and stated.margin == test.margin
    assert arm["r2"].mean().greater(0.1).scales == ()


@pytest.mark.parametrize("direction", ["greater", "less", "equivalent"])
def test_a_margin_goes_with_one_scale_and_no_margin_with_several(arm, direction):
    column = arm["r2"].mean()
    with pytest.raises(BadInput, match="has a margin for each scale") as caught:
        getattr(column.on_scales(), direction)(0.05)
    assert caught.value.fix == "give no margin"
    with pytest.raises(BadInput, match="has no margin") as caught:
        getattr(column, direction)()
    assert "give a margin" in caught.value.fix
    assert getattr(column.on_scales(), direction)().direction == direction
    assert getattr(column, direction)(0.05).margin == 0.05


def test_the_first_scale_has_the_name_of_the_score(arm):
    column = arm["r2"].at(number=80, width=16).on_scales(score="accuracy")
    assert [cell["scale"] for cell in column.cells] == ["accuracy", "log error", "root error"]
    assert column.greater().scales == (
        ("accuracy", 0.05),
        *arm["r2"].at(number=80, width=16).on_scales().greater().scales[1:],
    )
    with pytest.raises(BadInput, match="name of another scale"):
        arm["r2"].on_scales(score="log error")


def test_scales_do_not_mix(arm):
    number = arm["r2"].at(width=8).rise()
    with pytest.raises(BadInput, match="only one of the two is on scales"):
        arm["r2"].on_scales().at(width=8).rise() - number
    with pytest.raises(BadInput, match="3 cells"):
        arm["r2"].on_scales().at(width=8, scale="R2").greater()


@pytest.mark.parametrize("direction", ["above", "below"])
def test_a_threshold_is_a_number_of_one_scale(arm, direction):
    with pytest.raises(BadInput, match="has a margin for each scale"):
        getattr(arm["r2"].mean().on_scales(), direction)(0.8)


def test_more_than_one_number_per_scale_is_refused(arm):
    with pytest.raises(BadInput, match="18 cells"):
        arm["r2"].on_scales().greater()
    with pytest.raises(BadInput, match="6 cells"):
        arm["r2"].on_scales().rise("number").greater()


# Records


def effect(arm: Arm, own: dict[str, Tables]) -> Effect:
    stated = claim("rises", arm["r2"].on_scales().rise("number").mean().greater(), "It rises.", needs="fits", version=2)
    return Effect(stated.of("small"), stated.effect.values(own))


def test_an_effect_comes_back_from_its_record(arm, data):
    written = effect(arm, data)
    read = Effect.from_record(json.loads(json.dumps(written.record())))
    assert read.claim == written.claim and read.claim.scales == tuple((n, s.margin) for n, s in SCALES.items())
    assert read.values.shape == (3, 2)
    np.testing.assert_array_equal(read.values, written.values)
    assert read.judge() == written.judge() and len(read.judge().scales) == 3


def test_effects_of_failed_runs_come_back_as_missing(arm):
    holes = tables(arm, lambda names: np.nan if names["replicate"] == 1 else R2[names["number"], names["width"]])
    written = effect(arm, holes)
    # The store writes None, as JSON has no NaN.
    text = json.dumps(finite(written.record()), allow_nan=False)
    assert "null" in text
    read = Effect.from_record(json.loads(text))
    np.testing.assert_array_equal(read.values, written.values)
    assert np.isnan(read.values).tolist() == [[False, True]] * 3


def test_a_record_from_before_there_were_scales_is_read(arm, data):
    stated = claim("rises", arm["r2"].rise("number").mean().greater(0.05), "It rises.")
    written = Effect(stated.of("small"), stated.effect.values(data))
    record = json.loads(json.dumps(written.record()))
    del record["claim"]["scales"]
    read = Effect.from_record(record)
    assert read.claim == written.claim and read.values.shape == (2,)
    np.testing.assert_array_equal(read.values, written.values)
