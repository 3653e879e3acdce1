"""Text to image: what is trained on, how success and decodability are brought together, and what each claim compares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from recombine.studies.base import Tables
from recombine.studies.text_to_image import ARMS, CLAIMS, SCALING, TextToImage
from recombine.studies.text_to_image_figures import figures, scale_figure
from recombine.studies.text_to_image_relation import (
    OVER_RUNS,
    RIVALS,
    by_combination,
    by_factor,
    exchanges,
    independence,
    lost,
    over_runs,
    product,
    related,
    successes,
)
from recombine.supports.regions import distance

STUDY = TextToImage.profile("laptop").model_copy(update={"replicates": 4})
SIZES = STUDY.sizes
SEED = STUDY.first_seed
FACTORS = {
    "complete": ("shape", "colour"),
    "two things": ("left shape", "right shape", "left colour", "right colour"),
}
IMAGES = 6
COMBINATIONS = 30


def tables(link: float = 1.0, seed: int = 0, together: float = 0.0) -> Tables:
    """Every run has held-out combinations whose factors go right with a chance that their decodability sets by `link`.

    With a chance `together` all of an image goes wrong at once. Trained combinations are there to say how easy parts are.
    """
    rng = np.random.default_rng(seed)
    runs, images, concepts, readout, gallery = [], [], [], [], []
    for config, labels in STUDY.runs():
        factors = FACTORS["two things" if labels["arm"] == "two things" else "complete"]
        level = rng.uniform()
        runs.append(labels | {"run": config.run_id, "success_in": 0.9, "success_held_out": level, "success_all_pairs_met": level, "checker_error": 0.001,
                              "checker_error_noised": 0.004, "concepts_r2": level + 0.01 * rng.normal(),
                              "concepts_selectivity": 0.4, "concepts_untrained_selectivity": 0.1, "copied_right": 0.04,
                              "text_r2": rng.uniform(), "concepts_untrained_r2": rng.uniform()})  # fmt: skip
        space = config.space
        for number in range(COMBINATIONS):
            row = [offset + number % level for offset, level in zip(space.offsets, space.levels, strict=True)]
            own = {"combination": f"c{number}", "constituents": row, **labels}
            read = rng.uniform(size=len(factors))
            hits = rng.uniform(size=(IMAGES, len(factors))) < 0.5 + link * (read - 0.5)
            hits &= rng.uniform(size=(IMAGES, 1)) >= together
            for region in ("held_out", "trained"):
                for draw, hit in enumerate(hits):
                    columns = {f"{what}_{factor.replace(' ', '_')}": float(value)
                               for factor, one in zip(factors, hit, strict=True)
                               for what, value in (("hit", one), ("asked", 1))}  # fmt: skip
                    images.append(own | columns | {"region": region, "draw": draw, "whole": float(hit.all()), "images": 1.0,
                                                   "seen": 1.0, "exchangeable": 1.0, "exchanged": float(draw % 2)})  # fmt: skip
            for place, factor in enumerate(factors):
                concepts += [
                    own | {"network": network, "site": "middle", "moment": "0.5", "use": use, "factor": factor, "r2": value,
                           "control": None, "selectivity": None}
                    for network, use, value in (("trained", "chosen", read[place]), ("trained", "early", rng.uniform()),
                                                ("trained", "text", rng.uniform()), ("untrained", "chosen", rng.uniform()))
                ]  # fmt: skip
            readout.append(
                own
                | {"rarest_part": number % 5, "pairs_met": 1 - (number % 3) / 6, "distance": 1 + number % 2}
            )
            gallery.append(own | {"region": "trained" if number % 2 else "held_out", "right": bool(hits[0].all()),
                                  "image": [number] * 48, "nearest": [0] * 48, "rendered": [9] * 48})  # fmt: skip
        concepts += [
            labels | {"combination": "", "network": "trained", "site": site, "moment": moment, "use": "",
                      "factor": factor, "r2": 0.5, "control": 0.1, "selectivity": 0.4}
            for factor in factors for site, moment in (("middle", "0.5"), ("reading", ""))
        ]  # fmt: skip
    others = {name: pd.DataFrame(rows) for name, rows in
              (("scores", images), ("concepts", concepts), ("readout", readout), ("gallery", gallery))}  # fmt: skip
    return Tables(pd.DataFrame(runs), pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), others=others)


@pytest.fixture(scope="module")
def linked() -> Tables:
    return tables()


def test_arms_share_their_test_and_miss_what_they_should():
    for seed in STUDY.seeds:
        drawn = {labels["arm"]: (config, config.support.draw(config.space, config.seeds.support))
                 for config, labels in STUDY.runs() if labels["replicate"] == seed}  # fmt: skip
        assert list(drawn) == list(ARMS)
        np.testing.assert_array_equal(drawn["complete"][1].reserved, drawn["missing"][1].reserved)
        covered = {arm: support.certificate((2,)).coverage[0].share for arm, (_, support) in drawn.items()}
        # A pair of colours that only the test has cannot be trained on.
        assert covered["complete"] > 0.98 and covered["two things"] > 0.9
        assert covered["missing"] < 0.98 and covered["corner"] == 1
        corner = drawn["corner"][1]
        away = distance(corner.reserved, corner.rows, drawn["corner"][0].space.width)
        assert set(away.tolist()) == {1, 2}
        assert drawn["complete"][1].size == drawn["missing"][1].size == STUDY.usual["number"]


def test_success_is_a_share_of_images(linked: Tables):
    found = successes(linked, SIZES)
    raw = linked.others["scores"]
    one = raw[
        (raw["arm"] == "complete")
        & (raw["combination"] == "c4")
        & (raw["replicate"] == SEED + 1)
        & (raw["region"] == "held_out")
    ]
    row = found[
        (found["arm"] == "complete") & (found["combination"] == "c4") & (found["replicate"] == SEED + 1)
    ].iloc[0]
    assert row["success"] == one["whole"].mean()
    assert row["right shape"] == one["hit_shape"].mean()
    assert np.isnan(row["right left shape"])


def test_the_relation_is_spearmans_within_arms(linked: Tables):
    cases = by_combination(linked, SIZES)
    wanted = [
        np.mean(
            [
                spearmanr(*own[["decodability", "success"]].to_numpy().T).statistic
                for _, own in some.groupby("arm")
            ]
        )
        for _, some in cases.groupby("replicate")
    ]
    np.testing.assert_allclose(related(cases, STUDY.seeds, ARMS), wanted)


def test_a_planted_relation_is_found_and_none_where_there_is_none(linked: Tables):
    cases = by_combination(linked, SIZES)
    assert related(cases, STUDY.seeds, ARMS).min() > 0.5
    assert related(cases, STUDY.seeds, ARMS, rivals=RIVALS).min() > 0.5
    assert np.abs(related(cases, STUDY.seeds, ARMS, by="early")).max() < 0.3
    assert np.abs(related(cases, STUDY.seeds, ARMS, by="untrained")).max() < 0.3
    assert np.abs(related(by_combination(tables(link=0.0), SIZES), STUDY.seeds, ARMS)).max() < 0.3


def test_which_factor_goes_wrong_is_not_that_a_combination_does(linked: Tables):
    """Planted factor by factor it is found; where all factors of a combination are as one it is not."""
    assert related(by_factor(linked, SIZES), STUDY.seeds, ARMS).min() > 0.3
    as_one = tables()
    frame = as_one.others["concepts"]
    keys = ["arm", "replicate", "combination", "network", "use"]
    frame["r2"] = frame.groupby(keys)["r2"].transform("mean")
    assert np.abs(np.nan_to_num(related(by_factor(as_one, SIZES), STUDY.seeds, ARMS))).max() < 0.3


def test_a_rival_that_is_behind_it_is_taken_out(linked: Tables):
    """Where decodability and success both follow the text encoder, nothing is left beside it."""
    rng = np.random.default_rng(3)
    cases = by_combination(linked, SIZES)
    text = rng.uniform(size=len(cases))
    behind = cases.assign(
        text=text,
        decodability=text + 0.2 * rng.normal(size=len(cases)),
        success=text + 0.2 * rng.normal(size=len(cases)),
    )
    assert related(behind, STUDY.seeds, ARMS).min() > 0.5
    assert np.abs(related(behind, STUDY.seeds, ARMS, rivals=RIVALS)).max() < 0.3


def test_an_arm_that_is_missing_is_not_replaced_and_one_without_failures_says_nothing(linked: Tables):
    cases = by_combination(linked, SIZES)
    gone = cases[(cases["arm"] != "corner") | (cases["replicate"] != SEED + 1)]
    assert np.isnan(related(gone, STUDY.seeds, ARMS)).tolist() == [False, True, False, False]
    solved = cases.assign(success=cases["success"].where(cases["arm"] != "corner", 1.0))
    three = [arm for arm in ARMS if arm != "corner"]
    np.testing.assert_allclose(related(solved, STUDY.seeds, ARMS), related(cases, STUDY.seeds, three))
    assert np.isnan(related(cases.assign(success=1.0), STUDY.seeds, ARMS)).all()


def test_runs_are_related_within_what_they_are_trained_on(linked: Tables):
    """Tukey's pseudo-values of a planted relation, also with rivals that have nothing to do with it."""
    assert over_runs(linked, SIZES, STUDY.seeds).mean() > 0.8
    assert over_runs(linked, SIZES, STUDY.seeds, OVER_RUNS).mean() > 0.8


