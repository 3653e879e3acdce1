"""construction: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.constructed import Constructed
from recombine.overrides import apply, validate
from recombine.spaces.subset import SubsetSpace
from recombine.stats.threshold import Reached
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.construction import Construction
from recombine.studies.construction_slopes import growth, log_slope
from recombine.training.prepare import Setting

NEEDED = {"hyperteacher": lambda number: 20.0, "lookup": lambda number: 20.0 * (number / 10) ** 0.5}
"""The width at which r2_in reaches the threshold, by number of combinations."""


def tables(study, noise=0.0, **changed):
    """Errors and widths as the theorem has them. `changed` maps a column to a function of labels and value."""
    draw = np.random.default_rng(0)
    rows = []
    for config, labels in study.runs():
        wobble = 1 + noise * draw.standard_normal(3)
        if labels["part"] == "memory":
            needed = NEEDED[labels["family"]](labels["number"])
            values = {"r2_in": 0.8 + 0.1 * math.log2(labels["width"] / needed) + noise * (wobble[0] - 1)}
        else:
            error = 10.0 / labels["knots"] ** 2 * wobble[0]
            values = {"sup_error": error, "rms_error": error / 10, "r2_in": 1.0, "neurons": 7.0}
            if labels["part"] == "trained":
                values |= {"sup_error": 100 * error, "rms_error": error, "r2_in": 0.9 * wobble[2]}
            else:
                values |= {"bound": 20.0 / labels["knots"] ** 2}
        for name, change in changed.items():
            values[name] = change(labels, values.get(name, np.nan))
        rows.append({"run": config.run_id, "status": "complete"} | labels | values)
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(rows), empty, empty, empty)


def effects(study, frames):
    return {effect.claim.name: effect.values for effect in study.effects(frames)}


def judged(study, frames):
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def without(frames, gone):
    return Tables(frames.runs[~gone], frames.combinations, frames.probes, frames.curves)


@pytest.fixture(scope="module")
def laptop():
    return apply(Construction.profile("laptop"), ["first_seed=0"])


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop):
    labels = pd.DataFrame([labels for _, labels in laptop.runs()])
    assert not labels.duplicated().any()
    assert (labels.groupby(list(laptop.cells)).size() == 12).all()
    cells = labels.drop(columns="replicate").drop_duplicates()
    assert (cells["part"] == "memory").sum() == 2 * len(laptop.numbers) * len(laptop.widths)
    assert (cells["part"] == "trained").sum() == 1
    built = cells[cells["part"] == "constructed"]
    assert set(zip(built["knots"], built["modules"], strict=True)) == set(laptop.built)


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    study = Construction.profile(profile)
    runs = study.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    for config, labels in runs:
        assert config.space.width == labels["modules"] and config.family.kind == labels["family"]
        assert (config.model.kind == "constructed") == (labels["part"] == "constructed")
        assert (config.recipe.steps == 0) == (labels["part"] == "constructed")


def test_the_fewest_combinations_can_be_drawn(laptop):
    smallest = laptop.numbers[0], laptop.widths[0], "hyperteacher"
    for config, labels in laptop.runs():
        if (labels["number"], labels["width"], labels["family"]) == smallest:
            assert Setting(config).support.certificate().connected


def test_the_trained_network_has_the_sizes_of_the_constructed_one():
    study = apply(Construction.profile("smoke"), ["first_seed=0"])
    runs = {
        labels["part"]: config
        for config, labels in study.runs()
        if labels["replicate"] == 0
        and labels["knots"] == study.same_size
        and labels["modules"] == study.base.space.width
    }
    shapes = [
        [leaf.shape for leaf in jax.tree.leaves(eqx.filter(Setting(runs[part]).network(), eqx.is_array))]
        for part in ("trained", "constructed")
    ]
    assert shapes[0] == shapes[1]
    assert runs["trained"].seeds == runs["constructed"].seeds


def test_neurons_do_not_depend_on_the_modules_and_weights_are_linear_in_them():
    family, model = Hyperteacher(inputs=3, hidden=4, outputs=2), Constructed(knots=8)
    spaces = [SubsetSpace(modules=modules, max_active=2) for modules in (4, 8, 16, 32)]
    # Without their numbers: sizes do not depend on them.
    teachers = [eqx.filter_eval_shape(family.draw, space, jax.random.key(0)) for space in spaces]
    assert len({model.neurons(teacher) for teacher in teachers}) == 1
    weights = np.array([model.weights(teacher) for teacher in teachers])
    first, _ = model.widths(teachers[0])
    assert np.diff(weights).tolist() == [4 * first, 8 * first, 16 * first], (
        "a column of the first layer a module"
    )


def test_the_bound_stands_beside_constructed_networks_only(tmp_path):
    from recombine.store.store import Store

    study = apply(Construction.profile("smoke"), ["first_seed=0"])
    tables = study.tables(Store(tmp_path / "store"))
    assert tables.runs.empty and "bound" in tables.runs


def test_the_memoriser_has_tasks_of_the_teachers_shape(laptop):
    assert laptop.memorised == Lookup(inputs=8, hidden=8, outputs=8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": {"family": "lookup"}}, "one hidden layer"),
        ({"base": {"family": {"kind": "hyperteacher", "layers": 2}}}, "one hidden layer"),
        ({"knots": (16, 8)}, "smallest first"),
        ({"numbers": (10, 20)}, "at least 3"),
        ({"widths": (8,)}, "at least 2"),
    ],
)
def test_studies_that_make_no_sense_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(Construction, given)


# The effects


def test_effects_are_computed_as_stated(laptop):
    found = effects(laptop, tables(laptop))
    widest = laptop.widths[-1] / 20
    expected = {
        "exists": 0.5,
        "neurons-do-not-grow": 0.0,
        "falls-with-the-square": -2.0,
        "flat-in-modules": 0.0,
        "training-fits": 0.9,
        "training-falls-short": 1.0,
        "training-falls-short-at-worst": 2.0,
        "memory-is-learned": 0.8 + 0.1 * math.log2(widest),
        "memoriser-grows": 0.5,
        "composer-hardly-grows": 0.0,
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(12, value), atol=1e-6, err_msg=name)


def test_when_the_theorem_holds_every_claim_does(laptop):
    found = judged(laptop, tables(laptop, noise=0.03))
    assert {name: one.verdict for name, one in found.items()} == {
        name: one.claim.wanted for name, one in found.items()
    }
    assert [name for name, one in found.items() if one.claim.primary] == ["exists"]


def test_one_network_beyond_its_bound_is_enough(laptop):
    def beyond(labels, value):
        return 1.5 * 20 / labels["knots"] ** 2 if labels["modules"] == 64 else value

    frames = tables(laptop, noise=0.01, sup_error=beyond)
    assert judged(laptop, frames)["exists"].verdict == "contradicted"


def test_neurons_that_grow_make_the_existence_worth_nothing(laptop):
    frames = tables(laptop, noise=0.01, neurons=lambda labels, value: 10.0 * labels["modules"])
    np.testing.assert_allclose(effects(laptop, frames)["neurons-do-not-grow"], 1.0)
    found = judged(laptop, frames)
    assert found["neurons-do-not-grow"].verdict == "contradicted"
    assert found["exists"].verdict == "inconclusive"


def test_an_error_that_falls_too_slowly_or_grows_with_modules_is_found_out(laptop):
    def slow(labels, value):
        if labels["part"] != "constructed":
            return value
        return (1 + 0.01 * labels["modules"]) / labels["knots"] * (value * labels["knots"] ** 2 / 10)

    found = judged(laptop, tables(laptop, noise=0.01, sup_error=slow))
    assert found["falls-with-the-square"].verdict == "contradicted"
    assert found["flat-in-modules"].verdict == "contradicted"


def test_training_that_finds_it_contradicts(laptop):
    def found_it(labels, value):
        return value / 100 if labels["part"] == "trained" else value

    frames = tables(laptop, noise=0.01, rms_error=found_it)
    assert judged(laptop, frames)["training-falls-short"].verdict == "contradicted"


def test_a_missing_run_takes_its_replicate_out(laptop):
    frames = tables(laptop)
    runs = frames.runs
    third = runs["replicate"] == 3
    memory = (runs["part"] == "memory") & (runs["family"] == "lookup") & (runs["width"] == 16)
    found = effects(laptop, without(frames, third & memory & (runs["number"] == 20)))
    assert np.isnan(found["memoriser-grows"]).nonzero()[0].tolist() == [3]
    assert np.isfinite(found["composer-hardly-grows"]).all()
    found = effects(laptop, without(frames, third & (runs["modules"] == 64)))
    assert np.isnan(found["exists"]).nonzero()[0].tolist() == [3]
    assert np.isnan(found["flat-in-modules"]).nonzero()[0].tolist() == [3]
    assert np.isfinite(found["falls-with-the-square"]).all()
    found = effects(laptop, without(frames, third & (runs["part"] == "trained")))
    assert np.isnan(found["training-falls-short"]).nonzero()[0].tolist() == [3]


def test_without_runs_nothing_is_decided(laptop):
    frames = tables(laptop)
    none = Tables(frames.runs[:0], frames.combinations, frames.probes, frames.curves)
    assert all(np.isnan(values).all() for values in effects(laptop, none).values())


# Slopes


def test_slopes_agree_with_least_squares():
    draw = np.random.default_rng(0)
    sizes, values = (8, 16, 32, 64), np.exp(draw.standard_normal((4, 5)))
    expected = [np.polyfit(np.log(sizes), np.log(values[:, place]), 1)[0] for place in range(5)]
    np.testing.assert_allclose(log_slope(sizes, values), expected)
    values[1, 2] = np.nan
    assert np.isnan(log_slope(sizes, values)).tolist() == [False, False, True, False, False]


def line(slope, numbers=(10, 20, 40, 80), most=math.inf):
    """Widths on a line, those beyond `most` censored."""
    widths = [10.0 * (number / 10) ** slope for number in numbers]
    return {
        number: [Reached(width, "no") if width < most else Reached(most, "right")]
        for number, width in zip(numbers, widths, strict=True)
    }


def test_growth_is_the_slope_and_censoring_does_not_flatten_it():
    assert growth(line(0.7))[0] == pytest.approx(0.7)
    assert growth(line(1.0, most=64))[0] == pytest.approx(1.0), "the last lies beyond, where the line says"
    flat = growth(line(0.0))
    assert flat[0] == pytest.approx(0.0, abs=1e-9)


def test_too_few_widths_within_those_tried_give_no_slope():
    assert math.isnan(growth(line(1.0, most=32))[0])
    failed = line(0.7) | {20: [None]}
    assert math.isnan(growth(failed)[0])


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(laptop):
    frames = tables(laptop, noise=0.01)
    none = Tables(frames.runs[:0], frames.combinations, frames.probes, frames.curves)
    for given in (frames, none):
        figures = laptop.figures(given)
        assert len(figures) == 4
        for figure in figures:
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = laptop.overview(frames)
    assert (overview["n"] == 12).all() and len(overview) == len(laptop.runs()) / 12


def test_the_caption_says_how_many_widths_lie_beyond_those_tried(laptop):
    def hard(labels, value):
        return 0.1 if labels["family"] == "lookup" else value

    *_, figure = laptop.figures(tables(laptop, r2_in=hard))
    few = 12 * len(laptop.numbers)
    assert f"{few} of {2 * few} lie beyond" in figure.caption
