"""scale-by-coverage: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.scale_by_coverage import CLAIMS, ScaleByCoverage

GAIN = {"r2_all_pairs_met": 0.2, "r2_some_pairs_unmet": 0.1, "r2_part_unseen": 0.0}
"""What a doubling of anything gains in each stratum."""
BASE = {"r2_all_pairs_met": 0.1, "r2_some_pairs_unmet": 0.1, "r2_part_unseen": -0.1}


@pytest.fixture(scope="module")
def laptop() -> ScaleByCoverage:
    return apply(ScaleByCoverage.profile("laptop"), ["first_seed=0"])


def tables(study, gain=GAIN, noise=0.01):
    draw = np.random.default_rng(0)
    rows = []
    for config, labels in study.runs():
        doublings = (
            np.log2(labels["width"] / study.widths[0])
            + np.log2(labels["steps"] / study.steps[0])
            + np.log2(labels["number"] / study.numbers[0])
        )
        values = {"r2_in": 0.95, "r2_held_out": 0.5, "correlation_held_out": noise * draw.standard_normal()}
        values |= {
            name: BASE[name] + gain[name] * doublings / 2 + noise * draw.standard_normal() for name in gain
        }
        rows.append({"run": config.run_id, "status": "complete"} | labels | values)
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(rows), empty, empty, empty)


def effects(study, frames):
    return {effect.claim.name: effect.values for effect in study.effects(frames)}


def test_a_grid_of_lines_that_meet_at_the_largest_scale(laptop):
    runs = laptop.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    main = {(one["width"], one["steps"], one["number"]) for _, one in runs if one["family"] == "hyperteacher"}
    assert len(main) == 7 and (128, 500, 256) in main
    assert {one["replicate"] for _, one in runs} == set(range(12))
    assert len([one for one in CLAIMS if one.primary]) == 1


def test_the_interaction_is_what_the_strata_gain_more(laptop):
    found = effects(laptop, tables(laptop, noise=0.0))
    # Two doublings on each axis: .2 where covered, .1 and 0 where not.
    assert found["interaction"] == pytest.approx(0.15)
    assert found["interaction-width"] == pytest.approx(0.15)
    assert found["interaction-unmet-pairs"] == pytest.approx(0.1)
    assert found["interaction-unseen-part"] == pytest.approx(0.2)
    assert found["helps-covered"] == pytest.approx(0.2)
    assert found["unmet-pairs-lag"] == pytest.approx(0.3)
    assert found["unseen-part-fails"] == pytest.approx(0.2 + 0.6)


def test_equal_gains_are_no_interaction(laptop):
    same = dict.fromkeys(GAIN, 0.2)
    verdicts = settle([effect.judge() for effect in laptop.effects(tables(laptop, same))])
    words = {verdict.claim.name: verdict.verdict for verdict in verdicts}
    assert words["interaction"] == "equivalent" and words["helps-covered"] == "supported"
    assert words["control-stays-at-zero"] == "equivalent"


def test_a_missing_run_leaves_its_replicate_out(laptop):
    frames = tables(laptop)
    runs = frames.runs
    gone = (runs["replicate"] == 3) & (runs["width"] == 32)
    found = effects(laptop, Tables(runs[~gone], frames.combinations, frames.probes, frames.curves))
    assert np.isnan(found["interaction"][3]) and np.isfinite(np.delete(found["interaction"], 3)).all()


def test_figures_of_tables_and_of_nothing(laptop):
    frames = tables(laptop)
    assert [figure.name for figure in laptop.figures(frames)] == ["scale_by_coverage"]
    empty = Tables(frames.runs.iloc[:0], *[frames.combinations] * 3)
    assert laptop.figures(empty)


@pytest.mark.parametrize("wrong", ["widths=64", "steps=500,100", "numbers=64,64"])
def test_refuses_levels_that_cannot_be_compared(wrong):
    with pytest.raises(BadInput):
        apply(ScaleByCoverage.profile("laptop"), [wrong])
