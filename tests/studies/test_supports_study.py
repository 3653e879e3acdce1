"""supports and preference-supports: their runs, comparisons on common combinations, and effects on known tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.families import Hyperteacher
from recombine.overrides import apply, validate
from recombine.studies.data_scaling import DataScaling
from recombine.studies.model_scaling import ModelScaling
from recombine.studies.paired_supports import certificates_in_words, lost, score_beside
from recombine.studies.preference_supports import PreferenceSupports
from recombine.studies.scale_by_coverage import ScaleByCoverage
from recombine.studies.shapes import skill
from recombine.studies.supports import COMPARED, Supports
from recombine.supports import Balanced, Disconnected, MissingPart
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
    "control": 0.3,
}
"""Scores on combinations that other supports hold out too. On combinations that only one support holds out the score is 0."""


def scaled(r2):
    """A score as R2, as the logarithm of its error and as the root of its error: one row each. Below zero counts as zero."""
    error = 1 - np.maximum(r2, 0.0)
    return np.stack([1 - error, -np.log(error), -np.sqrt(error)]).reshape(3, -1)


EXPECTED = {
    Supports: {
        "fits": 0.95,
        "disconnected-hurts": scaled(0.8) - scaled(0.4),
        "missing-part-hurts": scaled(0.9) - scaled(0.2),
        "popular-does-not-hurt": np.zeros((3, 1)),
        "balance-does-not-matter": np.zeros((3, 1)),
        "unpopular-hurts": scaled(0.7) - scaled(0.1),
        "published-is-nearly-missing": np.zeros((3, 1)),
        "control-is-learned": 0.8,
        "control-stays-at-zero": 0.0,
    },
    PreferenceSupports: {
        "preferences-fit": 0.95,
        "preferences-recombine": 0.6,
        "preferences-disconnected-hurts": 0.5,
        "preferences-missing-part-hurts": 0.7,
        "preferences-popular-does-not-hurt": 0.0,
    },
}


def sums(study, score):
    """The sums over the tasks of a combination with this score."""
    if isinstance(study, PreferenceSupports):
        return {"right": 50.0, "steps": 100.0, "whole": 100 * score, "episodes": 100.0}
    return {"error": 10 * (1 - score), "spread": 10.0, "agreement": 0.0, "power": 10.0}


def key(labels):
    """The support of a run; that of the control is `control`."""
    return labels.get("support", "control")


@pytest.fixture(scope="module")
def tables(made):
    """Tables with scores as in the literature. `change` changes the held-out score, `changed` other columns; runs whose
    labels fulfil `missing` are absent."""

    def build(study, noise=0.0, change=lambda labels, score: score, missing=lambda labels: False, **changed):
        draw = np.random.default_rng(0)
        scores = {
            (key(labels), labels["replicate"]): change(labels, HELD_OUT[key(labels)] + noise * draw.standard_normal())
            for _, labels in study.design.runs
        }

        def run(labels):
            support, held_out = key(labels), scores[key(labels), labels["replicate"]]
            split = support in ("missing-part", "halves", "published")
            columns = {
                "score_in": (0.8 if support == "control" else 0.95) + noise * draw.standard_normal(),
                "score_held_out": held_out,
                "score_all_pairs_met": held_out,
                "correlation_held_out": noise * draw.standard_normal(),
                "size": 100.0,
                "complete": float(support != "missing-part"),
                "connected": float(not split),
                "groups": 1.0 + split,
                "pairs_met": 0.5,
                "usage_min": 0.1,
            }
            columns |= {name: of(labels, columns[name]) for name, of in changed.items()}
            return dict.fromkeys(columns, np.nan) if missing(labels) else columns

        def combinations(labels):
            held_out = scores[key(labels), labels["replicate"]]
            rows = [
                {"combination": name, "region": region, "stratum": "all_pairs_met", **sums(study, score)}
                for name, region, score in (
                    ("0+1", "held_out", held_out),
                    ("0+2", "held_out", held_out),
                    (f"only {key(labels)}", "held_out", 0.0),
                    ("1+2", "trained", 1.0),
                    ("3", "validation", 1.0),
                )
            ]
            return pd.DataFrame(rows)[: 0 if missing(labels) else None]

        return made(study, run, combinations=combinations)

    return build


@pytest.fixture(scope="module")
def laptop():
    return apply(Supports.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def preferences():
    return apply(PreferenceSupports.profile("laptop"), ["first_seed=0"])


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell(laptop, preferences):
    for study, cells, replicates in ((laptop, 11, 12), (preferences, 4, 12)):
        labels = pd.DataFrame([labels for _, labels in study.design.runs])
        assert not labels.duplicated().any()
        counts = labels.groupby("arm")["support"].value_counts(dropna=False)
        assert counts["main"].tolist() == [replicates] * cells
        assert counts["lookup"].tolist() == [replicates]


def test_cells_that_other_studies_have_are_shared():
    own = {}
    for config, labels in Supports.profile("laptop").design.runs:
        own.setdefault(key(labels), set()).add(config.run_id)
    for other in (DataScaling, ModelScaling):
        assert own["random"] | own["control"] <= set(other.profile("laptop").design.run_ids)


def test_the_gaps_are_those_of_scale_by_coverage():
    """With other networks: scale-by-coverage has deeper ones."""
    gaps = {
        (config.support, config.space, config.seeds)
        for config, labels in Supports.profile("laptop").design.runs
        if key(labels) == "gaps"
    }
    assert len(gaps) == 12
    assert gaps <= {
        (config.support, config.space, config.seeds) for config, _ in ScaleByCoverage.profile("laptop").runs()
    }


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    for kind, pairs in (
        (Supports, [("balanced", "random"), ("popular", "random"), ("halves", "random-as-halves")]),
        (Supports, [("unpopular", "random-as-unpopular")]),
        (PreferenceSupports, [("halves", "random"), ("popular", "random")]),
    ):
        study = kind.profile(profile)
        assert len(study.design.run_ids) == len(study.design.runs)
        sizes = {}
        for config, labels in study.design.runs:
            main = labels["arm"] == "main"
            assert config.family == (study.base.family if main else study.control)
            sizes[key(labels)] = config.support.promises(config.space).size
        for first, second in pairs:
            assert sizes[first] == sizes[second], "compared at equal number"
        if kind is Supports:
            assert sizes["missing-part"] >= sizes["random"], "only the absence of the constituent can hurt"


def test_the_supports_can_be_drawn_and_share_held_out_combinations(laptop):
    drawn = {
        labels["support"]: Setting(config)
        for config, labels in laptop.design.arms["main"].runs
        if labels["replicate"] == 0
    }
    space = laptop.base.space
    tests = {
        name: {space.name(row) for row in setting.regions.rows("held_out", 10_000, "test")}
        for name, setting in drawn.items()
    }
    for first, second in COMPARED.items():
        assert len(tests[first] & tests[second]) > 30, (first, second)
    assert max(map(len, tests.values())) <= 512, "all are scored"


def test_the_missing_constituent_is_the_one_that_the_published_rule_sets_apart(laptop):
    supports = {
        (labels["support"], labels["replicate"]): config.support for config, labels in laptop.design.arms["main"].runs
    }
    for seed in (0, 7):
        missing, published = supports["missing-part", seed], supports["published", seed]
        assert isinstance(missing, MissingPart) and isinstance(published, Disconnected)
        alone = published.draw(laptop.base.space, seed).first[1][:-1]
        assert alone.tolist() == [missing.part]
    assert len({supports["missing-part", seed].part for seed in range(12)}) > 3
    assert isinstance(supports["balanced", 0], Balanced)


@pytest.mark.parametrize(("study", "family"), [(Supports, "hyperteacher"), (PreferenceSupports, "preferences")])
def test_a_control_with_the_family_of_the_main_runs_is_refused(study, family):
    with pytest.raises(BadInput, match="another family"):
        validate(study, {"control": family})


# The comparison


def test_only_combinations_that_both_hold_out_count(laptop, tables):
    main, data = laptop.design.arms["main"], laptop.design.data(tables(laptop))
    np.testing.assert_allclose(lost(main, "halves", "random").values(data), np.full(12, 0.9 - 0.4))
    on_scales = lost(main, "halves", "random", skill).values(data)
    np.testing.assert_allclose(on_scales, np.broadcast_to(scaled(0.9) - scaled(0.4), (3, 12)))


def test_scores_are_pooled_over_combinations():
    rows = []
    for support, errors in (("a", (1.0, 8.0, 0.0)), ("b", (2.0, 9.0, 0.0))):
        for name, error, spread in zip(("x", "y", support), errors, (2.0, 10.0, 9.0), strict=True):
            rows.append({"run": support, "region": "held_out", "combination": name, "error": error, "spread": spread})
    labels = pd.DataFrame([{"run": name, "support": name, "replicate": 5} for name in "ab"])
    frames = Tables.from_frames(labels, {"combinations": pd.DataFrame(rows)})
    for of, beside, error in (("a", "b", 9), ("b", "a", 11)):
        score = score_beside(frames, Hyperteacher(), of=of, beside=beside)
        assert score.to_dict() == {5: pytest.approx(1 - error / 12)}


# The effects


@pytest.mark.parametrize("kind", [Supports, PreferenceSupports])
def test_effects_are_computed_as_stated(kind, tables, effects):
    study = kind.profile("laptop")
    computed = effects(study, tables(study))
    assert list(computed) == list(EXPECTED[kind])
    for name, value in EXPECTED[kind].items():
        shape = (3, 12) if np.ndim(value) else (12,)
        np.testing.assert_allclose(computed[name], np.broadcast_to(value, shape), atol=1e-9, err_msg=name)


def test_scores_below_zero_count_as_zero(laptop, tables, effects):
    """How wrong a network is about a constituent that it does not know makes no difference."""

    def guesses(labels, score):
        return {"published": -1.0, "missing-part": -3.0}.get(key(labels), score)

    computed = effects(laptop, tables(laptop, change=guesses))
    np.testing.assert_allclose(computed["published-is-nearly-missing"], np.zeros((3, 12)), atol=1e-12)
    hurt = np.broadcast_to(scaled(0.9) - scaled(0.0), (3, 12))
    np.testing.assert_allclose(computed["missing-part-hurts"], hurt, atol=1e-12)


def test_a_difference_that_only_matters_near_the_ceiling_depends_on_the_scale(laptop, tables, words):
    """Between .98 and .95 there is little of R2, and more than twice the error."""

    def near_the_ceiling(labels, score):
        return {"random": 0.98, "popular": 0.95, "balanced": 0.98}.get(key(labels), score)

    verdicts = words(laptop, tables(laptop, noise=0.005, change=near_the_ceiling))
    assert verdicts["popular-does-not-hurt"] == "depends on the scale"
    assert verdicts["balance-does-not-matter"] == "equivalent"


def test_as_in_the_literature_every_claim_holds(laptop, preferences, tables, words):
    for study in (laptop, preferences):
        wanted = {claim.name: claim.of(study.kind).wanted for claim in study.design.claims}
        assert words(study, tables(study, noise=0.005)) == wanted
    assert [claim.name for claim in laptop.design.claims if claim.primary] == ["disconnected-hurts"]


def test_popular_constituents_that_hurt_are_found_out(laptop, preferences, tables, words):
    def worse(labels, score):
        return score - 0.1 if key(labels) == "popular" else score

    verdicts = words(laptop, tables(laptop, noise=0.005, change=worse))
    assert verdicts["popular-does-not-hurt"] == "contradicted"
    assert verdicts["balance-does-not-matter"] == "equivalent"
    verdicts = words(preferences, tables(preferences, noise=0.005, change=worse))
    assert verdicts["preferences-popular-does-not-hurt"] == "contradicted"


def test_a_network_that_did_not_fit_or_recombine_decides_nothing(laptop, preferences, tables, words):
    def poor(labels, score):
        return 0.4 if key(labels) == "halves" else score

    verdicts = words(laptop, tables(laptop, noise=0.005, score_in=poor))
    assert verdicts["disconnected-hurts"] == "inconclusive"

    def solved(labels, score):
        return 0.9 if labels["arm"] == "lookup" else score

    verdicts = words(preferences, tables(preferences, noise=0.005, score_held_out=solved))
    assert verdicts["preferences-popular-does-not-hurt"] == "inconclusive"


def test_a_missing_run_takes_its_replicate_out(laptop, preferences, tables, effects):
    def gone(labels):
        return key(labels) == "halves" and labels["replicate"] == 3

    computed = effects(laptop, tables(laptop, missing=gone))
    assert [row.nonzero()[0].tolist() for row in np.isnan(computed["disconnected-hurts"])] == [[3]] * 3
    assert np.isfinite(computed["popular-does-not-hurt"]).all()
    computed = effects(preferences, tables(preferences, missing=lambda labels: key(labels) == "random"))
    assert all(np.isnan(computed[f"preferences-{name}-hurts"]).all() for name in ("disconnected", "missing-part"))


def test_without_runs_nothing_is_decided(laptop, preferences, effects, made):
    for study in (laptop, preferences):
        none = made(study, lambda labels: {})
        assert all(np.isnan(values).all() for values in effects(study, none).values())
        assert all(figure.chart.to_dict() for figure in study.design.figures(none))


# What is shown


def test_certificates_in_words(laptop, tables):
    runs = tables(laptop).runs
    words = certificates_in_words(runs)
    assert words["random"] == "100: complete, connected, 50% of pairs, rarest 10.0%"
    assert words["missing-part"].startswith("100: incomplete, 2 groups")
    assert certificates_in_words(runs.drop(columns="size")) == {}


def test_figures_and_overview(laptop, preferences, tables):
    for study, cells, replicates in ((laptop, 12, 12), (preferences, 5, 12)):
        clean = tables(study)
        for figure in study.design.figures(clean):
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
        overview = study.design.overview(clean)
        assert len(overview) == cells and set(overview["n"]) == {replicates}
        assert {"complete", "connected", "groups", "pairs_met", "usage_min"} <= set(overview.columns)
