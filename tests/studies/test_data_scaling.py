"""data-scaling: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.component import find, kinds
from recombine.design.study import PROFILES, Study
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.spaces.rows import RowSet
from recombine.stats.verdicts import judge, settle
from recombine.studies.data_scaling import RESERVE_LIMIT, DataScaling, matched
from recombine.training.prepare import Setting


@pytest.fixture(scope="module")
def tables(made):
    """Tables whose scores are a given function of family, number and replicate, with an optional `curve`."""

    def make(study, score):
        def of(labels):
            family = "lookup" if labels["arm"] == "lookup" else "hyperteacher"
            return dict(score(family, labels["number"], labels["replicate"]))

        curves = {}

        def without_curve(labels):
            values = of(labels)
            default = [(10, 1.0, 0.0), (20, 0.5, values.get("r2_held_out"))]
            curves[tuple(labels.items())] = values.pop("curve", default)
            return values

        def curve(labels):
            points = curves[tuple(labels.items())]
            return pd.DataFrame(points, columns=["step", "loss", "score_held_out"]).assign(score_in=0.0)

        return made(study, without_curve, curves=curve)

    return make


@pytest.fixture(scope="module")
def twelve(study):
    """The small study with replicates enough for verdicts."""
    return apply(study, ["replicates=12", "numbers=12,16,20", "first_seed=0"])


def composes(noise=0.02, seed=0):
    """Scores as the literature has them: rising, with a control that stays below zero."""
    draw = np.random.default_rng(seed)

    def score(family, number, replicate):
        wobble = noise * draw.standard_normal(6)
        rise = (number - 12) / 8
        if family == "lookup":
            return {
                "r2_in": 0.9 + wobble[0],
                "r2_held_out": -0.5 + wobble[1],
                "correlation_held_out": wobble[2],
                "intrinsic": 0.4 - 0.05 * rise + wobble[3],
                "selectivity": 0.2 + wobble[4],
            }
        return {
            "r2_in": 0.95 + wobble[0],
            "r2_held_out": 0.3 + 0.5 * rise + wobble[1],
            "intrinsic": 0.4 + 0.3 * rise + wobble[2],
            "intrinsic_untrained": 0.1 + wobble[3],
            "selectivity": 0.5 + wobble[4],
        }

    return score


def changed(tables, change, *names):
    """The same tables with some of them changed, or all."""
    own = ["run", *(name for name in ("runs", "curves") if name in names or not names)]
    frames = {name: tables._read(name) for name in ("runs", "curves")}
    return type(tables).from_frames(
        tables.labels, {name: change(frame) if name in own else frame for name, frame in frames.items()}
    )


def scaled(r2):
    """A score as R2, as the logarithm of its error and as the root of its error: one row each. Below zero counts as zero."""
    error = 1 - np.maximum(r2, 0.0)
    return np.stack([1 - error, -np.log(error), -np.sqrt(error)]).reshape(3, -1)


def judged(study, frames):
    return {
        verdict.claim.name: verdict for verdict in settle([effect.judge() for effect in study.design.effects(frames)])
    }


def values(study, frames, name):
    (effect,) = [effect for effect in study.design.effects(frames) if effect.claim.name == name]
    return effect.values


# The runs


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", kinds("studies"))
def test_every_profile_of_every_study_validates(kind, profile):
    cls = find("studies", kind)
    assert issubclass(cls, Study)
    study = cls.profile(profile)
    # Eight where a run takes most of a minute, or where each replicate needs a search of its own.
    few = study.runs()[0][0].family.targets in ("tokens", "text", "classes") or kind == "fractured"
    laptop = 8 if few else 12
    assert study.replicates >= {"smoke": 2, "demo": 2, "laptop": laptop, "paper": 2}[profile]
    runs = study.runs()
    assert runs and all({"replicate"} <= set(labels) for _, labels in runs)
    assert study.design.run_ids and study.question.endswith("?")


def test_the_paper_has_the_published_grid():
    study = DataScaling.profile("paper")
    assert len(study.spaces) == 24
    assert {(space.modules, space.max_active) for space in study.spaces} == {
        (modules, active) for modules in (8, 16, 24, 32) for active in (2, 3, 4, 5, 6, 7)
    }
    assert study.held_out == (0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.125)
    assert study.base.model.hidden == (1024,) * 4 and study.base.recipe.kind == "paper"


def test_a_run_for_each_family_number_and_replicate(study):
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    assert set(labels["arm"]) == {"main", "lookup"}
    assert set(labels["number"]) == {12, 20} and set(labels["replicate"]) == {0, 1}
    assert len(labels) == 8 and not labels.duplicated().any()
    for config, label in study.runs():
        assert config.support.number == label["number"] and config.family.kind == {"main": "hyperteacher"}.get(
            label["arm"], "lookup"
        )


def test_within_a_replicate_all_numbers_share_one_held_out_test_that_is_never_trained_on(study):
    reserved = {}
    for config, labels in study.runs():
        support = Setting(config).support
        assert len(support.reserved) == min(RESERVE_LIMIT, config.space.size - 20)
        assert not support.contains(support.reserved).any()
        key = labels["replicate"]
        first = reserved.setdefault(key, support.reserved)
        assert np.array_equal(first, support.reserved), "also for the control"
    assert not np.array_equal(reserved[0], reserved[1])


def test_the_test_of_every_number_is_made_of_the_same_rows(study):
    seen = {}
    for config, labels in study.runs():
        rows = Setting(config).regions.rows("held_out", 1000, "test")
        validation = Setting(config).regions.rows("held_out", 1000, "validation")
        assert not RowSet(rows).contains(validation).any()
        names = frozenset(config.space.name(row) for row in rows)
        assert names == seen.setdefault(labels["replicate"], names)


def test_supports_of_one_replicate_are_nested(study):
    big = apply(study, ["modules=12", "numbers=40,60"])
    supports = {
        labels["number"]: Setting(config).support
        for config, labels in big.runs()
        if labels["replicate"] == 0 and labels["arm"] == "main"
    }
    assert supports[60].contains(supports[40].rows).all()


def test_a_replicate_draws_teacher_support_weights_and_data_afresh(study):
    first, second = (
        Setting(config) for config, labels in study.runs() if labels["number"] == 20 and labels["arm"] == "main"
    )
    assert not np.array_equal(first.teacher.readout, second.teacher.readout)
    assert not np.array_equal(first.support.rows, second.support.rows)
    assert not np.array_equal(first.network().layers[0].weight, second.network().layers[0].weight)
    assert not np.array_equal(key_bits(first.data_key), key_bits(second.data_key))


def key_bits(key):
    import jax

    return np.asarray(jax.random.key_data(key))


@pytest.mark.parametrize("which", ["teacher", "support", "init", "data"])
def test_each_seed_draws_its_own_part_and_no_other(study, which):
    config = study.runs()[0][0]
    changed = config.model_copy(update={"seeds": config.seeds.model_copy(update={which: 99})})
    first, second = Setting(config), Setting(changed)
    same = {
        "teacher": np.array_equal(first.teacher.readout, second.teacher.readout),
        "support": np.array_equal(first.support.rows, second.support.rows),
        "init": np.array_equal(first.network().layers[0].weight, second.network().layers[0].weight),
        "data": np.array_equal(key_bits(first.data_key), key_bits(second.data_key)),
    }
    assert same == {name: name != which for name in same}
    assert config.run_id != changed.run_id


def test_seeds_that_tune_are_not_those_that_decide(study):
    tuned = apply(study, ["first_seed=100"])
    assert set(tuned.seeds).isdisjoint(study.seeds)
    ids = [{config.run_id for config, _ in each.runs()} for each in (study, tuned)]
    assert ids[0].isdisjoint(ids[1])


def test_shares_become_numbers_and_those_that_leave_too_few_are_dropped():
    study = DataScaling(held_out=(0.99, 0.5, 0.25))
    assert study.sizes(study.base.space) == [348, 522], "7 of 696 combinations cannot be complete"
    assert {config.support.reserve for config, _ in study.runs()} == {174}


BAD = {
    "both": ({"numbers": (1, 2), "held_out": (0.1, 0.2)}, "either numbers or held_out"),
    "neither": ({}, "either numbers or held_out"),
    "one size": ({"numbers": (40, 40)}, "two different sizes"),
    "share of one": ({"held_out": (0.5, 1.0)}, "less than 1"),
    "share of nothing": ({"held_out": (0.0, 0.5)}, "greater than 0"),
    "no number": ({"numbers": (0, 5)}, "greater than 0"),
    "control is the family": ({"numbers": (40, 80), "control": "hyperteacher"}, "another family"),
    "unknown control": ({"numbers": (40, 80), "control": "lokup"}, "did you mean 'lookup'"),
}


@pytest.mark.parametrize("case", BAD)
def test_studies_that_make_no_sense_are_refused(case):
    given, message = BAD[case]
    with pytest.raises(BadInput, match=message):
        validate(DataScaling, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": (40, 800)}, "is not possible"),
        ({"numbers": (40, 696)}, "validation and test need at least one combination each"),
        ({"numbers": (5, 40)}, "connected combinations contain at most"),
        ({"held_out": (0.99, 0.995)}, "Fewer than two"),
    ],
)
def test_sizes_that_cannot_be_are_found_before_anything_runs(given, message):
    with pytest.raises(BadInput, match=message):
        validate(DataScaling, given).runs()


# The effects


def test_when_it_composes_every_claim_is_supported(twelve, tables):
    verdicts = judged(twelve, tables(twelve, composes()))
    wanted = {name: verdict.claim.wanted for name, verdict in verdicts.items()}
    assert {name: verdict.verdict for name, verdict in verdicts.items()} == wanted
    assert len(verdicts) == 11
    assert [name for name, verdict in verdicts.items() if verdict.claim.primary] == ["rises"]
    assert all(verdict.replicates == 12 for verdict in verdicts.values())
    on_scales = [name for name, verdict in verdicts.items() if verdict.scales]
    assert on_scales == ["rises", "rises-at-matched-loss", "control-gains-nothing"]


def test_effects_are_computed_as_stated(twelve, tables):
    def score(family, number, replicate):
        if family == "lookup":
            return {
                "r2_in": number / 100,
                "r2_held_out": {12: -0.3, 16: 0.5, 20: 0.2}[number],
                "correlation_held_out": number / 1000,
                "intrinsic": {12: 0.5, 16: 0.9, 20: 0.4}[number],
                "selectivity": number / 100,
            }
        return {
            "r2_in": {12: 0.9, 16: 0.8, 20: 1.0}[number],
            "r2_held_out": {12: 0.1, 16: 0.9, 20: 0.4}[number] + 0.01 * replicate,
            "intrinsic": {12: 0.2, 16: 0.9, 20: 0.5}[number],
            "intrinsic_untrained": 0.1,
            "selectivity": {12: 0.0, 16: 0.1, 20: 0.7}[number],
            "curve": [(10, 1.0, 0.0), (20, 0.5, {12: 0.1, 16: 0.2, 20: 0.7}[number])],
        }

    shift = 0.01 * np.arange(12)
    expected = {
        "fits": np.full(12, 0.8),
        "rises": scaled(0.4 + shift) - scaled(0.1 + shift),
        "rises-at-matched-loss": scaled(0.7) - scaled(0.1),
        "few-are-memorised": 0.8 - shift,
        "control-is-learned": 0.12,
        "control-stays-at-zero": 0.012,
        "control-gains-nothing": scaled(0.2) - scaled(0.0),  # From -0.3: below zero counts as zero.
        "decodability-rises": 0.3,
        "control-decodability-does-not-rise": -0.1,
        "decodability-is-learned": 0.4,
        "selectivity-exceeds-control": 0.5,
    }
    frames = tables(twelve, score)
    computed = {effect.claim.name: effect.values for effect in twelve.design.effects(frames)}
    assert list(computed) == list(expected)
    for name, value in expected.items():
        shape = (3, 12) if np.ndim(value) == 2 else (12,)
        np.testing.assert_allclose(computed[name], np.broadcast_to(value, shape), atol=1e-12, err_msg=name)


def test_the_order_of_the_rows_does_not_matter(twelve, tables):
    frames = tables(twelve, composes())
    mixed = changed(frames, lambda frame: frame.sample(frac=1.0, random_state=1))
    for effect, again in zip(twelve.design.effects(frames), twelve.design.effects(mixed), strict=True):
        np.testing.assert_allclose(effect.values, again.values)


def test_a_network_that_did_not_fit_decides_nothing(twelve, tables):
    def score(family, number, replicate):
        return composes(seed=replicate)(family, number, replicate) | {"r2_in": 0.75 + 0.001 * replicate}

    verdicts = judged(twelve, tables(twelve, score))
    assert verdicts["fits"].verdict == "contradicted"
    for name in ("rises", "rises-at-matched-loss", "few-are-memorised", "decodability-rises"):
        assert verdicts[name].verdict == "inconclusive"
        assert "precondition 'fits' is contradicted" in verdicts[name].note
        assert verdicts[name].alone.verdict in ("supported", "equivalent")
    for name in ("control-stays-at-zero", "control-gains-nothing"):
        assert verdicts[name].verdict == "equivalent", "it does not need the fit"


def test_a_control_that_was_not_learned_shows_nothing(twelve, tables):
    def score(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        return values | ({"r2_in": 0.1} if family == "lookup" else {})

    verdicts = judged(twelve, tables(twelve, score))
    for name in ("control-stays-at-zero", "control-gains-nothing", "rises"):
        assert verdicts[name].verdict == "inconclusive"
        assert verdicts[name].alone.verdict == verdicts[name].claim.wanted
    assert "precondition 'control-gains-nothing' is inconclusive" in verdicts["rises"].note
    assert verdicts["rises-at-matched-loss"].verdict == "supported", "it does not need the control"


def test_the_control_is_counted_as_the_claim_is(twelve, tables):
    def with_the_same_scores(scores):
        def score(family, number, replicate):
            return composes(seed=replicate)(family, number, replicate) | {"r2_held_out": scores[number]}

        return tables(twelve, score)

    solved = with_the_same_scores({12: 0.3, 16: 0.5, 20: 0.8})
    gain = np.broadcast_to(scaled(0.8) - scaled(0.3), (3, 12))
    for name in ("rises", "control-gains-nothing"):
        np.testing.assert_allclose(values(twelve, solved, name), gain, atol=1e-12)
    verdicts = judged(twelve, solved)
    assert verdicts["control-gains-nothing"].verdict == "contradicted"
    assert verdicts["control-stays-at-zero"].verdict == "equivalent", "the correlation alone does not tell"
    assert verdicts["rises"].verdict == "inconclusive"
    assert verdicts["rises"].alone.verdict == "supported"

    failed = with_the_same_scores({12: -2.6, 16: -2.0, 20: -1.7})
    verdicts = judged(twelve, failed)
    for name in ("rises", "control-gains-nothing"):
        np.testing.assert_array_equal(values(twelve, failed, name), np.zeros((3, 12)))
        assert verdicts[name].verdict == "equivalent"


def test_a_control_that_is_solved_is_found_out(twelve, tables):
    def score(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        # A leak of a tenth of the held-out combinations: R2 stays far below zero, the correlation does not.
        return values | ({"correlation_held_out": 0.09} if family == "lookup" else {})

    assert judged(twelve, tables(twelve, score))["control-stays-at-zero"].verdict == "contradicted"


def test_decodability_that_rises_on_the_control_too_shows_nothing(twelve, tables):
    def score(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        return values | ({"intrinsic": number / 40} if family == "lookup" else {})

    verdicts = judged(twelve, tables(twelve, score))
    assert verdicts["control-decodability-does-not-rise"].verdict == "contradicted"
    assert verdicts["decodability-rises"].verdict == "inconclusive"


def test_a_fall_contradicts_and_a_plain_is_equivalent(twelve, tables):
    def falls(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        return values | ({"r2_held_out": 0.9 - number / 40} if family != "lookup" else {})

    assert judged(twelve, tables(twelve, falls))["rises"].verdict == "contradicted"

    def plain(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        return values | ({"r2_held_out": 0.9 + 0.001 * (replicate % 3) * number / 20} if family != "lookup" else {})

    assert judged(twelve, tables(twelve, plain))["rises"].verdict == "equivalent"


def test_a_rise_near_the_ceiling_depends_on_the_scale(twelve, tables):
    """From .95 to .98: little of R2, and less than half of the error."""

    def high(family, number, replicate):
        values = composes(seed=replicate)(family, number, replicate)
        wobble = 0.001 * (replicate % 3)
        return values | ({"r2_held_out": 0.95 + 0.03 * (number == 20) + wobble} if family != "lookup" else {})

    verdict = judged(twelve, tables(twelve, high))["rises"]
    assert [scale.verdict for scale in verdict.scales] == ["equivalent", "supported", "supported"]
    assert verdict.verdict == "depends on the scale"


@pytest.mark.parametrize("at", [12, 16, 20])
def test_a_failed_run_takes_its_replicate_out_and_nothing_stands_in_for_it(twelve, tables, at):
    nothing = dict.fromkeys(("r2_in", "r2_held_out", "intrinsic", "intrinsic_untrained"), np.nan)

    def score(family, number, replicate):
        values = composes(noise=0.0)(family, number, replicate)
        if number == at and replicate == 3 and family == "hyperteacher":
            return values | nothing | {"status": "failed", "curve": [(10, 5.0, -9.0)]}
        return values

    frames = tables(twelve, score)
    gain = scaled(0.8) - scaled(0.3)
    rises = values(twelve, frames, "rises")
    assert np.isnan(rises[:, 3]).tolist() == [at != 16] * 3
    np.testing.assert_allclose(np.delete(rises, 3, axis=1), np.broadcast_to(gain, (3, 11)))
    assert np.isnan(values(twelve, frames, "fits")[3])
    matched = values(twelve, frames, "rises-at-matched-loss")
    np.testing.assert_allclose(np.delete(matched, 3, axis=1), np.broadcast_to(gain, (3, 11)))
    assert np.isnan(matched[:, 3]).tolist() == [at != 16] * 3
    if at == 16:
        assert matched[:, 3] == pytest.approx(gain[:, 0]), "the curve of a failed run sets no loss to match"
    verdict = judged(twelve, frames)["fits"]
    assert verdict.replicates == 11 and "1 of 12 effects" in verdict.note


def test_a_missing_run_counts_as_failed(twelve, tables):
    frames = tables(twelve, composes(noise=0.0))
    gone = frames.runs.query("number == 12 and replicate == 0")["run"]
    short = changed(frames, lambda runs: runs[~runs["run"].isin(gone)], "runs")
    assert np.isnan(values(twelve, short, "rises")).tolist() == [[True] + [False] * 11] * 3
    none = changed(frames, lambda frame: frame[:0])
    assert all(np.isnan(effect.values).all() for effect in twelve.design.effects(none))
    assert {verdict.verdict for verdict in judged(twelve, none).values()} == {"inconclusive"}


def test_when_every_run_failed_nothing_is_decided(twelve, tables):
    frames = tables(twelve, lambda *_: {"status": "failed", "curve": [(10, np.nan, np.nan)]})
    assert {verdict.verdict for verdict in judged(twelve, frames).values()} == {"inconclusive"}
    overview = twelve.design.overview(frames)
    assert overview["score_in"].isna().all() and (overview["n"] == 0).all()


def test_several_spaces_are_averaged_within_a_replicate(twelve, tables):
    spaces = [{"kind": "subset", "modules": modules, "max_active": 2} for modules in (8, 10)]
    both = validate(DataScaling, twelve.model_dump(mode="json") | {"spaces": spaces})
    titles = [space.title for space in both.spaces]
    assert len(set(titles)) == 2
    frames = tables(both, composes(noise=0.0))
    high = frames.runs[
        (frames.runs["space"] == titles[1]) & (frames.runs["number"] == 20) & (frames.runs["arm"] == "main")
    ]

    def with_score(runs, score, chosen):
        return runs.assign(r2_held_out=runs["r2_held_out"].where(~runs["run"].isin(chosen["run"]), score))

    better = changed(frames, lambda runs: with_score(runs, 0.95, high), "runs")
    # The mean of two gains on each scale; the gain of the mean R2 is another number.
    gain = ((scaled(0.8) - scaled(0.3)) + (scaled(0.95) - scaled(0.3))) / 2
    np.testing.assert_allclose(values(both, better, "rises"), np.broadcast_to(gain, (3, 12)))
    failed = changed(better, lambda runs: with_score(runs, np.nan, high[high["replicate"] == 1]), "runs")
    assert np.isnan(values(both, failed, "rises")).tolist() == [[False, True] + [False] * 10] * 3


@pytest.mark.parametrize(
    ("scale", "start", "noise"),
    [("R2", 0.9, 0.01), ("log error", 0.5, 0.08)],
    ids=["near the ceiling", "far from the ceiling"],
)
def test_planted_nulls_are_supported_at_most_one_time_in_twenty(twelve, tables, scale, start, noise):
    """At the margin of one scale and beyond those of the others, the hardest null: R2 near the ceiling, log error else."""
    (primary,) = [claim for claim in twelve.design.claims if claim.primary]
    margin = dict(primary.test.scales)[scale]
    draw = np.random.default_rng(7)
    frames = tables(twelve, composes())
    own = frames.runs.set_index("run")

    def supported(gain, trials):
        """How often a gain on the scale is called one. The scores start at `start`: an R2, or an error."""
        count = 0
        for _ in range(trials):
            shift = gain * (own["number"] == 20) + noise * draw.standard_normal(len(own))
            scores = start + shift if scale == "R2" else 1 - start * np.exp(-shift)
            planted = changed(
                frames, lambda runs, scores=scores: runs.assign(r2_held_out=runs["run"].map(scores)), "runs"
            )
            effects = primary.effect.values(twelve.design.data(planted))
            count += judge(primary.of("data-scaling"), effects).verdict == "supported"
        return count

    assert supported(margin, 200) <= 0.05 * 200
    assert supported(1.5 * margin, 20) >= 10, "half as much again is mostly seen"


# At matched loss


def curves(*runs):
    """Curves of runs given as (replicate, number, [(step, loss, score), ...])."""
    return pd.DataFrame(
        [
            {
                "replicate": replicate,
                "space": "s",
                "number": number,
                "step": step,
                "loss": loss,
                "score_held_out": score,
            }
            for replicate, number, points in runs
            for step, loss, score in points
        ]
    )


def picked(frame):
    chosen = matched(frame)
    return {(row.replicate, row.number): row.step for row in chosen.itertuples()}


def test_the_loss_that_all_reach_is_matched_at_its_first_evaluation():
    frame = curves(
        (0, 10, [(10, 1.0, 0.1), (20, 0.4, 0.2), (30, 0.1, 0.3)]),
        (0, 40, [(10, 2.0, 0.1), (20, 1.0, 0.2), (30, 0.5, 0.3)]),
    )
    # The slower run never gets below 0.5; the quicker one first does so at step 20.
    assert picked(frame) == {(0, 10): 20, (0, 40): 30}
    assert matched(frame).set_index("number")["score_held_out"].to_dict() == {10: 0.2, 40: 0.3}


def test_each_replicate_has_its_own_loss():
    frame = curves(
        (0, 10, [(10, 1.0, 0.0), (20, 0.2, 0.0)]),
        (0, 40, [(10, 1.0, 0.0), (20, 0.9, 0.0)]),
        (1, 10, [(10, 0.9, 0.0), (20, 0.2, 0.0)]),
        (1, 40, [(10, 0.9, 0.0), (20, 0.9, 0.0)]),
    )
    assert picked(frame) == {(0, 10): 20, (0, 40): 20, (1, 10): 10, (1, 40): 10}


def test_a_loss_that_rises_again_is_matched_where_it_was_lowest():
    frame = curves((0, 10, [(10, 0.3, 0.5), (20, 0.8, 0.6)]), (0, 40, [(30, 0.9, 0.3), (20, 0.3, 0.2), (10, 1.0, 0.1)]))
    assert picked(frame) == {(0, 10): 10, (0, 40): 20}


def test_the_score_is_that_of_the_evaluation_even_if_it_is_missing():
    frame = curves((0, 10, [(10, 0.3, np.nan), (20, 0.1, 0.9)]), (0, 40, [(10, 0.3, 0.2)]))
    chosen = matched(frame).set_index("number")["score_held_out"]
    assert np.isnan(chosen[10]) and chosen[40] == 0.2


def test_the_choice_does_not_look_at_the_held_out_score():
    frame = curves((0, 10, [(10, 1.0, 0.1), (20, 0.5, 0.9)]), (0, 40, [(10, 0.6, 0.1), (20, 0.5, 0.2)]))
    other = frame.assign(score_held_out=-frame["score_held_out"])
    assert picked(frame) == picked(other)


def test_no_curves_no_choice():
    assert matched(curves()).empty
