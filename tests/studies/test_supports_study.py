"""supports: its runs, its comparisons on common combinations, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.overrides import apply, validate
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.data_scaling import DataScaling
from recombine.studies.scale_by_coverage import ScaleByCoverage
from recombine.studies.supports import CLAIMS, CONTROL, Supports
from recombine.studies.supports_figures import in_words
from recombine.studies.supports_pairs import lost, shared
from recombine.supports.balanced import Balanced
from recombine.supports.disconnected import Disconnected
from recombine.supports.missing_part import MissingPart
from recombine.training.prepare import Setting

HELD_OUT = {
    "random": 0.9,
    "balanced": 0.9,
    "popular": 0.9,
    "missing-part": 0.2,
    "published": 0.2,
    "random-as-halves": 0.8,
    "halves": 0.4,
    "random-as-unpopular": 0.7,
    "unpopular": 0.1,
    "gaps": 0.6,
    "by-size": 0.5,
    CONTROL: 0.3,
}
"""Scores on combinations that others hold out too. On those that only one support holds out all score nothing."""

EXPECTED = {
    "fits": 0.95,
    "disconnected-hurts": 0.4,
    "missing-part-hurts": 0.7,
    "popular-does-not-hurt": 0.0,
    "balance-does-not-matter": 0.0,
    "unpopular-hurts": 0.6,
    "published-is-nearly-missing": 0.0,
    "control-is-learned": 0.8,
    "control-stays-at-zero": 0.0,
    "preferences-fit": 0.95,
    "preferences-recombine": 0.6,
    "preferences-disconnected-hurts": 0.5,
    "preferences-missing-part-hurts": 0.7,
    "preferences-popular-does-not-hurt": 0.0,
}


def statistics(family, score):
    """The sums of a combination whose score is this, and those that belong to the other sort of family."""
    if "preferences" in family:
        return {"right": 50.0, "steps": 100.0, "whole": 100 * score, "episodes": 100.0}
    return {"error": 10 * (1 - score), "spread": 10.0, "agreement": 0.0, "power": 10.0}


def tables(study, noise=0.0, change=lambda labels, score: score, **changed):
    """Scores as the literature has them. `change` is of the held-out score, `changed` of other columns."""
    draw = np.random.default_rng(0)
    runs, combinations = [], []
    for config, labels in study.runs():
        family, support = labels["family"], labels["support"]
        held_out = change(labels, HELD_OUT[support] + noise * draw.standard_normal())
        values = {
            "score_in": (0.8 if support == CONTROL else 0.95) + noise * draw.standard_normal(),
            "score_held_out": held_out,
            "score_all_pairs_met": held_out,
            "correlation_held_out": noise * draw.standard_normal(),
            "size": 100.0,
            "complete": float(support != "missing-part"),
            "connected": float(support not in ("missing-part", "halves", "published")),
            "groups": 1.0 + (support in ("missing-part", "halves", "published")),
            "pairs_met": 0.5,
            "usage_min": 0.1,
        }
        values |= {name: of(labels, values[name]) for name, of in changed.items()}
        row = {"run": config.run_id} | labels
        runs.append(row | {"status": "complete"} | values)
        for name, region, score in (
            ("0+1", "held_out", held_out),
            ("0+2", "held_out", held_out),
            (f"only {support}", "held_out", 0.0),
            ("1+2", "trained", 1.0),
            ("3", "validation", 1.0),
        ):
            where = {"combination": name, "region": region, "stratum": "all_pairs_met"}
            combinations.append(row | where | statistics(family, score) | {"score": score})
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), pd.DataFrame(combinations), empty, empty)


def effects(study, frames):
    return {effect.claim.name: effect.values for effect in study.effects(frames)}


def judged(study, frames):
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def without(frames, **labels):
    """The tables without the runs of these labels."""

    def left(frame):
        gone = np.ones(len(frame), bool)
        for name, value in labels.items():
            gone &= (frame[name] == value).to_numpy()
        return frame[~gone]

    return Tables(left(frames.runs), left(frames.combinations), frames.probes, frames.curves)


@pytest.fixture(scope="module")
def laptop():
    return apply(Supports.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def clean(laptop):
    return tables(laptop)


# The runs


def test_the_laptop_has_twelve_and_eight_replicates_of_every_cell(laptop):
    labels = pd.DataFrame([labels for _, labels in laptop.runs()])
    assert not labels.duplicated().any()
    for family, cells, replicates in (
        ("hyperteacher", 11, 12),
        ("lookup", 1, 12),
        ("preferences", 4, 8),
        ("lookup-preferences", 1, 8),
    ):
        counts = labels[labels["family"] == family]["support"].value_counts().tolist()
        assert counts == [replicates] * cells


def test_cells_that_other_studies_have_are_shared():
    own = {}
    for config, labels in Supports.profile("laptop").runs():
        own.setdefault((labels["family"], labels["support"]), set()).add(config.run_id)
    shared_runs = {config.run_id for config, _ in DataScaling.profile("laptop").runs()}
    assert own["hyperteacher", "random"] | own["lookup", CONTROL] <= shared_runs
    assert own["hyperteacher", "gaps"] <= {
        config.run_id for config, _ in ScaleByCoverage.profile("laptop").runs()
    }


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    study = Supports.profile(profile)
    runs = study.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    sizes = {}
    for config, labels in runs:
        assert config.family.kind == labels["family"]
        sizes[labels["family"], labels["support"]] = config.support.promises(config.space).size
    main, other = study.base.family.kind, study.preferences.family.kind
    for family, first, second in (
        (main, "balanced", "random"),
        (main, "popular", "random"),
        (main, "halves", "random-as-halves"),
        (main, "unpopular", "random-as-unpopular"),
        (other, "halves", "random"),
        (other, "popular", "random"),
    ):
        assert sizes[family, first] == sizes[family, second], "compared at equal number"
    assert sizes[main, "missing-part"] >= sizes[main, "random"], "the part's absence alone can hurt"


def test_the_supports_can_be_drawn_and_share_held_out_combinations(laptop):
    drawn = {
        labels["support"]: Setting(config)
        for config, labels in laptop.runs()
        if labels["family"] == "hyperteacher" and labels["replicate"] == 0
    }
    space = laptop.base.space
    tests = {
        name: {space.name(row) for row in setting.regions.rows("held_out", 10_000, "test")}
        for name, setting in drawn.items()
    }
    for first, second in (
        ("balanced", "random"),
        ("popular", "random"),
        ("missing-part", "random"),
        ("halves", "random-as-halves"),
        ("unpopular", "random-as-unpopular"),
        ("published", "missing-part"),
    ):
        assert len(tests[first] & tests[second]) > 30, (first, second)
    assert max(map(len, tests.values())) <= 512, "all are scored"


def test_the_missing_part_is_the_one_that_the_published_rule_sets_apart(laptop):
    for seed in (0, 7):
        kinds = laptop.kinds(seed)
        missing, published = kinds["missing-part"], kinds["published"]
        assert isinstance(missing, MissingPart) and isinstance(published, Disconnected)
        alone = published.draw(laptop.base.space, seed).first[1][:-1]
        assert alone.tolist() == [missing.part]
    assert len({laptop.kinds(seed)["missing-part"].part for seed in range(12)}) > 3
    assert isinstance(laptop.kinds(0)["balanced"], Balanced)


def test_families_that_are_not_four_are_refused():
    with pytest.raises(BadInput, match="four different families"):
        validate(Supports, {"control": "hyperteacher"})


# The comparison


def test_only_combinations_that_both_hold_out_count(clean, laptop):
    first, second = shared(clean, Hyperteacher(), "random", "halves")
    assert set(first["combination"]) == set(second["combination"]) == {"0+1", "0+2"}
    assert set(first["support"]) == {"random"} and set(second["support"]) == {"halves"}
    assert len(first) == len(second) == 2 * 12


def test_scores_are_pooled_over_combinations():
    rows = []
    for support, errors in (("a", (1.0, 8.0)), ("b", (2.0, 9.0))):
        for name, error, spread in zip("xy", errors, (2.0, 10.0), strict=True):
            rows.append(
                {"family": "hyperteacher", "support": support, "replicate": 5, "region": "held_out"}
                | {"combination": name, "error": error, "spread": spread, "agreement": 0.0, "power": 1.0}
            )
    empty = pd.DataFrame({"run": []})
    frames = Tables(empty, pd.DataFrame(rows), empty, empty)
    found = lost(frames, Hyperteacher(), [5, 6], "b", "a")
    assert found[0] == pytest.approx((1 - 9 / 12) - (1 - 11 / 12)) and np.isnan(found[1])


# The effects


def test_effects_are_computed_as_stated(laptop, clean):
    found = effects(laptop, clean)
    assert set(found) == set(EXPECTED) == {claim.name for claim in CLAIMS}
    for name, value in EXPECTED.items():
        replicates = 8 if name.startswith("preferences") else 12
        np.testing.assert_allclose(found[name], np.full(replicates, value), atol=1e-9, err_msg=name)


def test_as_the_literature_has_it_every_claim_holds(laptop):
    found = judged(laptop, tables(laptop, noise=0.005))
    assert {name: one.verdict for name, one in found.items()} == {
        name: one.claim.wanted for name, one in found.items()
    }
    assert [name for name, one in found.items() if one.claim.primary] == ["disconnected-hurts"]


def test_popular_parts_that_hurt_are_found_out(laptop):
    def worse(labels, score):
        return score - 0.1 if labels["support"] == "popular" else score

    found = judged(laptop, tables(laptop, noise=0.005, change=worse))
    assert found["popular-does-not-hurt"].verdict == "contradicted"
    assert found["preferences-popular-does-not-hurt"].verdict == "contradicted"
    assert found["balance-does-not-matter"].verdict == "equivalent"


def test_a_network_that_did_not_fit_or_recombine_decides_nothing(laptop):
    def poor(labels, score):
        return 0.4 if labels["family"] == "hyperteacher" and labels["support"] == "halves" else score

    found = judged(laptop, tables(laptop, noise=0.005, score_in=poor))
    assert found["disconnected-hurts"].verdict == "inconclusive"
    assert found["preferences-disconnected-hurts"].verdict == "supported"

    def solved(labels, score):
        return 0.9 if labels["family"] == "lookup-preferences" else score

    found = judged(laptop, tables(laptop, noise=0.005, score_held_out=solved))
    assert found["preferences-popular-does-not-hurt"].verdict == "inconclusive"


def test_a_missing_run_takes_its_replicate_out(laptop, clean):
    found = effects(laptop, without(clean, family="hyperteacher", support="halves", replicate=3))
    assert np.isnan(found["disconnected-hurts"]).nonzero()[0].tolist() == [3]
    assert np.isfinite(found["popular-does-not-hurt"]).all()
    assert np.isfinite(found["preferences-disconnected-hurts"]).all()
    found = effects(laptop, without(clean, family="preferences", support="random"))
    assert all(
        np.isnan(found[f"preferences-{name}-hurts"]).all() for name in ("disconnected", "missing-part")
    )


def test_without_runs_nothing_is_decided(laptop, clean):
    empty = pd.DataFrame({"run": []})
    none = Tables(clean.runs[:0], empty, empty, empty)
    assert all(np.isnan(values).all() for values in effects(laptop, none).values())


# What is shown


def test_certificates_in_words(clean):
    words = in_words(clean.runs)
    assert words["random"] == "100: complete, connected, 50% of pairs, rarest 10.0%"
    assert words["missing-part"].startswith("100: a part missing, 2 groups")
    assert in_words(clean.runs.drop(columns="size")) == {}


def test_figures_and_overview_of_tables_and_of_nothing(laptop, clean):
    none = Tables(clean.runs[:0], clean.combinations[:0], clean.probes, clean.curves)
    for given in (clean, none):
        for figure in laptop.figures(given):
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = laptop.overview(clean)
    assert len(overview) == 17 and set(overview["n"]) == {8, 12}
    assert {"complete", "connected", "groups", "pairs_met", "usage_min"} <= set(overview.columns)
