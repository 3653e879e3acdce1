"""model-scaling: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.overrides import apply
from recombine.studies.model_scaling import ModelScaling


@pytest.fixture(scope="module")
def laptop() -> ModelScaling:
    return apply(ModelScaling.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def tables(made):
    """Held-out R2 gains .1 with every doubling of width and .05 with every layer."""

    def build(study, change=lambda labels, values: values):
        def score(labels):
            held_out = 0.1 * np.log2(labels.get("width", 128)) + 0.05 * labels.get("depth", 3)
            values = {
                "r2_in": 1.0,
                "r2_held_out": held_out,
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
def test_the_control_has_few_combinations(profile):
    study = ModelScaling.profile(profile)
    (support,) = {config.support for config, names in study.design.runs if names["arm"] == "lookup"}
    assert (support.number, support.held_out) == (study.control_number, None)


def test_effects_are_those_of_the_table(laptop, tables, effects):
    found = effects(laptop, tables(laptop))
    expected = {
        "fits-identity": 1.0,
        "width-helps": 0.2,
        "width-helps-tokens": 0.2,
        "width-helps-few-shot": 0.2,
        "depth-helps": 0.1,
        "gap-closes": 0.2,
        "decodability-rises": 0.1,
        "swap-efficacy-rises": 0.05,
        "control-is-learned": 1.0,
        "control-stays-at-zero": 0.0,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name
    assert all(len(values) == 12 for values in found.values())


def test_a_missing_run_leaves_its_replicate_out(laptop, tables, effects):
    def gone(labels, values):
        return {} if labels.get("encoding") == "identity" and labels["replicate"] == 5 else values

    found = effects(laptop, tables(laptop, gone))
    assert np.isnan(found["width-helps"][5]) and np.isfinite(found["width-helps-tokens"]).all()


def test_an_encoding_that_is_not_fitted_affects_only_its_own_claim(laptop, tables, words):
    def unfitted(labels, values):
        return values | ({"r2_in": 0.5} if labels.get("encoding") == "interval-shuffle" else {})

    found = words(laptop, tables(laptop, unfitted))
    assert found["width-helps-interval-shuffle"] == "inconclusive"
    assert found["width-helps"] == found["width-helps-tokens"] == "supported"


def test_edits_that_do_harm_count_as_zero(laptop, tables, effects):
    def harm(labels, values):
        return values | {"efficacy_best": -50.0 if labels.get("width") == 32 else 0.3}

    assert effects(laptop, tables(laptop, harm))["swap-efficacy-rises"] == pytest.approx(0.3)


def test_figures_of_tables_and_of_nothing(laptop, tables, made):
    for given in (tables(laptop), made(laptop, lambda labels: {})):
        assert [figure.name for figure in laptop.design.figures(given)] == ["by_width", "by_depth"]
