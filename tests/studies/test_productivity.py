"""productivity: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.productivity import Productivity
from recombine.training.prepare import Setting


def falls(labels, parts):
    """R2 that falls beyond the trained number of parts: the wider the less, and least with the teacher's form."""
    beyond = max(0, parts - 3)
    if labels["family"] == "lookup":
        return -1.0
    slope = 0.05 if labels["model"] == "hypernetwork" else 12 / labels["width"]
    return 0.9 - slope * beyond


def tables(study, score=falls, noise=0.0, r2_in=0.95, correlation=0.0):
    """Tables in which a combination's R2 is a function of labels and number of parts."""
    draw = np.random.default_rng(0)
    runs, combinations = [], []
    for config, labels in study.runs():
        fit = 0.5 if labels["family"] == "lookup" else r2_in
        runs.append({"run": config.run_id, "r2_in": fit + noise * draw.standard_normal()} | labels)
        for region in ("trained", "held_out", "validation"):
            for parts in (1, 2, 3, 4, 5):
                if region == "trained" and parts > study.trained:
                    continue
                value = score(labels, parts) + noise * draw.standard_normal()
                spread = 2.0 if region == "held_out" else 1.0
                combinations.append(
                    {
                        "run": config.run_id,
                        "region": region,
                        "parts": parts,
                        "error": spread * (1 - value) if region != "trained" else 0.0,
                        "spread": spread,
                        "agreement": spread * (correlation + 0.1 * noise * draw.standard_normal()),
                        "power": spread,
                    }
                    | labels
                )
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), pd.DataFrame(combinations), empty, empty)


def effects(study, frames):
    return {effect.claim.name: effect.values for effect in study.effects(frames)}


def judged(study, frames):
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


@pytest.fixture(scope="module")
def laptop():
    return apply(Productivity.profile("laptop"), ["first_seed=0"])


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop):
    labels = pd.DataFrame([labels for _, labels in laptop.runs()])
    assert not labels.duplicated().any()
    assert (labels.groupby(["family", "model", "width"]).size() == 12).all()
    cells = labels[["family", "model", "width"]].drop_duplicates()
    assert len(cells) == len(laptop.widths) + 2
    assert set(labels["model"]) == {"mlp", "hypernetwork"}


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    study = Productivity.profile(profile)
    runs = study.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    for config, labels in runs:
        assert config.space.max_active == study.trained + study.more
        assert config.support.most_active == study.trained
        assert config.family.kind == labels["family"] and config.model.kind == labels["model"]


def test_training_never_shows_more_parts_than_it_may_and_the_test_does():
    study = apply(Productivity.profile("smoke"), ["first_seed=0"])
    setting = Setting(study.runs()[0][0])
    parts = (setting.support.rows < setting.config.space.width).sum(axis=1)
    assert parts.max() == study.trained
    test = setting.regions.rows("held_out", 1000, "test")
    assert set((test < setting.config.space.width).sum(axis=1)) >= {study.trained, study.trained + 1}


def test_without_a_structured_model_its_claim_is_left_out(laptop):
    plain = validate(Productivity, laptop.model_dump(mode="json") | {"structured": None})
    found = effects(plain, tables(plain))
    assert "structure-closes-the-gap" not in found and len(found) == len(effects(laptop, tables(laptop))) - 1


@pytest.mark.parametrize("widths", [(64,), (64, 32), (32, 32)])
def test_widths_that_cannot_be_compared_are_refused(widths):
    with pytest.raises(BadInput, match="smallest first"):
        validate(Productivity, {"widths": widths})


# The effects


def test_effects_are_computed_as_stated(laptop):
    narrow, wide = 12 / laptop.widths[0], 12 / laptop.widths[-1]
    found = effects(laptop, tables(laptop, correlation=0.01))
    expected = {
        "fits": 0.95,
        "recombines": 0.9,
        "loses": wide,
        "loses-more": wide,
        "still-informed": 0.9 - wide,
        "width-closes-the-gap": narrow - wide,
        "structure-closes-the-gap": wide - 0.05,
        "control-is-learned": 0.5,
        "control-stays-at-zero": 0.01,
    }
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(12, value), atol=1e-9, err_msg=name)


def test_when_parts_are_lost_every_claim_about_the_loss_is_supported(laptop):
    def clearly(labels, parts):
        return falls(labels, parts) - (0.1 * max(0, parts - 3) if labels["model"] == "mlp" else 0)

    found = judged(laptop, tables(laptop, clearly, noise=0.01))
    assert {name: one.verdict for name, one in found.items()} == {
        name: one.claim.wanted for name, one in found.items()
    }
    assert [name for name, one in found.items() if one.claim.primary] == ["loses"]


def test_a_network_that_goes_on_is_told_from_one_that_does_not_recombine_at_all(laptop):
    def goes_on(labels, parts):
        return -1.0 if labels["family"] == "lookup" else 0.9

    found = judged(laptop, tables(laptop, goes_on, noise=0.005))
    assert found["loses"].verdict == "equivalent"

    def cannot(labels, parts):
        return falls(labels, parts) - 0.8

    found = judged(laptop, tables(laptop, cannot, noise=0.005))
    assert found["recombines"].verdict == "contradicted"
    assert found["loses"].verdict == "inconclusive", "there was nothing to lose"


def test_a_control_that_is_solved_is_found_out(laptop):
    found = judged(laptop, tables(laptop, noise=0.01, correlation=0.2))
    assert found["control-stays-at-zero"].verdict == "contradicted"


def test_trained_combinations_do_not_count(laptop):
    frames = tables(laptop)
    trained = frames.combinations["region"] == "trained"
    changed = frames.combinations.assign(error=frames.combinations["error"].mask(trained, 99.0))
    other = Tables(frames.runs, changed, frames.probes, frames.curves)
    one, two = effects(laptop, frames), effects(laptop, other)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


def test_a_missing_run_takes_its_replicate_out(laptop):
    frames = tables(laptop)

    def without(frame):
        gone = (frame["width"] == laptop.widths[0]) & (frame["replicate"] == 3)
        return frame[~gone]

    short = Tables(without(frames.runs), without(frames.combinations), frames.probes, frames.curves)
    found = effects(laptop, short)
    assert np.isnan(found["width-closes-the-gap"]).nonzero()[0].tolist() == [3]
    assert np.isfinite(found["loses"]).all()


def test_without_runs_nothing_is_decided(laptop):
    frames = tables(laptop)
    none = Tables(frames.runs[:0], frames.combinations[:0], frames.probes, frames.curves)
    assert all(np.isnan(values).all() for values in effects(laptop, none).values())


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(laptop):
    frames = tables(laptop, noise=0.01)
    empty = pd.DataFrame({"run": []})
    for given in (frames, Tables(frames.runs[:0], frames.combinations[:0], empty, empty)):
        (figure,) = laptop.figures(given)
        assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    assert "correlation" in figure.caption
    overview = laptop.overview(frames)
    assert len(overview) == 5 * 5 and (overview["n"] == 12).all()
    assert laptop.overview(Tables(frames.runs[:0], empty, empty, empty)).empty
