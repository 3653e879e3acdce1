"""scale-by-coverage: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.scale_by_coverage import STRATA, ScaleByCoverage

GAIN = {"r2_all_pairs_met": 0.2, "r2_some_pairs_unmet": 0.1, "r2_part_unseen": 0.0}
"""What two doublings of anything gain in each stratum."""
BASE = {"r2_all_pairs_met": 0.1, "r2_some_pairs_unmet": 0.1, "r2_part_unseen": -0.1}


@pytest.fixture(scope="module")
def laptop() -> ScaleByCoverage:
    return apply(ScaleByCoverage.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def tables(made):
    def build(study, gain=GAIN, noise=0.01, missing=lambda labels: False):
        draw = np.random.default_rng(0)

        def score(labels):
            doublings = sum(np.log2(labels[axis] / levels[0]) for axis, levels in study.levels.items())
            values = {name: BASE[name] + gain[name] * doublings / 2 + noise * draw.standard_normal() for name in gain}
            values |= {"r2_in": 0.9 if labels["number"] == 64 else 0.95, "r2_held_out": 0.5}
            values |= {"correlation_held_out": noise * draw.standard_normal()}
            return {} if missing(labels) else values

        return made(study, score)

    return build


def test_a_grid_of_lines_that_meet_at_the_largest_scale(laptop):
    runs = laptop.design.runs
    assert len(laptop.design.run_ids) == len(runs)
    cells = {
        arm: {(labels["width"], labels["steps"], labels["number"]) for _, labels in runs if labels["arm"] == arm}
        for arm in ("main", "lookup")
    }
    assert len(cells["main"]) == 7 and (128, 500, 256) in cells["main"]
    assert cells["lookup"] == {(32, 500, 256), (128, 125, 256), (128, 500, 64), (128, 500, 256)}
    assert {labels["replicate"] for _, labels in runs} == set(range(12))
    assert [claim.name for claim in laptop.design.claims if claim.primary] == ["interaction"]


def test_the_interaction_is_what_the_strata_gain_more(laptop, tables, effects):
    found = effects(laptop, tables(laptop, noise=0.0))
    # Two doublings on each axis: .2 where covered, .1 and 0 where not.
    expected = {
        "fits": 0.95,
        "interaction": 0.15,
        "interaction-width": 0.15,
        "interaction-steps": 0.15,
        "interaction-number": 0.15,
        "interaction-unmet-pairs": 0.1,
        "interaction-unseen-part": 0.2,
        "helps-covered": 0.2,
        "unmet-pairs-lag": 0.3,
        "unseen-part-fails": 0.2 + 0.6,
        "control-is-learned": 0.9,
        "control-stays-at-zero": 0.0,
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name


def test_equal_gains_are_no_interaction(laptop, tables, words):
    verdicts = words(laptop, tables(laptop, dict.fromkeys(GAIN, 0.2)))
    assert verdicts["interaction"] == "equivalent" and verdicts["helps-covered"] == "supported"
    assert verdicts["control-stays-at-zero"] == "equivalent"


def test_a_missing_run_leaves_its_replicate_out(laptop, tables, effects):
    frames = tables(laptop, missing=lambda labels: labels["replicate"] == 3 and labels["width"] == 32)
    found = effects(laptop, frames)["interaction"]
    assert np.isnan(found[3]) and np.isfinite(np.delete(found, 3)).all()


def test_figures_of_tables_and_of_nothing(laptop, tables, made):
    for given in (tables(laptop), made(laptop, lambda labels: {})):
        assert [figure.name for figure in laptop.design.figures(given)] == ["scale_by_coverage"]
    data = laptop.design.data(tables(laptop, noise=0.0))
    frame = laptop.by_scale(data["main"].runs, data["lookup"].runs)
    assert len(frame) == 12 * (3 * 3 * len(STRATA) + 3 * 2)
    at_most = frame[(frame["axis"] == "steps") & (frame["stratum"] == STRATA["r2_all_pairs_met"])]
    assert at_most.groupby("times")["r2"].mean().to_dict() == pytest.approx({1: 0.5, 2: 0.6, 4: 0.7})


@pytest.mark.parametrize("wrong", ["widths=64", "steps=500,100", "numbers=64,64"])
def test_levels_that_cannot_be_compared_are_refused(wrong):
    with pytest.raises(BadInput):
        apply(ScaleByCoverage.profile("laptop"), [wrong])
