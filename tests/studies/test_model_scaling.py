"""model-scaling: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.overrides import apply
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.model_scaling import ModelScaling


@pytest.fixture(scope="module")
def laptop() -> ModelScaling:
    return apply(ModelScaling.profile("laptop"), ["first_seed=0"])


def tables(study):
    """Held-out R2 gains .1 with every doubling of width and .05 with every layer."""
    rows = []
    for config, labels in study.runs():
        score = 0.1 * np.log2(labels["width"]) + 0.05 * labels["depth"]
        values = {
            "r2_in": 1.0,
            "r2_held_out": score,
            "intrinsic": score / 2,
            "efficacy_best": score / 4,
            "correlation_held_out": 0.0,
        }
        rows.append({"run": config.run_id, "status": "complete"} | labels | values)
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(rows), empty, empty, empty)


def test_runs_of_every_encoding_and_shape(laptop):
    runs = laptop.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    shapes = {
        (one["width"], one["depth"])
        for _, one in runs
        if one["encoding"] == "identity" and one["family"] == "hyperteacher"
    }
    assert shapes == {(32, 3), (128, 1), (128, 3)}
    assert {one["replicate"] for _, one in runs} == set(range(12))
    assert len({one["width"] for _, one in runs if one["encoding"] == "few-shot"}) == 3


def test_effects_are_those_of_the_table(laptop):
    found = {one.claim.name: one.values for one in laptop.effects(tables(laptop))}
    assert found["width-helps"] == pytest.approx(0.2)
    assert found["width-helps-tokens"] == pytest.approx(0.2)
    assert found["width-helps-few-shot"] == pytest.approx(0.2)
    assert found["depth-helps"] == pytest.approx(0.1)
    assert found["gap-closes"] == pytest.approx(0.2)
    assert found["decodability-rises"] == pytest.approx(0.1)
    assert found["swap-efficacy-rises"] == pytest.approx(0.05)
    assert all(len(values) == 12 for values in found.values())


def test_a_missing_run_leaves_its_replicate_out(laptop):
    frames = tables(laptop)
    gone = (frames.runs["encoding"] == "identity") & (frames.runs["replicate"] == 5)
    left = Tables(frames.runs[~gone], *[frames.combinations] * 3)
    found = {one.claim.name: one.values for one in laptop.effects(left)}
    assert np.isnan(found["width-helps"][5]) and np.isfinite(found["width-helps-tokens"]).all()


def test_an_encoding_that_is_not_fitted_decides_over_its_own_claim_alone(laptop):
    frames = tables(laptop)
    frames.runs.loc[frames.runs["encoding"] == "interval-shuffle", "r2_in"] = 0.5
    verdicts = settle([one.judge() for one in laptop.effects(frames)])
    found = {one.claim.name: one.verdict for one in verdicts}
    assert found["width-helps-interval-shuffle"] == "inconclusive"
    assert found["width-helps"] == found["width-helps-tokens"] == "supported"


def test_edits_that_do_harm_count_as_none(laptop):
    frames = tables(laptop)
    frames.runs["efficacy_best"] = np.where(frames.runs["width"] == 32, -50.0, 0.3)
    found = {one.claim.name: one.values for one in laptop.effects(frames)}
    assert found["swap-efficacy-rises"] == pytest.approx(0.3)


def test_figures_of_tables_and_of_nothing(laptop):
    frames = tables(laptop)
    assert [figure.name for figure in laptop.figures(frames)] == ["by_width", "by_depth"]
    assert laptop.figures(Tables(frames.runs.iloc[:0], *[frames.combinations] * 3))
