"""scale-by-coverage: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.design.column import SCALES
from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.scale_by_coverage import STRATA, ScaleByCoverage

ERROR = {"all_pairs_met": 0.4, "some_pairs_unmet": 0.5, "part_unseen": 0.8}
"""The error (1 - R2) of each stratum at the smallest scale."""
HALVINGS = {"all_pairs_met": 1.0, "some_pairs_unmet": 0.5, "part_unseen": 0.0}
"""How many times one doubling of anything halves the error of each stratum."""


@pytest.fixture(scope="module")
def study() -> ScaleByCoverage:
    sizes = ["widths=32,64,128", "steps=125,250,500", "numbers=64,128,256"]
    return apply(ScaleByCoverage.profile("laptop"), ["first_seed=0", *sizes])


@pytest.fixture(scope="module")
def tables(made):
    def build(study, halvings=HALVINGS, noise=0.01, missing=lambda labels: False):
        draw = np.random.default_rng(0)

        def score(labels):
            values = {"r2_in": 0.9 if labels["number"] == 64 else 0.95, "r2_held_out": 0.5}
            values |= {"correlation_held_out": noise * draw.standard_normal()}
            return {} if missing(labels) else values

        def combinations(labels):
            """Two combinations of each stratum. With few training combinations, covered ones count as unmet in the run."""
            doublings = sum(np.log2(labels[axis] / levels[0]) for axis, levels in study.levels.items())
            rows = []
            for stratum in STRATA:
                error = (
                    ERROR[stratum] * 2 ** (-halvings[stratum] * doublings / 4) * np.exp(noise * draw.standard_normal())
                )
                own = "some_pairs_unmet" if labels["number"] == 64 and stratum == "all_pairs_met" else stratum
                rows += [
                    (f"{stratum} {index}", "held_out", own, error * size, size) for index, size in ((1, 1), (2, 3))
                ]
            frame = pd.DataFrame(rows, columns=["combination", "region", "stratum", "error", "spread"])
            trained = frame.assign(region="trained", error=0.0)
            return pd.concat([frame, trained])[: 0 if missing(labels) else None]

        return made(study, score, combinations=combinations)

    return build


def test_a_grid_of_lines_that_meet_at_the_largest_scale(study):
    runs = study.design.runs
    assert len(study.design.run_ids) == len(runs)
    cells = {
        arm: {(labels["width"], labels["steps"], labels["number"]) for _, labels in runs if labels["arm"] == arm}
        for arm in ("main", "lookup")
    }
    assert len(cells["main"]) == 7 and (128, 500, 256) in cells["main"]
    assert cells["lookup"] == {(32, 500, 256), (128, 125, 256), (128, 500, 64), (128, 500, 256)}
    assert {labels["replicate"] for _, labels in runs} == set(range(12))
    primary = [claim.name for claim in study.design.claims if claim.primary]
    assert primary == ["interaction-unmet-pair", "interaction-unseen-part"]  # Never averaged.


def test_the_interaction_is_what_the_covered_stratum_gains_more_on_each_scale(study, tables, effects):
    computed = effects(study, tables(study, noise=0.0))
    # Along one axis the others are at their largest, four doublings of six in all; its own two are the rise.
    ends = {
        stratum: [1 - ERROR[stratum] * 2 ** (-HALVINGS[stratum] * doublings / 4) for doublings in (4, 6)]
        for stratum in STRATA
    }
    gains = {
        stratum: [transform(np.array(end)) - transform(np.array(start)) for transform, _ in SCALES.values()]
        for stratum, (start, end) in ends.items()
    }
    covered, unmet, unseen = (np.array(gains[stratum])[:, None] for stratum in STRATA)
    for name, expected in {
        "interaction-unmet-pair": covered - unmet,
        "interaction-unmet-pair-number": covered - unmet,
        "interaction-unseen-part-width": covered - unseen,
        "helps-covered": covered,
        "helps-unseen-part": unseen,
    }.items():
        np.testing.assert_allclose(computed[name], np.broadcast_to(expected, (3, 12)), atol=1e-12, err_msg=name)
    assert computed["unseen-part-lags"][0] == pytest.approx(ends["all_pairs_met"][1] - ends["part_unseen"][1])


def test_errors_that_are_divided_alike_depend_on_the_scale(study, tables, words):
    """Everywhere scale divides the error by the same number. In R2 the stratum with the larger error gains more."""
    verdicts = words(study, tables(study, dict.fromkeys(HALVINGS, 1.0), noise=0.002))
    assert verdicts["interaction-unseen-part"] == "depends on the scale"
    assert verdicts["helps-covered"] == verdicts["helps-unseen-part"] == "supported"


def test_more_on_every_scale_is_supported(study, tables, words):
    verdicts = words(study, tables(study))
    assert verdicts["interaction-unseen-part"] == "supported"
    assert verdicts["helps-unseen-part"] == verdicts["control-stays-at-zero"] == "equivalent"


def test_a_missing_run_leaves_its_replicate_out(study, tables, effects):
    frames = tables(study, missing=lambda labels: labels["replicate"] == 3 and labels["width"] == 32)
    values = effects(study, frames)["interaction-unmet-pair"]
    assert np.isnan(values[:, 3]).all() and np.isfinite(np.delete(values, 3, axis=1)).all()


def test_figures_of_tables_and_of_nothing(study, tables, made):
    for given in (tables(study), made(study, lambda labels: {})):
        names = [figure.name for figure in study.design.figures(given)]
        assert names == ["scale_by_coverage", "error_by_coverage"]


@pytest.mark.parametrize("wrong", ["widths=64", "steps=500,100", "numbers=64,64"])
def test_levels_that_cannot_be_compared_are_refused(wrong):
    with pytest.raises(BadInput):
        apply(ScaleByCoverage.profile("laptop"), [wrong])
