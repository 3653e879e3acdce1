"""construction: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import equinox as eqx
import jax
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.constructed import Constructed
from recombine.overrides import apply, validate
from recombine.spaces.subset import SubsetSpace
from recombine.stats.verdicts import settle
from recombine.studies.construction import Construction
from recombine.training.prepare import Setting

NEEDED = {"composer": lambda number: 20.0, "memoriser": lambda number: 20.0 * (number / 10) ** 0.5}
"""The width at which r2_in reaches the threshold, by number of combinations."""


@pytest.fixture(autouse=True)
def known_bound(request, monkeypatch):
    """Tables made by hand have a bound made by hand; drawing every teacher for the real one takes long."""
    if "tables" in request.fixturenames:
        monkeypatch.setattr("recombine.studies.construction.Setting", lambda config: SimpleNamespace(teacher=None))
        monkeypatch.setattr(Constructed, "bound", lambda self, teacher: 20.0 / self.knots**2)


@pytest.fixture(scope="module")
def tables(made):
    def make(study, noise=0.0, gone=lambda labels: False, **changed):
        """Errors and widths as the theorem has them. `changed` maps a column to a function of labels and value."""
        draw = np.random.default_rng(0)

        def score(labels):
            wobble = 1 + noise * draw.standard_normal(3)
            if labels["arm"] in NEEDED:
                needed = NEEDED[labels["arm"]](labels["number"])
                values = {"r2_in": 0.8 + 0.1 * math.log2(labels["width"] / needed) + noise * (wobble[0] - 1)}
            else:
                error = 10.0 / labels.get("knots", study.same_size) ** 2 * wobble[0]
                values = {"sup_error": error, "rms_error": error / 10, "r2_in": 1.0, "neurons": 7.0}
                if labels["arm"] == "trained":
                    values |= {"sup_error": 100 * error, "rms_error": error, "r2_in": 0.9 * wobble[2]}
            for name, change in changed.items():
                values[name] = change(labels, values.get(name, np.nan))
            return {name: np.nan if gone(labels) else value for name, value in values.items()}

        return made(study, score)

    return make


@pytest.fixture(scope="module")
def laptop():
    return apply(Construction.profile("laptop"), ["first_seed=0"])


@pytest.fixture
def judged():
    """Verdicts with their claims."""

    def judge(study, frames):
        found = settle([effect.judge() for effect in study.design.effects(frames)])
        return {verdict.claim.name: verdict for verdict in found}

    return judge


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop):
    arms = laptop.design.arms
    assert all(len(arm.seeds) == 12 for arm in arms.values())
    for memory in (arms["composer"], arms["memoriser"]):
        assert len(memory.cells) == len(laptop.numbers) * len(laptop.widths)
    assert len(arms["trained"].cells) == len(laptop.training_steps)
    built = {(cell.labels["knots"], cell.labels["modules"]) for cell in arms["constructed"].cells}
    assert {(laptop.fixed, modules) for modules in laptop.modules} <= built
    assert {(knots, laptop.base.space.width) for knots in (*laptop.knots, laptop.same_size)} <= built


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    design = Construction.profile(profile).design
    assert len(design.run_ids) == len(design.runs)
    for config, labels in design.runs:
        assert config.space.width == labels.get("modules", config.space.width)
        assert (config.family.kind == "lookup") == (labels["arm"] == "memoriser")
        assert (config.model.kind == "constructed") == (labels["arm"] == "constructed")
        assert (config.recipe.steps == 0) == (labels["arm"] == "constructed")


def test_the_fewest_combinations_can_be_drawn(laptop):
    for config in laptop.design.arms["composer"].configs[0]:
        assert Setting(config).support.certificate().connected


def test_the_trained_network_has_the_sizes_of_the_constructed_one():
    study = apply(Construction.profile("smoke"), ["first_seed=0"])
    cell = {"knots": study.same_size, "modules": study.base.space.width}
    constructed = study.design.arms["constructed"]
    place = next(index for index, one in enumerate(constructed.cells) if one.labels == cell)
    pair = study.design.arms["trained"].configs[0][0], constructed.configs[place][0]
    shapes = [
        [leaf.shape for leaf in jax.tree.leaves(eqx.filter(Setting(config).network(), eqx.is_array))] for config in pair
    ]
    assert shapes[0] == shapes[1] and pair[0].seeds == pair[1].seeds


def test_neurons_do_not_depend_on_the_modules_and_weights_are_linear_in_them():
    family, model = Hyperteacher(inputs=3, hidden=4, outputs=2), Constructed(knots=8)
    spaces = [SubsetSpace(modules=modules, max_active=2) for modules in (4, 8, 16, 32)]
    # Without their numbers: sizes do not depend on them.
    teachers = [eqx.filter_eval_shape(family.draw, space, jax.random.key(0)) for space in spaces]
    assert len({model.neurons(teacher) for teacher in teachers}) == 1
    weights = np.array([model.weights(teacher) for teacher in teachers])
    first, _ = model.widths(teachers[0])
    assert np.diff(weights).tolist() == [4 * first, 8 * first, 16 * first], "a column of the first layer a module"


def test_the_bound_of_the_overview_is_that_of_each_teacher(made):
    study = apply(Construction.profile("smoke"), ["first_seed=0", "replicates=1"])
    overview = study.design.overview(made(study, lambda labels: {"r2_in": 1.0}))
    bounds = overview.set_index("arm")["bound"]
    config = study.design.arms["constructed"].configs[0][0]
    assert bounds["constructed"].iloc[0] == pytest.approx(config.model.bound(Setting(config).teacher))
    assert bounds.drop("constructed").isna().all()


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


def test_effects_are_computed_as_stated(laptop, tables, effects, judged):
    found = effects(laptop, tables(laptop))
    widest = laptop.widths[-1] / 20
    expected = {
        "exists": 0.5,
        "neurons-do-not-grow": 0.0,
        "falls-with-the-square": -2.0,
        "flat-in-modules": 0.0,
        "training-fits": 0.9,
        "short-training-falls-short": 1.0,
        "training-falls-short": 1.0,
        "training-falls-short-at-worst": 2.0,
        "memory-is-learned": 0.8 + 0.1 * math.log2(widest),
        "memoriser-grows": 0.5,
        "composer-hardly-grows": 0.0,
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(12, value), atol=1e-6, err_msg=name)


def test_when_the_theorem_holds_every_claim_does(laptop, tables, effects, judged):
    found = judged(laptop, tables(laptop, noise=0.03))
    assert {name: one.verdict for name, one in found.items()} == {name: one.claim.wanted for name, one in found.items()}
    assert [name for name, one in found.items() if one.claim.primary] == ["exists"]


def test_one_network_beyond_its_bound_is_enough(laptop, tables, effects, judged):
    def beyond(labels, value):
        return 1.5 * 20 / labels["knots"] ** 2 if labels.get("modules") == 64 else value

    frames = tables(laptop, noise=0.01, sup_error=beyond)
    assert judged(laptop, frames)["exists"].verdict == "contradicted"


def test_neurons_that_grow_make_the_existence_worth_nothing(laptop, tables, effects, judged):
    frames = tables(laptop, noise=0.01, neurons=lambda labels, value: 10.0 * labels.get("modules", 1))
    np.testing.assert_allclose(effects(laptop, frames)["neurons-do-not-grow"], 1.0)
    found = judged(laptop, frames)
    assert found["neurons-do-not-grow"].verdict == "contradicted"
    assert found["exists"].verdict == "inconclusive"


def test_an_error_that_falls_too_slowly_or_grows_with_modules_is_found_out(laptop, tables, effects, judged):
    def slow(labels, value):
        if labels["arm"] != "constructed":
            return value
        return (1 + 0.01 * labels["modules"]) / labels["knots"] * (value * labels["knots"] ** 2 / 10)

    found = judged(laptop, tables(laptop, noise=0.01, sup_error=slow))
    assert found["falls-with-the-square"].verdict == "contradicted"
    assert found["flat-in-modules"].verdict == "contradicted"


def test_training_that_finds_it_contradicts(laptop, tables, effects, judged):
    def found_it(labels, value):
        return value / 100 if labels["arm"] == "trained" else value

    frames = tables(laptop, noise=0.01, rms_error=found_it)
    assert judged(laptop, frames)["training-falls-short"].verdict == "contradicted"


def test_a_failed_run_takes_its_replicate_out(laptop, tables, effects):
    def out(**wanted):
        def gone(labels):
            return labels["replicate"] == 3 and all(labels.get(name) == value for name, value in wanted.items())

        return {
            name: np.isnan(values).nonzero()[0].tolist()
            for name, values in effects(laptop, tables(laptop, gone=gone)).items()
        }

    found = out(arm="memoriser", width=16, number=20)
    assert found["memoriser-grows"] == [3] and found["composer-hardly-grows"] == []
    found = out(modules=64)
    assert found["exists"] == found["flat-in-modules"] == [3] and found["falls-with-the-square"] == []
    assert out(arm="trained")["training-falls-short"] == [3]


def test_without_runs_nothing_is_decided(laptop, made, tables, effects):
    assert all(np.isnan(values).all() for values in effects(laptop, made(laptop, lambda labels: {})).values())


# Slopes


def widths(made, study, slope):
    """Widths that grow with the number of combinations by a given power, seen through r2_in."""

    def score(labels):
        if labels["arm"] not in NEEDED:
            return {}
        needed = 20.0 * (labels["number"] / 10) ** slope
        return {"r2_in": 0.8 + 0.1 * math.log2(labels["width"] / needed)}

    return made(study, score)


def test_growth_is_the_slope_and_censoring_does_not_flatten_it(laptop, made, effects):
    for slope, numbers in ((0.0, None), (0.4, None), (0.7, None), (1.2, (10, 20, 40, 80))):
        study = laptop if numbers is None else laptop.replace(numbers=numbers)
        found = effects(study, widths(made, study, slope))["composer-hardly-grows"]
        np.testing.assert_allclose(found, slope, atol=0.02)


def test_too_few_widths_within_those_tried_give_no_slope(laptop, made, effects):
    assert np.isnan(effects(laptop, widths(made, laptop, 3.0))["composer-hardly-grows"]).all()


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(laptop, tables, made):
    frames = tables(laptop, noise=0.01)
    for given in (frames, made(laptop, lambda labels: {})):
        figures = laptop.design.figures(given)
        assert len(figures) == 4
        for figure in figures:
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = laptop.design.overview(frames)
    assert (overview["n"] == 12).all() and len(overview) == len(laptop.design.runs) / 12


def test_the_caption_says_how_many_widths_lie_beyond_those_tried(laptop, tables):
    def hard(labels, value):
        return 0.1 if labels["arm"] == "memoriser" else value

    *_, figure = laptop.design.figures(tables(laptop, r2_in=hard))
    few = 12 * len(laptop.numbers)
    assert f"{few} of {2 * few} lie beyond" in figure.caption
