"""productivity: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.productivity import Productivity
from recombine.training.prepare import Setting


def scaled(r2):
    """A score as R2, as the logarithm of its error and as the root of its error: one row each. Below zero counts as zero."""
    error = 1 - np.maximum(r2, 0.0)
    return np.stack([1 - error, -np.log(error), -np.sqrt(error)]).reshape(3, -1)


def falls(labels, parts):
    """R2 falls beyond the trained number of constituents: less in wider networks, least with the form of the teacher."""
    if labels["arm"] == "lookup":
        return -1.0
    if labels["arm"] == "taught":
        return 0.85 - 0.1 * max(0, parts - 4)
    slope = 0.05 if labels["arm"] == "structured" else 12 / labels["width"]
    return 0.9 - slope * max(0, parts - 3)


@pytest.fixture(scope="module")
def tables(made):
    """Tables in which the R2 of a combination is a function of labels and number of constituents. In each run one more
    combination of K + 1 constituents may have the score `alone`: no other arm holds it out. Runs that fulfil `missing`
    are absent."""

    def build(
        study, score=falls, noise=0.0, correlation=0.0, trained_error=0.0, alone=None, missing=lambda labels: False
    ):
        draw = np.random.default_rng(0)

        def run(labels):
            fit = 0.5 if labels["arm"] == "lookup" else 0.95
            return {} if missing(labels) else {"r2_in": fit + noise * draw.standard_normal()}

        def combinations(labels):
            rows = []
            for region in ("trained", "held_out", "validation"):
                for parts in (1, 2, 3, 4, 5):
                    if region == "trained" and parts > study.trained:
                        continue
                    value = score(labels, parts) + noise * draw.standard_normal()
                    spread = 2.0 if region == "held_out" else 1.0
                    agreement = correlation + 0.1 * noise * draw.standard_normal()
                    error = trained_error if region == "trained" else spread * (1 - value)
                    rows.append(
                        {"region": region, "parts": parts, "error": error, "spread": spread}
                        | {"agreement": spread * agreement, "power": spread}
                        | {"combination": f"{region} {parts}"}
                    )
            if alone is not None:
                own = {"parts": study.trained + 1, "error": 1 - alone, "spread": 1.0, "agreement": 0.0, "power": 1.0}
                rows.append(own | {"region": "held_out", "combination": f"only {labels['arm']}"})
            return pd.DataFrame(rows)[: 0 if missing(labels) else None]

        return made(study, run, combinations=combinations)

    return build


@pytest.fixture(scope="module")
def laptop():
    return apply(Productivity.profile("laptop"), ["first_seed=0"])


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop):
    labels = pd.DataFrame([labels for _, labels in laptop.design.runs])
    assert not labels.duplicated().any()
    cells = labels.groupby(["arm", "width"], dropna=False).size()
    assert (cells == 12).all() and len(cells) == len(laptop.widths) + 3
    assert set(cells["taught"].index) == {laptop.widths[-1]}
    assert {config.model.kind for config, _ in laptop.design.runs} == {"mlp", "hypernetwork"}


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    study = Productivity.profile(profile)
    assert len(study.design.run_ids) == len(study.design.runs)
    for config, labels in study.design.runs:
        assert config.space.max_active == study.trained + study.more
        assert config.support.most_active == study.trained + (labels["arm"] == "taught")
        assert config.family.kind == ("lookup" if labels["arm"] == "lookup" else "hyperteacher")
        assert config.model.kind == ("hypernetwork" if labels["arm"] == "structured" else "mlp")
    main, taught = (
        {config.seeds: config for config, labels in study.design.arms[arm].runs if labels["width"] == study.widths[-1]}
        for arm in ("main", "taught")
    )
    for seeds, config in main.items():
        more = config.support.model_copy(update={"most_active": study.trained + 1})
        assert taught[seeds] == config.model_copy(update={"support": more}), "they differ in nothing else"


def test_training_never_shows_more_constituents_than_it_may_and_the_test_does():
    study = apply(Productivity.profile("smoke"), ["first_seed=0"])
    setting = Setting(study.design.runs[0][0])
    parts = (setting.support.rows < setting.config.space.width).sum(axis=1)
    assert parts.max() == study.trained
    test = setting.regions.rows("held_out", 1000, "test")
    assert set((test < setting.config.space.width).sum(axis=1)) >= {study.trained, study.trained + 1}


def test_networks_that_are_compared_share_held_out_combinations_of_one_constituent_more(laptop):
    space, wide, tested = laptop.design.runs[0][0].space, laptop.widths[-1], {}
    for config, labels in laptop.design.runs:
        if labels["arm"] in ("main", "taught") and (labels["width"], labels["replicate"]) == (wide, 0):
            setting = Setting(config)
            trained = (setting.support.rows < space.width).sum(axis=1)
            assert (laptop.trained + 1 in trained) == (labels["arm"] == "taught")
            rows = setting.regions.rows("held_out", 1024, "test")
            larger = rows[(rows < space.width).sum(axis=1) == laptop.trained + 1]
            tested[labels["arm"]] = {space.name(row) for row in larger}
    assert len(tested["main"] & tested["taught"]) > 100


def test_without_a_structured_model_its_claim_is_left_out(laptop, tables, effects):
    plain = validate(Productivity, laptop.model_dump(mode="json") | {"structured": None})
    names = [claim.name for claim in laptop.design.claims if claim.name != "structure-closes-the-gap"]
    assert list(effects(plain, tables(plain))) == names and plain.design.figures(tables(plain))


@pytest.mark.parametrize("widths", [(64,), (64, 32), (32, 32)])
def test_widths_that_cannot_be_compared_are_refused(widths):
    with pytest.raises(BadInput, match="smallest first"):
        validate(Productivity, {"widths": widths})


# The effects


def test_effects_are_computed_as_stated(laptop, tables, effects):
    narrow, wide = 12 / laptop.widths[0], 12 / laptop.widths[-1]
    computed = effects(laptop, tables(laptop, correlation=0.01))
    trained, more, most = scaled(0.9), scaled(0.9 - wide), scaled(0.9 - 2 * wide)
    expected = {
        "fits": 0.95,
        "taught-fits": 0.95,
        "recombines": 0.9,
        "loses": scaled(0.85) - more,
        "falls": trained - more,
        "falls-more": more - most,
        "still-informed": 0.9 - wide,
        "width-closes-the-gap": more - scaled(0.9 - narrow),
        "structure-closes-the-gap": scaled(0.85) - more,
        "control-is-learned": 0.5,
        "control-stays-at-zero": 0.01,
    }
    assert list(computed) == list(expected)
    for name, value in expected.items():
        shape = (3, 12) if np.ndim(value) else (12,)
        np.testing.assert_allclose(computed[name], np.broadcast_to(value, shape), atol=1e-9, err_msg=name)


def test_what_is_lost_counts_on_combinations_that_both_networks_hold_out(laptop, tables, effects):
    before, after = (effects(laptop, tables(laptop, alone=alone)) for alone in (None, 0.0))
    np.testing.assert_allclose(after["loses"], before["loses"], atol=1e-12)
    # A fall is over all held-out combinations: an error of 1 beside the errors of spreads 2 and 1.
    error = (1 + 3 * (0.1 + 12 / laptop.widths[-1])) / 4
    np.testing.assert_allclose(after["falls"], np.broadcast_to(scaled(0.9) - scaled(1 - error), (3, 12)), atol=1e-9)


def test_scores_below_zero_count_as_zero(laptop, tables, effects):
    def guesses(labels, parts):
        return 0.9 if parts <= 3 or labels["arm"] == "taught" else {4: -1.0, 5: -4.0}[parts]

    computed = effects(laptop, tables(laptop, guesses))
    for name in ("loses", "falls"):
        gap = np.broadcast_to(scaled(0.9) - scaled(0.0), (3, 12))
        np.testing.assert_allclose(computed[name], gap, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(computed["falls-more"], np.zeros((3, 12)), atol=1e-9)
    np.testing.assert_allclose(computed["still-informed"], np.full(12, -1.0), atol=1e-9)


def test_a_combination_that_is_harder_for_every_network_is_no_loss(laptop, tables, words):
    """With one constituent more tasks are harder, for networks that were trained with it, too."""

    def harder(labels, parts):
        return -1.0 if labels["arm"] == "lookup" else 0.9 - 0.2 * max(0, parts - 3)

    verdicts = words(laptop, tables(laptop, harder, noise=0.005))
    assert verdicts["falls"] == "supported" and verdicts["loses"] == "equivalent"


def test_when_constituents_are_lost_every_claim_about_the_loss_is_supported(laptop, tables, words):
    def clearly(labels, parts):
        return falls(labels, parts) - (0.1 * max(0, parts - 3) if labels["arm"] == "main" else 0)

    wanted = {claim.name: claim.of(laptop.kind).wanted for claim in laptop.design.claims}
    assert words(laptop, tables(laptop, clearly, noise=0.01)) == wanted
    assert [claim.name for claim in laptop.design.claims if claim.primary] == ["loses"]


def test_a_network_that_goes_on_is_distinguished_from_one_that_does_not_recombine(laptop, tables, words):
    def goes_on(labels, parts):
        return -1.0 if labels["arm"] == "lookup" else 0.9

    assert words(laptop, tables(laptop, goes_on, noise=0.005))["loses"] == "equivalent"

    def cannot(labels, parts):
        return falls(labels, parts) - 0.8

    verdicts = words(laptop, tables(laptop, cannot, noise=0.005))
    assert verdicts["recombines"] == "contradicted"
    assert verdicts["loses"] == "inconclusive", "there was nothing to lose"


def test_a_control_that_is_solved_is_found_out(laptop, tables, words):
    verdicts = words(laptop, tables(laptop, noise=0.01, correlation=0.2))
    assert verdicts["control-stays-at-zero"] == "contradicted"


def test_trained_combinations_do_not_count(laptop, tables, effects):
    first, second = (effects(laptop, tables(laptop, trained_error=error)) for error in (0.0, 99.0))
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def test_a_missing_run_takes_its_replicate_out(laptop, tables, effects):
    def gone(labels):
        narrow = labels["arm"] == "main" and labels["width"] == laptop.widths[0] and labels["replicate"] == 3
        return narrow or (labels["arm"] == "taught" and labels["replicate"] == 5)

    computed = effects(laptop, tables(laptop, missing=gone))
    assert [row.nonzero()[0].tolist() for row in np.isnan(computed["width-closes-the-gap"])] == [[3]] * 3
    assert [row.nonzero()[0].tolist() for row in np.isnan(computed["loses"])] == [[5]] * 3
    assert np.isnan(computed["taught-fits"]).nonzero()[0].tolist() == [5]
    assert np.isfinite(computed["falls"]).all()


def test_without_runs_nothing_is_decided(laptop, tables, effects):
    none = tables(laptop, missing=lambda labels: True)
    assert all(np.isnan(values).all() for values in effects(laptop, none).values())


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(laptop, tables, made):
    full = tables(laptop)
    for given in (full, tables(laptop, missing=lambda labels: True), made(laptop, lambda labels: {})):
        (figure,) = laptop.design.figures(given)
        assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
        assert len(laptop.design.overview(given)) == 6
    assert "correlation" in figure.caption
    overview = laptop.design.overview(full)
    assert (overview["n"] == 12).all()
    wide = overview[(overview["arm"] == "main") & (overview["width"] == laptop.widths[-1])].iloc[0]
    scores = [wide[f"r2_of_{parts}_constituents"] for parts in (1, 2, 3, 4, 5)]
    assert scores == pytest.approx([falls({"arm": "main", "width": 128}, parts) for parts in (1, 2, 3, 4, 5)])