def test_the_product_takes_every_factor_from_another_image():
    right = np.array([[1, 0], [1, 1], [0, 1]], bool)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    assert product(right) == pytest.approx(np.mean([right[i, 0] * right[j, 1] for i, j in pairs]))


@pytest.mark.parametrize("images", [4, 6])
def test_the_product_is_that_of_the_chances_however_few_the_images(images: int):
    """Also where all factors of an image stand or fall together, and a product of shares would be far too large."""
    rng = np.random.default_rng(images)
    lost = rng.uniform(size=(4000, images, 1)) < 0.3
    right = (rng.uniform(size=(4000, images, 4)) < 0.9) & ~lost
    found = np.mean([product(one) for one in right])
    assert found == pytest.approx((0.9 * 0.7) ** 4, abs=0.01)
    assert np.mean(right.mean(1).prod(1)) > found + 0.03


def test_independent_parts_are_found_so_and_others_are_not():
    assert np.abs(independence(tables(seed=5), SIZES, STUDY.seeds)).max() < 0.04
    assert independence(tables(seed=6, link=0.0, together=0.3), SIZES, STUDY.seeds).min() > 0.04


def test_exchanged_colours_are_a_share_of_wrong_ones(linked: Tables):
    raw = linked.others["scores"]
    own = raw[(raw["arm"] == "two things") & (raw["region"] == "held_out")]
    wrong = own[
        (own["hit_left_shape"] > 0)
        & (own["hit_right_shape"] > 0)
        & (own["hit_left_colour"] == 0)
        & (own["hit_right_colour"] == 0)
    ]
    wanted = wrong.groupby("replicate")["exchanged"].mean()
    np.testing.assert_allclose(exchanges(linked, SIZES, "two things", STUDY.seeds), wanted)


