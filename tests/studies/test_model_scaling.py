"""model-scaling: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.overrides import apply
from recombine.studies.data_scaling import DataScaling
from recombine.studies.model_scaling import ModelScaling


def scaled(r2):
    """A score as R2, as the logarithm of its error and as the root of its error: one row each. Below zero counts as zero."""
    error = 1 - np.maximum(r2, 0.0)
    return np.stack([1 - error, -np.log(error), -np.sqrt(error)]).reshape(3, -1)


@pytest.fixture(scope="module")
def laptop() -> ModelScaling:
    return apply(ModelScaling.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def tables(made):
    """Held-out R2 gains .1 with every doubling of width and .05 with every layer; trained combinations have an error of one
    over the width. On the control R2 rises as well, far below zero."""

    def build(study, change=lambda labels, values: values):
        def score(labels):
            held_out = 0.1 * np.log2(labels["width"]) + 0.05 * labels.get("depth", 3)
            below = {32: -2.6, 128: -1.7}
            values = {
                "r2_in": 1 - 1 / labels["width"],
                "r2_held_out": below[labels["width"]] if labels["arm"] == "lookup" else held_out,
                "intrinsic": held_out / 2,
                "efficacy_best": held_out / 4,
                "correlation_held_out": 0.0,
            }
            return change(labels, values)

        return made(study, score)

    return build


def test_runs_of_every_encoding_and_shape(laptop):
    runs = laptop.design.runs
    assert len(laptop.design.run_ids) == len(runs)
    shapes = {(config.model.width, config.model.depth) for config, names in runs if names["arm"] == "main"}
    assert shapes == {(32, 3), (128, 1), (128, 3)}
    assert {labels["replicate"] for _, labels in runs} == set(range(12))
    assert len({labels["width"] for _, labels in runs if labels["arm"] == "few_shot"}) == 3
    steps = {names["encoding"]: config.recipe.steps for config, names in runs if names["arm"] == "main"}
    assert steps["tokens"] == 1000 and steps["interval-shuffle"] == 2000
    assert len({steps[kind] for kind in ("identity", "orthogonal", "invertible")}) == 1


@pytest.mark.parametrize("profile", ["smoke", "laptop", "paper"])
def test_the_control_has_few_combinations_and_all_widths(profile):
    study = ModelScaling.profile(profile)
    controls = [config for config, names in study.design.runs if names["arm"] == "lookup"]
    (support,) = {config.support for config in controls}
    assert (support.number, support.held_out) == (study.control_number, None)
    assert {(config.model.width, config.model.depth) for config in controls} == {
        (width, study.depths[-1]) for width in study.widths
    }


def test_the_largest_runs_of_data_scaling_are_shared():
    known = set(DataScaling.profile("laptop").design.run_ids)
    shared = [
        (names["arm"], names["width"], names.get("depth"), names.get("encoding"))
        for config, names in ModelScaling.profile("laptop").design.runs
        if config.run_id in known
    ]
    assert sorted(shared) == sorted([("main", 128, 3, "identity"), ("lookup", 128, None, None)] * 12)


def test_effects_are_those_of_the_table(laptop, tables, effects):
    computed = effects(laptop, tables(laptop))
    narrow, wide = scaled(0.65), scaled(0.85)
    fit = scaled(1 - 1 / 128) - scaled(1 - 1 / 32)
    expected = {
        "fits-identity": 1 - 1 / 128,
        "width-helps": wide - narrow,
        "width-helps-tokens": wide - narrow,
        "width-helps-few-shot": scaled(0.95) - scaled(0.75),
        "depth-helps": wide - scaled(0.75),
        "gap-closes": wide - narrow - fit,
        "decodability-rises": 0.1,
        "swap-efficacy-rises": 0.05,
        "control-is-learned": 1 - 1 / 128,
        "control-stays-at-zero": 0.0,
        "control-gains-nothing": np.zeros((3, 1)),
    }
    for name, value in expected.items():
        shape = (3, 12) if np.ndim(value) else (12,)
        np.testing.assert_allclose(computed[name], np.broadcast_to(value, shape), atol=1e-12, err_msg=name)
    assert all(values.shape[-1] == 12 for values in computed.values())


def test_a_gap_that_closes_in_r2_but_not_as_a_ratio_of_errors_depends_on_the_scale(laptop, tables, words):
    """Width divides the error of trained combinations by 4, and that of held-out ones by 7 / 3 only."""
    verdicts = words(laptop, tables(laptop))
    assert verdicts["width-helps"] == "supported"
    assert verdicts["gap-closes"] == "depends on the scale"


def test_the_control_is_counted_as_the_claim_is(laptop, tables, effects, words):
    def as_the_main_runs(labels, values):
        scores = {32: 0.65, 128: 0.85}
        return values | ({"r2_held_out": scores[labels["width"]]} if labels["arm"] == "lookup" else {})

    solved = tables(laptop, as_the_main_runs)
    computed, verdicts = effects(laptop, solved), words(laptop, solved)
    np.testing.assert_allclose(computed["control-gains-nothing"], computed["width-helps"], atol=1e-12)
    assert verdicts["control-gains-nothing"] == "contradicted"
    assert verdicts["width-helps"] == "inconclusive", "width helps where nothing can be recombined"

    def as_the_control(labels, values):
        return values | ({"r2_held_out": -2.6 if labels["width"] == 32 else -1.7})

    failed = tables(laptop, as_the_control)
    computed, verdicts = effects(laptop, failed), words(laptop, failed)
    for name in ("control-gains-nothing", "width-helps"):
        np.testing.assert_array_equal(computed[name], np.zeros((3, 12)))
        assert verdicts[name] == "equivalent"


def test_a_missing_run_leaves_its_replicate_out(laptop, tables, effects):
    def gone(labels, values):
        return {} if labels.get("encoding") == "identity" and labels["replicate"] == 5 else values

    computed = effects(laptop, tables(laptop, gone))
    absent = np.isnan(computed["width-helps"])
    assert absent[:, 5].all() and not np.delete(absent, 5, axis=1).any()
    assert np.isfinite(computed["width-helps-tokens"]).all()


def test_an_encoding_that_is_not_fitted_affects_only_its_own_claim(laptop, tables, words):
    def unfitted(labels, values):
        return values | ({"r2_in": 0.5} if labels.get("encoding") == "interval-shuffle" else {})

    verdicts = words(laptop, tables(laptop, unfitted))
    assert verdicts["width-helps-interval-shuffle"] == "inconclusive"
    assert verdicts["width-helps"] == verdicts["width-helps-tokens"] == "supported"


def test_edits_that_do_harm_count_as_zero(laptop, tables, effects):
    def harm(labels, values):
        return values | {"efficacy_best": -50.0 if labels.get("width") == 32 else 0.3}

    assert effects(laptop, tables(laptop, harm))["swap-efficacy-rises"] == pytest.approx(0.3)


def test_figures_of_tables_and_of_nothing(laptop, tables, made):
    for given in (tables(laptop), made(laptop, lambda labels: {})):
        assert [figure.name for figure in laptop.design.figures(given)] == ["by_width", "by_depth"]
