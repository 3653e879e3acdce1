"""architectures: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.stats.threshold import Reached
from recombine.studies.architectures import NETWORKS, Architectures, doublings
from recombine.studies.data_scaling import DataScaling

NEEDED = {"mlp": 100, "transformer": 50, "hypernetwork": 40}
"""Where a curve that rises by .3 with each doubling reaches the threshold."""


def score(network, number):
    """Held-out R2 that crosses .8 at the number the network needs."""
    return 0.8 + 0.3 * math.log2(number / NEEDED[network])


@pytest.fixture(scope="module")
def tables(made):
    """Scores as in the literature. `changed` maps a column to a function of labels and value; runs that fulfil `missing`
    are absent."""

    def build(study, noise=0.0, missing=lambda labels: False, **changed):
        draw = np.random.default_rng(0)

        def run(labels):
            wobble = noise * draw.standard_normal(3)
            if labels["arm"] == "lookup":
                values = {"r2_in": 0.8, "r2_held_out": -1.0, "correlation_held_out": wobble[2]}
            else:
                values = {"r2_in": 0.95, "r2_held_out": score(labels["network"], labels["number"])}
            values["r2_in"] += wobble[0]
            values["r2_held_out"] += wobble[1]
            values |= {name: change(labels, values.get(name)) for name, change in changed.items()}
            return {} if missing(labels) else values

        return made(study, run)

    return build


@pytest.fixture(scope="module")
def laptop():
    return apply(Architectures.profile("laptop"), ["first_seed=0"])


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop):
    labels = pd.DataFrame([labels for _, labels in laptop.design.runs])
    assert not labels.duplicated().any()
    assert (labels.groupby(["arm", "network", "number"]).size() == 12).all()
    assert len(labels) == 12 * (3 * 3 + 3)
    control = labels[labels["arm"] == "lookup"]
    assert set(control["number"]) == {40} and set(control["network"]) == set(NETWORKS)


def test_the_plain_runs_are_those_of_data_scaling():
    runs = Architectures.profile("laptop").design.runs
    own = {config.run_id for config, labels in runs if labels["network"] == "mlp"}
    others = DataScaling.profile("laptop").replace(first_seed=1000)
    assert own <= set(others.design.run_ids)


def test_networks_of_a_replicate_differ_in_the_model_alone(laptop):
    by_cell = {}
    for config, labels in laptop.design.runs:
        assert config.model == getattr(laptop, labels["network"])
        cell = labels["arm"], labels["number"], labels["replicate"]
        rest = config.model_copy(update={"model": laptop.mlp})
        assert by_cell.setdefault(cell, rest) == rest


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    study = Architectures.profile(profile)
    assert len(study.design.run_ids) == len(study.design.runs)
    for config, labels in study.design.runs:
        assert config.support.number == labels["number"] and config.support.reserve == study.reserve
        assert config.family == (study.control if labels["arm"] == "lookup" else study.base.family)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": (80, 40)}, "smallest first"),
        ({"numbers": (40,)}, "at least 2"),
        ({"control": "hyperteacher"}, "another family"),
        ({"threshold": 1.0}, "less than 1"),
    ],
)
def test_studies_that_make_no_sense_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(Architectures, given)


# The effects


def test_effects_are_computed_as_stated(laptop, tables, effects):
    found = effects(laptop, tables(laptop))
    expected = {
        "transformer-needs-fewer": 1.0,
        "hypernetwork-needs-fewer": math.log2(100 / 40),
        "transformer-better-with-fewest": 0.3,
        "hypernetwork-better-with-fewest": 0.3 * math.log2(100 / 40),
    }
    for network in NETWORKS:
        expected |= {
            f"{network}-fits": 0.95,
            f"control-is-learned-by-{network}": 0.8,
            f"control-stays-at-zero-{network}": 0.0,
        }
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(12, value), atol=1e-9, err_msg=name)


def test_when_structure_helps_every_claim_is_supported(laptop, tables, words):
    wanted = {claim.name: claim.of(laptop.kind).wanted for claim in laptop.design.claims}
    assert words(laptop, tables(laptop, noise=0.02)) == wanted
    primary = [claim.name for claim in laptop.design.claims if claim.primary]
    assert primary == ["transformer-needs-fewer"]


def test_a_transformer_that_needs_more_contradicts(laptop, tables, effects, words):
    def swapped(labels, value):
        if labels["network"] == "transformer" and labels["arm"] == "main":
            return score("mlp", labels["number"]) - 0.15
        return value

    found = effects(laptop, tables(laptop, r2_held_out=swapped))
    np.testing.assert_allclose(found["transformer-needs-fewer"], -0.5)
    verdicts = words(laptop, tables(laptop, noise=0.01, r2_held_out=swapped))
    assert verdicts["transformer-needs-fewer"] == "contradicted"


def test_networks_that_did_not_fit_decide_nothing(laptop, tables, words):
    def poor(labels, value):
        return 0.5 if labels["network"] == "transformer" and labels["arm"] == "main" else value

    found = words(laptop, tables(laptop, noise=0.01, r2_in=poor))
    assert found["transformer-needs-fewer"] == "inconclusive"
    assert found["hypernetwork-needs-fewer"] == "supported"


def test_a_control_that_is_solved_is_found_out(laptop, tables, words):
    def leak(labels, value):
        return 0.2 if labels["arm"] == "lookup" and labels["network"] == "hypernetwork" else value

    found = words(laptop, tables(laptop, noise=0.01, correlation_held_out=leak))
    assert found["control-stays-at-zero-hypernetwork"] == "contradicted"
    assert found["control-stays-at-zero-mlp"] == "equivalent"


@pytest.mark.parametrize("number", [40, 160])
def test_a_missing_run_takes_its_replicate_out(laptop, tables, effects, number):
    def gone(labels):
        cell = labels["arm"], labels["network"], labels["number"], labels["replicate"]
        return cell == ("main", "transformer", number, 3)

    found = effects(laptop, tables(laptop, missing=gone))
    assert np.isnan(found["transformer-needs-fewer"]).nonzero()[0].tolist() == [3]
    assert np.isfinite(found["hypernetwork-needs-fewer"]).all()
    assert np.isnan(found["transformer-better-with-fewest"]).sum() == (number == 40)


def test_without_runs_nothing_is_decided(laptop, made, effects):
    none = made(laptop, lambda labels: {})
    assert all(np.isnan(values).all() for values in effects(laptop, none).values())


# Where a threshold lies beyond the numbers tried


def test_the_end_beyond_which_a_number_lies_understates_the_difference():
    inside, above, below = Reached(100, "no"), Reached(320, "right"), Reached(40, "left")
    assert doublings(Reached(160, "no"), Reached(80, "no")) == 1
    assert doublings(inside, below) == pytest.approx(math.log2(100 / 40))
    assert doublings(above, inside) == pytest.approx(math.log2(320 / 100))
    assert doublings(inside, above) == pytest.approx(math.log2(100 / 320)), "it speaks against, and counts"
    assert doublings(above, below) == 3
    # Whatever the true numbers are, the difference is at least as far from zero.
    for true in (400, 10_000):
        assert abs(math.log2(true / 100)) >= abs(doublings(above, inside))
    for true in (1, 39):
        assert abs(math.log2(100 / true)) >= abs(doublings(inside, below))


def test_where_both_lie_beyond_the_same_end_nothing_is_known():
    above, below = Reached(320, "right"), Reached(40, "left")
    assert math.isnan(doublings(above, above)) and math.isnan(doublings(below, below))
    assert math.isnan(doublings(None, above)) and math.isnan(doublings(above, None))


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(laptop, tables, made):
    full, none = tables(laptop, noise=0.01), made(laptop, lambda labels: {})
    for given in (full, none):
        for figure in laptop.design.figures(given):
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = laptop.design.overview(full)
    assert len(overview) == 12 and (overview["n"] == 12).all()