def test_what_unmet_pairs_cost_is_more_than_that_combinations_are_hard():
    """Combinations with an unmet pair are .3 harder in both arms; in one of them they lose .2 more."""
    found = tables()
    frame = found.others["scores"]
    unmet = frame["combination"].str[1:].astype(int) % 3 > 0
    frame["whole"] = 0.8 - 0.3 * unmet - 0.2 * (unmet & (frame["arm"] == "missing"))
    np.testing.assert_allclose(lost(found, SIZES, ("complete", "missing"), STUDY.seeds), 0.2)


def test_every_claim_has_its_effect(linked: Tables):
    found = {effect.claim.name: effect.values for effect in STUDY.effects(linked)}
    assert list(found) == [claim.name for claim in CLAIMS]
    np.testing.assert_allclose(found["selective"], 0.3)
    np.testing.assert_allclose(found["judge-is-right"], 0.004)
    np.testing.assert_allclose(found["nothing-is-copied"], 0.04)
    runs = linked.runs[linked.runs["arm"] == "complete"].set_index("replicate")
    np.testing.assert_allclose(found["falls-short"], 0.9 - runs["success_held_out"])
    corner = by_combination(linked, SIZES).query("arm == 'corner'")
    means = corner.groupby(["replicate", "distance"])["success"].mean().unstack()
    np.testing.assert_allclose(found["distance"], means[1] - means[2])
    np.testing.assert_allclose(
        found["colours-are-exchanged"], exchanges(linked, SIZES, "two things", STUDY.seeds) - 1 / 9
    )


def test_without_runs_nothing_is_decided():
    nothing = pd.DataFrame({"run": []})
    empty = Tables(
        pd.DataFrame([labels for _, labels in STUDY.runs()]),
        nothing,
        nothing,
        nothing,
        others=dict.fromkeys(("scores", "concepts", "readout", "gallery"), nothing),
    )
    for effect in STUDY.effects(empty):
        assert np.isnan(effect.values).all(), effect.claim.name
    assert figures(STUDY, empty) == []


def test_scale_is_asked_about_where_something_is_scaled():
    full = TextToImage.profile("full")
    assert full.usual == STUDY.usual == {"width": 32, "steps": 1200, "number": 72}
    own = {config.run_id for config, _ in STUDY.runs()}
    assert full.first_seed != STUDY.first_seed, "what is recorded of it is decided by fresh replicates"
    alike = full.model_copy(update={"first_seed": STUDY.first_seed})
    assert own <= {config.run_id for config, _ in alike.runs()}
    wide = STUDY.model_copy(update={"widths": (16, 32)})
    names = {effect.claim.name for effect in wide.effects(tables())}
    assert names & {claim.name for claim in SCALING.values()} == {"wider-composes"}


def test_what_is_scaled_is_shown_row_by_row():
    full = TextToImage.profile("full")
    runs = pd.DataFrame([labels for _, labels in full.runs()])
    draw = np.random.default_rng(0)
    runs = runs.assign(success_in=draw.uniform(size=len(runs)), success_held_out=draw.uniform(size=len(runs)))
    empty = pd.DataFrame({"run": []})
    figure = scale_figure(full, Tables(runs, empty, empty, empty))
    text = str(figure.chart.to_dict())
    for row in (
        "the usual size",
        "64 channels",
        "300 steps",
        "6 pairs never met",
    ):
        assert row in text
    assert "The usual size: 32 channels, 1200 steps, 72 combinations, every pair met." in figure.caption
    assert "around one combination, reach 1" in text and "drawn by lot" in text and "two things" not in text


def test_figures_are_drawn_from_tables(linked: Tables):
    found = figures(STUDY, linked)
    assert [figure.name for figure in found] == [
        "images_complete", "images_missing", "images_corner", "images_two_things", "success", "coverage", "blocks",
        "relation", "factors", "nearest",
    ]  # fmt: skip
    for figure in found:
        assert figure.caption and figure.chart.to_dict()
